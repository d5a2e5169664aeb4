"""Whether anything of a candidate's own runs on the public workloads, or only what it borrows."""

from collections.abc import Sequence

from operator_registry.spec import OperatorSpec
from optimizer.binding import instances
from optimizer.candidate import Candidate
from optimizer.evaluate.cases import CheckedCase
from optimizer.evaluate.guards import Guard, Guards
from optimizer.evaluate.screen import is_library_only


def is_borrowed(
    candidate: Candidate, spec: OperatorSpec, cases: Sequence[CheckedCase], guards: Guards
) -> bool:
    """Return whether library calls alone do the work on every one of the workloads.

    A kernel that stands in the plan, but that its `when` never lets run there, is none: the names
    in a plan are not what is launched.
    """
    if is_library_only(candidate):
        return True
    if candidate.host == "python" or not cases or not guards.up(Guard.LAUNCHED):
        return False
    return not any(_launches(candidate, spec, case) for case in cases)


def _launches(candidate: Candidate, spec: OperatorSpec, case: CheckedCase) -> bool:
    return any(
        instances(
            spec,
            candidate.plan,
            candidate.chosen,
            sizes=sizes,
            dtypes=case.workload.dtypes,
            attributes=case.case.attributes,
        )
        for sizes in case.sizes
    )
