"""Landscapes are recorded: every point of a space through the real judge, in an order by chance."""

import os
import random
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from knowledge.evaluation import Evaluation
from knowledge.outcome import Outcome, Passed
from operator_registry.hardware import HardwareSpec
from operator_registry.registry import Operator
from optimizer.candidate import Candidate
from optimizer.errors import LandscapeError, RunnerError
from optimizer.evaluate.evaluator import JUDGE_VERSION, Effort
from optimizer.events import Tell
from optimizer.job import LandscapeRow, LandscapesRequest, LandscapesResult, PhaseEvent
from optimizer.landscapes.landscape import MOST_NEAR, Landscape, load_landscape, write_landscape
from optimizer.landscapes.space import Space
from optimizer.landscapes.spaces import SPACES
from optimizer.runners.local import LocalRunner
from optimizer.runners.runner import Runner

EFFORT: Final = Effort(drawn_sizes=1, measure_s=0.05, eager_only=True)
"""Each point is checked once and timed briefly; no ratio is claimed, so peers are not compiled."""
_CPU_BATCH: Final = 10
"""To a translation unit; one is compiled on each core."""
_DEVICE_BATCH: Final = 3
"""For each core: builds go on while a batch is tried, and a longer batch hides a slow one."""
_MOST_IN_BATCH: Final = 48
MakeRunner = Callable[[Operator, HardwareSpec, Path], AbstractContextManager[Runner]]


def make_runner(
    operator: Operator, hardware: HardwareSpec, folder: Path
) -> AbstractContextManager[Runner]:
    """Return the judge of this machine, in a hurry."""
    return LocalRunner(operator, hardware, folder=folder, effort=EFFORT)


def bench_landscapes(
    request: LandscapesRequest,
    *,
    tell: Tell,
    stopped: Callable[[], bool],
    make_runner: MakeRunner = make_runner,
) -> LandscapesResult:
    """Return what was recorded. Points that are in a file already are not tried again.

    Raises:
        RunnerError: The device is not here, or a process fails.
        LandscapeError: A file that is there is damaged, or of another environment.
        CaptureError: An operator of the catalogue can't be synthesised.
    """
    rows: list[LandscapeRow] = []
    for name in pick_names(request):
        if stopped():
            rows.append(LandscapeRow(name=name, points=0, tried=0, passed=0))
            continue
        space = SPACES[request.hardware.target][name](request.hardware)
        tell(PhaseEvent(phase="bench", detail=name))
        rows.append(describe(_record(request, space, tell, stopped, make_runner)))
    return LandscapesResult(
        folder=request.folder,
        rows=tuple(rows),
        unfinished=tuple(row.name for row in rows if row.near_share is None),
        too_easy=tuple(
            r.name for r in rows if r.near_share is not None and r.near_share > MOST_NEAR
        ),
    )


def pick_names(request: LandscapesRequest) -> Sequence[str]:
    """Return the spaces of this shard, of those that were asked for.

    Raises:
        RunnerError: There is none of that name for the hardware.
    """
    known = sorted(SPACES.get(request.hardware.target, {}))
    if request.only and request.only not in known:
        msg = f"there is no space {request.only} for {request.hardware.name}; there are {known}"
        raise RunnerError(msg)
    part, parts = request.shard
    return [request.only] if request.only else known[part - 1 :: parts]


def describe(landscape: Landscape) -> LandscapeRow:
    """Return what a landscape holds, in numbers."""
    passed = [ms for ms in landscape.device_ms if ms is not None]
    return LandscapeRow(
        name=landscape.name,
        points=landscape.size,
        tried=landscape.size - len(landscape.missing),
        passed=len(passed),
        near_share=landscape.near_share,
        optimum_ms=min(passed, default=None),
        baseline_ms=landscape.baseline.device_ms if landscape.baseline else None,
    )


def _record(
    request: LandscapesRequest,
    space: Space,
    tell: Tell,
    stopped: Callable[[], bool],
    make_runner: MakeRunner,
) -> Landscape:
    path = request.folder / f"{space.name}.json"
    with make_runner(space.operator, request.hardware, request.state_folder) as runner:
        empty = _make_empty(request, space, runner)
        recording = _Recording(path, _known(path, empty), space.candidates(), runner)
        todo = recording.todo(request.points)
        size = batch_size(request.hardware.target)
        for first in range(0, len(todo), size):
            if stopped():
                break
            tell(PhaseEvent(phase="bench", detail=f"{space.name}: {first} of {len(todo)}"))
            recording.run(todo[first : first + size], todo[first + size : first + 2 * size])
    return recording.landscape


def batch_size(target: str) -> int:
    """Return how many points are tried together, so that the cores have enough to build."""
    cores = len(os.sched_getaffinity(0))
    each = _CPU_BATCH if target == "cpu" else _DEVICE_BATCH
    return max(2 * _CPU_BATCH, min(each * cores, _MOST_IN_BATCH))


def _make_empty(request: LandscapesRequest, space: Space, runner: Runner) -> Landscape:
    return Landscape(
        name=space.name,
        operator=space.operator.name,
        operator_digest=space.operator.digest,
        workload=space.operator.spec.workloads[0],
        hardware=request.hardware.name,
        environment=runner.environment,
        judge_version=JUDGE_VERSION,
        commit=request.commit,
        structures=space.structures,
        device_ms=(None,) * space.size,
    )


def _known(path: Path, empty: Landscape) -> Landscape:
    """Return what a file holds of the landscape; the empty one where there is no file.

    Raises:
        LandscapeError: It is damaged, or its points can't be compared with ours.
    """
    if not path.exists():
        return empty
    known = load_landscape(path)
    for name in ("operator_digest", "hardware", "environment", "judge_version", "structures"):
        if getattr(known, name) != getattr(empty, name):
            reason = f"recorded under another {name}; remove it to record it anew"
            raise LandscapeError(path, reason)
    return known


@dataclass
class _Recording:
    """A landscape that fills up."""

    path: Path
    landscape: Landscape
    candidates: Sequence[Candidate]
    runner: Runner
    _fresh: dict[int, Outcome] = field(default_factory=dict)

    def todo(self, most: int | None) -> Sequence[int]:
        """Return the places to try, in an order that time and heat can't follow."""
        places = list(range(self.landscape.size))
        random.Random(self.landscape.name).shuffle(places)  # noqa: S311 - an order, no secret
        missing = frozenset(self.landscape.missing)
        return [place for place in places[:most] if place in missing]

    def run(self, places: Sequence[int], ahead: Sequence[int]) -> None:
        """Try some points, and write down what is known whatever happens."""
        by_id = {self.candidates[place].id: place for place in places}

        def note(evaluation: Evaluation) -> None:
            outcome = evaluation.outcome
            if isinstance(outcome, Passed) and not outcome.times:
                msg = f"there is no {self.landscape.hardware} here, so nothing can be timed"
                raise RunnerError(msg)
            self._fresh[by_id[evaluation.candidate]] = outcome

        try:
            self.runner.evaluate(
                [self.candidates[place] for place in places],
                ahead=[self.candidates[place] for place in ahead],
                on_done=note,
            )
        finally:
            # A stop cuts through a batch; what it had tried is kept.
            self.landscape = self.landscape.filled(self._fresh)
            self._fresh = {}
            write_landscape(self.path, self.landscape)
