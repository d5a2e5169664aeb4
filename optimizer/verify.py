"""A published kernel replayed: its files and sums checked, then built, checked and timed anew."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from knowledge.evaluation import Environment
from knowledge.evidence import Better, Evidence
from knowledge.verdict import judge
from optimizer.audit import find_flaw
from optimizer.errors import KernelFolderError
from optimizer.evaluate.samples import find_samples
from optimizer.events import Tell
from optimizer.job import (
    CannotRun,
    CannotTell,
    NotReproduced,
    PhaseEvent,
    Verification,
    VerifyRequest,
    VerifyResult,
)
from optimizer.kernel import VERIFICATIONS, ByPeer, Kernel, Variant, read_kernel
from optimizer.replay import LOOKS, REPLAY_ALPHA, Finding, compare
from optimizer.runners.runner import Runner
from optimizer.signing import read_signer, signer_text

MakeRunner = Callable[[Kernel], AbstractContextManager[Runner] | CannotRun]


def verify(request: VerifyRequest, *, make_runner: MakeRunner, tell: Tell, at: str) -> VerifyResult:
    """Return what came of replaying each variant of a folder.

    Nothing is run of a folder whose hashes, signature or arithmetic are wrong.

    Args:
        request: What to replay.
        make_runner: Makes the runner that replays, or says why there is none here.
        tell: Called with each event.
        at: The time, as it will stand in the record.

    Raises:
        RunnerError: The machine failed.
    """
    result = VerifyResult(verifications=tuple(_verify(request, make_runner, tell, at)))
    if request.record:
        _append(request.kernel_folder, result)
    return result


@dataclass(frozen=True)
class _Seal:
    """What the signature of a folder is worth."""

    words: str
    fault: Finding | None = None


def _verify(
    request: VerifyRequest, make_runner: MakeRunner, tell: Tell, at: str
) -> list[Verification]:
    try:
        kernel = read_kernel(request.kernel_folder)
        seal = _inspect(request.kernel_folder, request.trusted_keys)
    except KernelFolderError as error:
        damaged = NotReproduced(reason=str(error))
        return [Verification(variant="", candidate="", finding=damaged, at=at)]
    done: dict[str, Finding] = {
        name: finding
        for name, variant in kernel.variants.items()
        if (finding := seal.fault or _examine(variant.evidence, request.state_folder))
    }
    replayed = _replay_all(kernel, set(kernel.variants) - done.keys(), request, make_runner, tell)
    replays = {name: _Replay(finding) for name, finding in done.items()} | replayed
    return [
        _record(variant, replays[name], seal.words, at) for name, variant in kernel.variants.items()
    ]


def _inspect(folder: Path, trusted: Sequence[str]) -> _Seal:
    """Return what the signature is worth.

    Raises:
        KernelFolderError: It is not for these files.
    """
    try:
        signer = read_signer(folder)
    except ImportError:
        words = "the signature can't be checked here: pip install cryptography"
        return _Seal(words, CannotRun(reason=words) if trusted else None)
    words = signer_text(signer)
    if trusted and signer not in trusted:
        return _Seal(words, NotReproduced(reason=f"{words}, which is not a trusted key's"))
    return _Seal(words)


def _examine(evidence: Evidence, state_folder: Path) -> NotReproduced | None:
    """Return why evidence can't be believed as it stands, None where it can."""
    try:
        flaw = find_flaw(evidence, find_samples(state_folder, evidence.samples_sha256))
    except ValueError as error:
        flaw = str(error)
    if flaw is not None:
        return NotReproduced(reason=f"the evidence contradicts itself: {flaw}")
    verdict = judge(evidence)
    if not isinstance(verdict, Better):
        return NotReproduced(reason=f"its own evidence proves no gain: {verdict.reason}")
    return None


@dataclass(frozen=True)
class _Replay:
    """What came of one variant."""

    finding: Finding
    evidence: Evidence | None = None
    environment: Environment | None = None


def _replay_all(
    kernel: Kernel, names: set[str], request: VerifyRequest, make_runner: MakeRunner, tell: Tell
) -> dict[str, _Replay]:
    if not names:
        return {}
    made = make_runner(kernel)
    if isinstance(made, CannotRun):
        return {name: _Replay(made) for name in names}
    with made as runner:
        return {
            name: _replay(runner, kernel, kernel.variants[name], request, tell)
            for name in sorted(names)
        }


def _replay(
    runner: Runner, kernel: Kernel, variant: Variant, request: VerifyRequest, tell: Tell
) -> _Replay:
    """Replay a variant; a second time where the first was too noisy, and then both count."""
    replays: list[Evidence] = []
    finding: Finding = CannotTell(reason="it was not replayed")
    for _ in range(LOOKS):
        tell(PhaseEvent(phase="check", detail=variant.name, seconds_left=request.budget_s))
        result = runner.confirm(
            variant.candidate,
            deadline_s=request.budget_s / len(kernel.variants),
            alpha=REPLAY_ALPHA,
            handed_back=handed_back(kernel),
        )
        if isinstance(result, Evidence):
            replays.append(result)
        finding = compare(variant.evidence, replays if isinstance(result, Evidence) else result)
        if not isinstance(finding, CannotTell):
            break
    return _Replay(finding, replays[-1] if replays else None, runner.environment)


def handed_back(kernel: Kernel) -> frozenset[str]:
    """Return the workloads that a kernel's dispatch table leaves to peers."""
    return frozenset(
        entry.workload for entry in kernel.dispatch.entries if isinstance(entry.served_by, ByPeer)
    )


def _record(variant: Variant, replay: _Replay, signature: str, at: str) -> Verification:
    evidence = replay.evidence
    return Verification(
        variant=variant.name,
        candidate=variant.candidate.id,
        finding=replay.finding,
        environment=replay.environment,
        ratio=evidence.ratio.estimate if evidence else None,
        published_ratio=variant.evidence.ratio.estimate,
        checked_sizes=evidence.checked_sizes if evidence else 0,
        seed=evidence.seed if evidence else None,
        signature=signature,
        at=at,
    )


def _append(folder: Path, result: VerifyResult) -> None:
    with (folder / VERIFICATIONS).open("a", encoding="utf-8") as file:
        file.writelines(verification.to_json() + "\n" for verification in result.verifications)
