"""A published kernel replayed: built anew, checked and timed under new seeds."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from knowledge.evaluation import Environment
from knowledge.evidence import Evidence
from knowledge.outcome import Outcome
from optimizer.errors import KernelFolderError
from optimizer.events import Tell, explain
from optimizer.job import (
    CannotRun,
    NotReproduced,
    PhaseEvent,
    Reproduced,
    Verification,
    VerifyRequest,
    VerifyResult,
)
from optimizer.kernel import VERIFICATIONS, ByPeer, Kernel, Variant, read_kernel
from optimizer.kernel_page import ratio_text
from optimizer.runners.runner import Runner

REPLAY_ALPHA = 0.025
"""One-sided level of a replay's interval: it tests one claim, and searches for none."""
TOLERANCE = 0.9
"""How far a replay on the same device may stay below the published interval's lower end."""
Finding = Reproduced | NotReproduced | CannotRun
MakeRunner = Callable[[Kernel], AbstractContextManager[Runner] | CannotRun]


def verify(request: VerifyRequest, *, make_runner: MakeRunner, tell: Tell, at: str) -> VerifyResult:
    """Return what came of replaying each variant of a folder.

    Args:
        request: What to replay.
        make_runner: Makes the runner that replays, or says why there is none here.
        tell: Called with each event.
        at: The time, as it will stand in the record.

    Raises:
        RunnerError: The machine failed.
    """
    result = VerifyResult(verifications=tuple(_replay(request, make_runner, tell, at)))
    if request.record:
        _append(request.kernel_folder, result)
    return result


def _replay(
    request: VerifyRequest, make_runner: MakeRunner, tell: Tell, at: str
) -> list[Verification]:
    try:
        kernel = read_kernel(request.kernel_folder)
    except KernelFolderError as error:
        return [_found(NotReproduced(reason=str(error)), at)]
    made = make_runner(kernel)
    if isinstance(made, CannotRun):
        return [_found(made, at, variant=variant) for variant in kernel.variants.values()]
    verifications = []
    with made as runner:
        for variant in kernel.variants.values():
            tell(PhaseEvent(phase="check", detail=variant.name, seconds_left=request.budget_s))
            result = runner.confirm(
                variant.candidate,
                deadline_s=request.budget_s / len(kernel.variants),
                alpha=REPLAY_ALPHA,
                handed_back=handed_back(kernel),
            )
            finding = compare(variant.evidence, result)
            verifications.append(
                _found(finding, at, variant=variant, replay=result, environment=runner.environment)
            )
    return verifications


def handed_back(kernel: Kernel) -> frozenset[str]:
    """Return the workloads that a kernel's dispatch table leaves to peers."""
    return frozenset(
        entry.workload for entry in kernel.dispatch.entries if isinstance(entry.served_by, ByPeer)
    )


def compare(published: Evidence, replay: Evidence | Outcome) -> Finding:
    """Return whether a replay bears the published claim out.

    Outputs must agree, and the kernel must be faster than the best peer beyond the noise; on the
    very device of the evidence its gain must also reach the published interval, within a tolerance
    for a machine that is not quite as it was. A replay too noisy to say so tells nothing.
    """
    if not isinstance(replay, Evidence):
        return NotReproduced(reason=f"{replay.kind}: {explain(replay)}")
    if replay.faults:
        return CannotRun(reason=f"the measurement can't be trusted: {replay.faults[0]}")
    ratio = replay.ratio
    measured = f"the ratio is {ratio_text(ratio)}, published is {ratio_text(published.ratio)}"
    same = replay.environment.device == published.environment.device
    floor = max(1.0, TOLERANCE * published.ratio.low) if same else 1.0
    if ratio.high < floor:
        return NotReproduced(reason=f"{measured}: slower than {floor:.2f}x")
    if ratio.low <= 1:
        return CannotRun(reason=f"{measured}: too noisy to tell, take more time")
    return Reproduced()


def _found(
    finding: Finding,
    at: str,
    *,
    variant: Variant | None = None,
    replay: Evidence | Outcome | None = None,
    environment: Environment | None = None,
) -> Verification:
    evidence = replay if isinstance(replay, Evidence) else None
    return Verification(
        variant=variant.name if variant else "",
        candidate=variant.candidate.id if variant else "",
        finding=finding,
        environment=environment,
        ratio=evidence.ratio.estimate if evidence else None,
        published_ratio=variant.evidence.ratio.estimate if variant else None,
        checked_sizes=evidence.checked_sizes if evidence else 0,
        seed=evidence.seed if evidence else None,
        at=at,
    )


def _append(folder: Path, result: VerifyResult) -> None:
    with (folder / VERIFICATIONS).open("a", encoding="utf-8") as file:
        file.writelines(verification.to_json() + "\n" for verification in result.verifications)
