"""The tasks of a job, each from its request to its result, on this machine."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from knowledge.evidence import Evidence
from knowledge.fitness import fitness
from knowledge.outcome import Passed
from knowledge.verdict import judge
from operator_registry.record import Record
from optimizer.admit import admit_all
from optimizer.bench import bench
from optimizer.bench_aa import bench_aa
from optimizer.bench_throughput import bench_throughput
from optimizer.doctor import examine
from optimizer.evaluate.evaluator import JUDGE_VERSION
from optimizer.events import Tell
from optimizer.job import (
    FIRST_ALPHA,
    AaRequest,
    AaResult,
    AdmitRequest,
    AdmitResult,
    BenchRequest,
    BenchResult,
    CannotRun,
    DoctorRequest,
    DoctorResult,
    EvaluateRequest,
    EvaluateResult,
    LandscapesRequest,
    LandscapesResult,
    OptimizeRequest,
    OptimizeResult,
    PhaseEvent,
    RedteamRequest,
    RedteamResult,
    Result,
    SearchBenchRequest,
    SearchBenchResult,
    ThroughputRequest,
    ThroughputResult,
    VerifyRequest,
    VerifyResult,
)
from optimizer.kernel import Kernel
from optimizer.landscapes.bench_search import bench_search
from optimizer.landscapes.recording import bench_landscapes
from optimizer.optimize import Workshop, optimize
from optimizer.processor_time import count_cpu_s
from optimizer.propose.caller import Caller
from optimizer.propose.models import make_caller
from optimizer.propose.synthesis.make import make_proposers
from optimizer.redteam.run import redteam
from optimizer.runners.access import RayAccess
from optimizer.runners.local import LocalRunner
from optimizer.runners.post import JudgeRequest
from optimizer.runners.remote import RemoteRunner
from optimizer.runners.runner import Runner
from optimizer.search.proof import freeze_dispatch
from optimizer.search.search import Clock
from optimizer.store import Store
from optimizer.targets import find_obstacle
from optimizer.verify import verify

Stopped = Callable[[], bool]
CLOCK = Clock(time.monotonic, time.time, count_cpu_s)


@dataclass(frozen=True)
class Task:
    """What a task is asked, and the function that answers."""

    request: type[Record]
    run: Callable[[Any, Tell, Stopped], Result]
    """Takes a request of that very type: `main` parses it."""


def run_optimize(request: OptimizeRequest, tell: Tell, stopped: Stopped) -> OptimizeResult:
    """Search, prove and write the kernel's folder."""
    with Store(request.store_url) as store, _runner(request) as runner:
        store.migrate()
        workshop = Workshop(
            store=store,
            runner=runner,
            make_proposers=lambda: make_proposers(
                request.operator, request.hardware, caller=_make_caller(request, store)
            ),
            judge_version=JUDGE_VERSION,
            clock=CLOCK,
            tell=tell,
            stopped=stopped,
        )
        return optimize(request, workshop)


def run_evaluate(request: EvaluateRequest, tell: Tell, stopped: Stopped) -> EvaluateResult:
    """Try one candidate, as a search would."""
    with _runner(request) as runner:
        left_s = request.budget_s
        tell(PhaseEvent(phase="check", detail=request.candidate.note, seconds_left=left_s))
        (evaluation,) = runner.evaluate([request.candidate])
        outcome = evaluation.outcome
        result = EvaluateResult(evaluation=evaluation, fitness=fitness(outcome))
        timed = isinstance(outcome, Passed) and len(outcome.times) > 0
        if not request.confirm or not timed or stopped():
            return result
        tell(PhaseEvent(phase="confirm", seconds_left=left_s))
        proof = runner.confirm(
            request.candidate,
            deadline_s=left_s,
            alpha=FIRST_ALPHA,
            handed_back=freeze_dispatch(outcome),
        )
    if isinstance(proof, Evidence):
        return result.model_copy(update={"evidence": proof, "verdict": judge(proof)})
    failed = evaluation.model_copy(update={"outcome": proof})
    return EvaluateResult(evaluation=failed, fitness=0.0)


def run_verify(request: VerifyRequest, tell: Tell, stopped: Stopped) -> VerifyResult:
    """Replay a published kernel."""

    def make_runner(kernel: Kernel) -> AbstractContextManager[Runner] | CannotRun:
        if request.device is not None and isinstance(request.device.access, RayAccess):
            asked = JudgeRequest(
                operator=kernel.operator, hardware=kernel.hardware, judge_version=JUDGE_VERSION
            )
            return open_remote(request.device.access, asked, samples=request.state_folder)
        if obstacle := find_obstacle(kernel.hardware):
            return CannotRun(reason=obstacle)
        return LocalRunner(kernel.operator, kernel.hardware, folder=request.state_folder)

    at = datetime.fromtimestamp(CLOCK.epoch_s(), UTC).isoformat(timespec="seconds")
    return verify(request, make_runner=make_runner, tell=tell, at=at)


def run_bench(request: BenchRequest, tell: Tell, stopped: Stopped) -> BenchResult:
    """Run the optimise job for each operator."""
    return bench(request, optimize=lambda job: run_optimize(job, tell, stopped), tell=tell)


def run_aa(request: AaRequest, tell: Tell, stopped: Stopped) -> AaResult:
    """Compare a kernel with itself."""
    return bench_aa(request, tell=tell, stopped=stopped)


def run_throughput(request: ThroughputRequest, tell: Tell, stopped: Stopped) -> ThroughputResult:
    """Sweep one source's tunables."""
    return bench_throughput(request, tell=tell, stopped=stopped)


def run_landscapes(request: LandscapesRequest, tell: Tell, stopped: Stopped) -> LandscapesResult:
    """Record schedule spaces."""
    return bench_landscapes(request, tell=tell, stopped=stopped)


def run_search_bench(
    request: SearchBenchRequest, tell: Tell, stopped: Stopped
) -> SearchBenchResult:
    """Replay recorded landscapes."""
    return bench_search(request, tell=tell, stopped=stopped)


def run_redteam(request: RedteamRequest, tell: Tell, stopped: Stopped) -> RedteamResult:
    """Put every kind of cheat before the judge."""

    def told(what: str) -> None:
        tell(PhaseEvent(phase="check", detail=what))

    return redteam(request, tell=told, stopped=stopped)


def run_doctor(request: DoctorRequest, tell: Tell, stopped: Stopped) -> DoctorResult:
    """Say what this machine can do."""
    return DoctorResult(abilities=examine(request.state_folder))


def run_admit(request: AdmitRequest, tell: Tell, stopped: Stopped) -> AdmitResult:
    """Probe operators."""
    return admit_all(request, tell=tell, stopped=stopped)


TASKS: Mapping[str, Task] = {
    "optimize": Task(OptimizeRequest, run_optimize),
    "evaluate": Task(EvaluateRequest, run_evaluate),
    "verify": Task(VerifyRequest, run_verify),
    "bench": Task(BenchRequest, run_bench),
    "aa": Task(AaRequest, run_aa),
    "throughput": Task(ThroughputRequest, run_throughput),
    "landscapes": Task(LandscapesRequest, run_landscapes),
    "search": Task(SearchBenchRequest, run_search_bench),
    "redteam": Task(RedteamRequest, run_redteam),
    "admit": Task(AdmitRequest, run_admit),
    "doctor": Task(DoctorRequest, run_doctor),
}


def _make_caller(request: OptimizeRequest, store: Store) -> Caller | None:
    if request.model is None:
        return None
    return make_caller(
        request.model,
        state_folder=request.state_folder,
        goal_key=request.goal_key,
        budget_s=request.budget_s,
        charged=store.spent_by(request.goal_key),
    )


def _runner(request: OptimizeRequest | EvaluateRequest) -> AbstractContextManager[Runner]:
    device = request.device if isinstance(request, OptimizeRequest) else None
    if device is not None and isinstance(device.access, RayAccess):
        asked = JudgeRequest(
            operator=request.operator,
            hardware=request.hardware,
            judge_version=JUDGE_VERSION,
            minimum_gain=request.minimum_gain,
        )
        return open_remote(device.access, asked, samples=request.state_folder)
    return LocalRunner(
        request.operator,
        request.hardware,
        folder=request.state_folder,
        minimum_gain=request.minimum_gain,
    )


@contextmanager
def open_remote(access: RayAccess, asked: JudgeRequest, *, samples: Path) -> Iterator[Runner]:
    """Be at work on a device of a cluster.

    Raises:
        DeviceLostError: The device is gone.
        RunnerError: The cluster can't be reached, or the host refuses.
    """
    # Ray takes a second to load, and most jobs have no use for it.
    from optimizer.runners.ray import Cluster  # noqa: PLC0415

    with (
        Cluster(access.address) as cluster,
        RemoteRunner(cluster.at(access), asked, samples=samples) as runner,
    ):
        yield runner
