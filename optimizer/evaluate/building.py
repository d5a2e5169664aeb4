"""Builds candidates' kernels ahead of the device, in child processes, each kernel at most once."""

import os
import shutil
import signal
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path

from knowledge.outcome import Failed, TimedOut
from operator_registry.hardware import HardwareSpec
from operator_registry.record import digest
from optimizer.evaluate import protocol as p
from optimizer.evaluate.sandbox import (
    Child,
    ChildDiedError,
    ChildError,
    ChildTimedOutError,
    Limits,
    start,
)
from optimizer.store.artefacts import touch
from optimizer.targets.artefact import read_artefact
from optimizer.targets.target import Artefact, Build, BuildError

CHILD = "optimizer.evaluate.building:build"
_NICE = 10
_BUILT_TOGETHER = ("cpu",)
"""Targets whose compiler's start costs most of a build; they share the cores out by themselves."""
_FOR_THE_JUDGE = 2
"""Cores that builds leave free, where any are left: a device's worker and its judge need theirs."""


@dataclass(frozen=True)
class Built:
    """Compiled kernels and the folder that they lie in."""

    folder: Path
    artefact: Artefact


Outcome = Built | Failed | TimedOut
Group = Future[list[Outcome]]


@dataclass(frozen=True)
class Pending:
    """A build that was begun, perhaps together with others."""

    _group: Group
    _place: int

    @classmethod
    def of(cls, outcome: Outcome) -> "Pending":
        """Return a build that ended at once."""
        group: Group = Future()
        group.set_result([outcome])
        return cls(group, 0)

    @property
    def done(self) -> bool:
        """Return whether the build has ended."""
        return self._group.done()

    def result(self) -> Outcome:
        """Return what became of the build, once it has ended.

        Raises:
            ChildRaisedError: The target itself failed, so nothing is known of the candidate.
        """
        return self._group.result()[self._place]


def build(request: str) -> str:
    """Return what became of a `BuildRequest`; runs in a child process."""
    from optimizer.targets import make_target  # noqa: PLC0415 - compilers' doors, in a child only

    asked = p.BuildRequest.from_json(request)
    if asked.hardware.target not in _BUILT_TOGETHER:
        os.nice(_NICE)  # what is built ahead must not slow down who is on the device
    target = make_target(asked.hardware)
    results = target.build(asked.builds, [Path(folder) for folder in asked.folders])
    told = tuple(str(r) if isinstance(r, BuildError) else r for r in results)
    return p.BuildAnswer(results=told).to_json()


class Builder:
    """Builds for one hardware, and keeps what it built in a folder.

    Where a compiler takes several candidates at once, a batch is built in one child. Else each
    candidate has a child of its own, which no other candidate's code ever runs in, and as many
    are at work as there are cores to spare.
    """

    def __init__(self, hardware: HardwareSpec, folder: Path, *, limits: Limits) -> None:
        self._hardware = hardware
        self._folder = folder
        self._limits = limits
        self._together = hardware.target in _BUILT_TOGETHER
        # A child dies with the thread that started it, so the threads live as long as the builder.
        self._pool = ThreadPoolExecutor(1 if self._together else _spare_cores())
        self._children: set[Child] = set()
        self._under_way: dict[Path, Pending] = {}
        self._begun: list[Group] = []
        self._lock = threading.Lock()
        self._abandoning = False

    def close(self) -> None:
        """Abandon what is not built yet."""
        self.abandon()
        self._pool.shutdown()

    def abandon(self) -> None:
        """Return once nothing is being built any more; what had not ended has no result."""
        for group in self._begun:
            group.cancel()
        with self._lock:
            self._abandoning = True
            for child in self._children:
                if child.alive:
                    # Its own thread waits for it, and clears up after it.
                    os.kill(child.pid, signal.SIGKILL)
        wait(self._begun)
        self._begun, self._under_way = [], {}
        self._abandoning = False

    def start(self, builds: Sequence[Build]) -> list[Pending]:
        """Begin some builds, and return at once."""
        self._begun = [group for group in self._begun if not group.done()]
        if self._together:
            group = self._submit(builds)
            return [Pending(group, place) for place in range(len(builds))]
        self._under_way = {f: pending for f, pending in self._under_way.items() if not pending.done}
        return [self._start_alone(build) for build in builds]

    def build(self, builds: Sequence[Build]) -> list[Outcome]:
        """Return what became of each build; one that hangs or kills its process harms only itself.

        Raises:
            ChildRaisedError: The target itself failed, so nothing is known of the candidates.
        """
        return [pending.result() for pending in self.start(builds)]

    def forget(self, builds: Sequence[Build]) -> None:
        """Remove what is kept of some builds: they are then built from their source."""
        _remove([self._folder_of(build) for build in builds])

    def _start_alone(self, build: Build) -> Pending:
        """Begin a build, unless another candidate's that is the same is under way."""
        folder = self._folder_of(build)
        if folder not in self._under_way:
            self._under_way[folder] = Pending(self._submit([build]), 0)
        return self._under_way[folder]

    def _submit(self, builds: Sequence[Build]) -> Group:
        group = self._pool.submit(self._build_group, builds)
        self._begun.append(group)
        return group

    def _build_group(self, builds: Sequence[Build]) -> list[Outcome]:
        kept = [self._find(self._folder_of(build)) for build in builds]
        waiting = [place for place, found in enumerate(kept) if found is None]
        done: dict[int, Outcome] = {place: found for place, found in enumerate(kept) if found}
        done |= dict(zip(waiting, self._build(builds, waiting), strict=True))
        return [done[place] for place in range(len(builds))]

    def _build(self, builds: Sequence[Build], places: Sequence[int]) -> list[Outcome]:
        if not places:
            return []
        wanted = [builds[place] for place in places]
        try:
            return self._build_together(wanted)
        except (ChildTimedOutError, ChildDiedError) as error:
            if len(places) == 1:
                return [_outcome(error)]
        half = len(places) // 2
        return self._build(builds, places[:half]) + self._build(builds, places[half:])

    def _build_together(self, builds: Sequence[Build]) -> list[Outcome]:
        folders = [self._folder_of(build) for build in builds]
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
        request = p.BuildRequest(
            hardware=self._hardware, builds=tuple(builds), folders=tuple(map(str, folders))
        )
        try:
            answer = p.BuildAnswer.from_json(self._ask(request.to_json(), folders))
        except ChildError:
            _remove(folders)
            raise
        done = list(zip(folders, answer.results, strict=True))
        _remove([folder for folder, result in done if isinstance(result, str)])
        return [
            Failed(stage="build", log=result) if isinstance(result, str) else Built(folder, result)
            for folder, result in done
        ]

    def _ask(self, request: str, folders: Sequence[Path]) -> str:
        """Return a child's answer; of another one where somebody kills the first from outside."""
        # It sees the folders that it builds into, and no other candidate's.
        limits = replace(self._limits, write=tuple(folders))
        try:
            return self._ask_one(request, limits)
        except ChildDiedError as error:
            if self._abandoning or not error.was_killed:
                raise
        return self._ask_one(request, limits)

    def _ask_one(self, request: str, limits: Limits) -> str:
        with self._lock:
            if self._abandoning:
                raise ChildDiedError(-signal.SIGKILL, "abandoned")
            child = start(CHILD, limits=limits)
            self._children.add(child)
        try:
            return child.ask(request, deadline_s=limits.wall_s)
        finally:
            with self._lock:
                self._children.discard(child)
            child.kill()

    def _folder_of(self, build: Build) -> Path:
        return self._folder / digest(build, self._hardware.compile)[:32]

    def _find(self, folder: Path) -> Built | None:
        try:
            built = Built(folder, read_artefact(folder, target=self._hardware.target))
        except OSError:
            return None
        touch(folder)
        return built


def _remove(folders: Sequence[Path]) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def _spare_cores() -> int:
    return max(1, len(os.sched_getaffinity(0)) - _FOR_THE_JUDGE)


def _outcome(error: ChildError) -> Failed | TimedOut:
    if isinstance(error, ChildTimedOutError):
        return TimedOut(stage="build", deadline_s=error.deadline_s)
    return Failed(stage="build", log=str(error))
