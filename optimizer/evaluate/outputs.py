"""Whether what a candidate left in the judge's files is what was expected."""

from collections.abc import Mapping

import torch
from torch import Tensor

from knowledge.outcome import Counterexample, Incorrect
from operator_registry.registry import Operator
from optimizer.evaluate import protocol as p
from optimizer.evaluate.cases import CheckedCase, Expectation
from optimizer.evaluate.checking import Agreement, Mismatch, check, find_form_fault
from optimizer.evaluate.tray import Forms, Taken


def judge_outputs(
    operator: Operator,
    checked: CheckedCase,
    left: Mapping[int, Taken],
) -> Incorrect | Agreement:
    """Return whether what a candidate left agrees, or the worst disagreement.

    Args:
        operator: The operator.
        checked: The case.
        left: What it left, for each set that was run. Expectations of which a set is missing are
            passed over.
    """
    if any(taken.stray for taken in left.values()):
        return Incorrect(reason="memory beside the outputs is written to")
    worst = Agreement()
    for expectation in checked.expectations:
        if not left.keys() >= set(expectation.sets):
            continue
        for place, name in enumerate(operator.spec.outputs):
            standard = expectation.standards[place]
            found = _judge_output(expectation, place, left)
            if isinstance(found, Incorrect):
                return found.model_copy(update={"reason": f"{name} {found.reason}"})
            result = check(found, standard)
            if isinstance(result, Mismatch):
                return _incorrect(operator, checked, expectation, name, result)
            worst = Agreement(
                max(worst.error, result.error), max(worst.reference_error, result.reference_error)
            )
    return worst


def _judge_output(
    expectation: Expectation, place: int, left: Mapping[int, Taken]
) -> Incorrect | list[Tensor]:
    """Return an output's tensors over all sets; Incorrect where a form is wrong."""
    got: list[Tensor] = []
    for number in expectation.sets:
        taken = left[number]
        claimed = [_empty(form) for form in _forms_of(taken.forms, place)]
        members = expectation.standards[place].members
        share = len(members) // len(expectation.sets)
        wanted = members[len(got) : len(got) + share]
        fault = find_form_fault(claimed, wanted)
        if fault is not None:
            return Incorrect(reason=fault)
        read = taken.tensors[place]
        if read is None:
            return Incorrect(reason="lies in memory that was tampered with")
        got += [mine.to(w.oracle.device) for mine, w in zip(read, wanted, strict=True)]
    return got


def _forms_of(forms: Forms, place: int) -> tuple[p.Form, ...]:
    if place >= len(forms):
        return ()
    form = forms[place]
    return (form,) if isinstance(form, p.Form) else form


def _empty(form: p.Form) -> Tensor:
    """Return a tensor without memory that has the form."""
    return torch.empty(form.shape, dtype=getattr(torch, form.dtype), device="meta")


def _incorrect(
    operator: Operator, checked: CheckedCase, expectation: Expectation, name: str, found: Mismatch
) -> Incorrect:
    if found.index is None:
        return Incorrect(reason=f"{name} {found.reason}")
    spec = operator.spec
    place = list(spec.outputs).index(name)
    members = len(expectation.standards[place].members) // len(expectation.sets)
    which, member = divmod(found.member, members)
    number = expectation.sets[which]
    listed = spec.outputs[name].list_over is not None
    return Incorrect(
        reason=f"{name}: {found.reason}",
        counterexample=Counterexample(
            output=name,
            index=(member, *found.index) if listed else found.index,
            got=found.got,
            wanted=found.wanted,
            sizes=checked.workload.sizes,
            dtypes=dict(checked.workload.dtypes),
            attributes=dict(checked.case.attributes),
            seed=checked.seeds[number],
            scale=checked.scale,
            distribution=checked.distribution,
        ),
    )
