"""Builds candidates' kernels, many in one child process, each at most once."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from knowledge.outcome import Failed, TimedOut
from operator_registry.hardware import HardwareSpec
from operator_registry.record import digest
from optimizer.evaluate import protocol as p
from optimizer.evaluate.sandbox import (
    ChildDiedError,
    ChildError,
    ChildTimedOutError,
    Limits,
    call,
)
from optimizer.targets.artefact import read_artefact
from optimizer.targets.target import Artefact, Build, BuildError

CHILD = "optimizer.evaluate.building:build"


@dataclass(frozen=True)
class Built:
    """Compiled kernels and the folder that they lie in."""

    folder: Path
    artefact: Artefact


def build(request: str) -> str:
    """Return what became of a `BuildRequest`; runs in a child process."""
    from optimizer.targets import make_target  # noqa: PLC0415 - compilers' doors, in a child only

    asked = p.BuildRequest.from_json(request)
    target = make_target(asked.hardware)
    results = target.build(asked.builds, [Path(folder) for folder in asked.folders])
    told = tuple(str(r) if isinstance(r, BuildError) else r for r in results)
    return p.BuildAnswer(results=told).to_json()


class Builder:
    """Builds for one hardware, and keeps what it built in a folder."""

    def __init__(self, hardware: HardwareSpec, folder: Path, *, limits: Limits) -> None:
        self._hardware = hardware
        self._folder = folder
        self._limits = limits

    def build(self, builds: Sequence[Build]) -> list[Built | Failed | TimedOut]:
        """Return what became of each build; one that hangs or kills its process harms only itself.

        Raises:
            ChildRaisedError: The target itself failed, so nothing is known of the candidates.
        """
        folders = [self._folder_of(build) for build in builds]
        done: dict[int, Built | Failed | TimedOut] = {}
        waiting = []
        for place, folder in enumerate(folders):
            kept = self._find(folder)
            if kept is None:
                waiting.append(place)
            else:
                done[place] = kept
        done |= dict(zip(waiting, self._build(builds, waiting), strict=True))
        return [done[place] for place in range(len(builds))]

    def _build(
        self, builds: Sequence[Build], places: Sequence[int]
    ) -> list[Built | Failed | TimedOut]:
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

    def _build_together(self, builds: Sequence[Build]) -> list[Built | Failed | TimedOut]:
        folders = [self._folder_of(build) for build in builds]
        request = p.BuildRequest(
            hardware=self._hardware, builds=tuple(builds), folders=tuple(map(str, folders))
        )
        answer = p.BuildAnswer.from_json(call(CHILD, request.to_json(), limits=self._limits))
        return [
            Failed(stage="build", log=result) if isinstance(result, str) else Built(folder, result)
            for folder, result in zip(folders, answer.results, strict=True)
        ]

    def _folder_of(self, build: Build) -> Path:
        return self._folder / digest(build, self._hardware.compile)[:32]

    def _find(self, folder: Path) -> Built | None:
        try:
            return Built(folder, read_artefact(folder, target=self._hardware.target))
        except OSError:
            return None


def _outcome(error: ChildError) -> Failed | TimedOut:
    if isinstance(error, ChildTimedOutError):
        return TimedOut(stage="build", deadline_s=error.deadline_s)
    return Failed(stage="build", log=str(error))
