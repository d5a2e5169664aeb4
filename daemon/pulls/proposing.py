"""From a search's result to the proposal that is put before people."""

from collections.abc import Callable
from pathlib import Path

from daemon.planner import Work
from daemon.pulls.pull_request import Incumbent, Proposal
from knowledge.evaluation import Evaluation, evaluation_key
from knowledge.evidence import Evidence
from knowledge.outcome import Passed
from optimizer.errors import KernelFolderError
from optimizer.job import OptimizeResult
from optimizer.kernel import Kernel, Variant, read_kernel

FindEvaluation = Callable[[str], Evaluation | None]


def make_proposal(
    work: Work,
    result: OptimizeResult,
    *,
    incumbent_folder: Path,
    find_evaluation: FindEvaluation,
    signed_by: str,
) -> Proposal | None:
    """Return the proposal of a kernel that is Better; None of any other result.

    Args:
        work: What was asked for.
        result: What came of it.
        incumbent_folder: Where the published kernel's folder lies, if there is one.
        find_evaluation: Returns the trial of a key, if it was ever made.
        signed_by: The public key that signs the kernel's folder.
    """
    evidence, folder = result.evidence, result.kernel_folder
    if evidence is None or folder is None:
        return None
    candidate = result.candidate
    return Proposal(
        evidence=evidence,
        origin=candidate.origin if candidate else "",
        note=candidate.note if candidate else "",
        text=candidate.code if candidate else "",
        incumbent=find_incumbent(incumbent_folder, evidence, find_evaluation),
        outcomes=result.outcomes,
        shares=work.shares,
        bandwidth_gb_s=work.hardware.limits.dram_bandwidth_gb_s,
        pictures=tuple(
            path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*.svg"))
        ),
        signed_by=signed_by,
    )


def find_incumbent(
    folder: Path, evidence: Evidence, find_evaluation: FindEvaluation
) -> Incumbent | None:
    """Return the published kernel with its times in this search; None where there is no whole one.

    Its times are those of its trial: made by the same judge, in the same environment, for the same
    version of the operator as the evidence; there are none where it did not pass, or was not tried.
    """
    try:
        variant = _serving_most(read_kernel(folder))
    except KernelFolderError:
        return None
    if variant is None:
        return None
    key = evaluation_key(
        variant.candidate.id, evidence.operator_digest, evidence.environment, evidence.judge_version
    )
    trial = find_evaluation(key)
    outcome = trial.outcome if trial else None
    times = outcome.times if isinstance(outcome, Passed) else ()
    return Incumbent(variant.name, variant.candidate.code, {time.workload: time for time in times})


def read_folder(folder: Path) -> dict[str, bytes]:
    """Return a folder's files by their path in it; what is hidden or a link stays out."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and not path.is_symlink()
        and not any(part.startswith((".", "__")) for part in path.relative_to(folder).parts)
    }


def _serving_most(kernel: Kernel) -> Variant | None:
    served = [e.served_by.variant for e in kernel.dispatch.entries if e.served_by.kind == "variant"]
    names = sorted(kernel.variants, key=lambda name: (-served.count(name), name))
    return kernel.variants[names[0]] if names else None
