"""A landscape: what became of every point of a schedule space, tried once each by the judge."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationError, model_validator

from knowledge.evaluation import Environment
from knowledge.fitness import find_best_peer
from knowledge.outcome import (
    Cheated,
    Failed,
    Incorrect,
    Outcome,
    Passed,
    PeerTime,
    TimedOut,
    WorkloadTime,
)
from operator_registry.record import Identifier, Record, Slug
from operator_registry.spec import Workload
from optimizer.bench import replace_file
from optimizer.candidate import Candidate, CandidateError
from optimizer.errors import LandscapeError
from optimizer.landscapes.space import Structure, points

NEAR = 1.05
"""A point within this factor of the optimum is as good as it."""
MOST_NEAR = 0.03
"""A landscape with a larger share of such points is too easy to tell searches apart."""
_DIGITS = 5
_LONGEST_LOG = 160

Failure = Annotated[Incorrect | Failed | TimedOut | Cheated, Field(discriminator="kind")]


class Failures(Record):
    """Points that failed alike."""

    outcome: Failure
    points: tuple[int, ...] = Field(min_length=1)
    """Their places, ascending."""


class Landscape(Record):
    """Every point of a space with its time, or why it has none.

    Points are numbered from 0: structure by structure, and within one by its tunables in the order
    in which the code states them, the last changing fastest.
    """

    schema_version: Literal[1] = Field(default=1, alias="schema")
    name: Slug
    operator: Identifier
    operator_digest: str
    workload: Workload
    hardware: Slug
    environment: Environment
    judge_version: str
    commit: str
    baseline: PeerTime | None = None
    """The fastest peer under eager; absent until a point passed."""
    near_share: float | None = None
    """The share of points within 5 % of the optimum; absent until all are there."""
    structures: tuple[Structure, ...] = Field(min_length=1)
    device_ms: tuple[float | None, ...]
    """One for each point; None where it did not pass, or was not tried yet."""
    failures: tuple[Failures, ...] = ()

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        try:
            size = sum(structure.size for structure in self.structures)
        except CandidateError as error:
            raise ValueError(str(error)) from error
        if len(self.device_ms) != size:
            msg = f"the structures have {size} points, device_ms has {len(self.device_ms)}"
            raise ValueError(msg)
        if any(ms is not None and ms <= 0 for ms in self.device_ms):
            msg = "device_ms has a time that is not above 0"
            raise ValueError(msg)
        failed = [place for failures in self.failures for place in failures.points]
        if len(set(failed)) != len(failed):
            msg = "a point failed in two ways"
            raise ValueError(msg)
        if wrong := [p for p in failed if not 0 <= p < size or self.device_ms[p] is not None]:
            msg = f"failed, but has a time or is none of the {size} points: {wrong[0]}"
            raise ValueError(msg)
        near_share = find_near_share(self.device_ms, self.failures)
        if self.near_share != near_share:
            msg = f"near_share is {self.near_share}, the times say {near_share}"
            raise ValueError(msg)
        if self.baseline is None and any(ms is not None for ms in self.device_ms):
            msg = "points passed, but there is no baseline"
            raise ValueError(msg)
        return self

    @property
    def size(self) -> int:
        """Return how many points there are."""
        return len(self.device_ms)

    @cached_property
    def failed(self) -> Mapping[int, Failure]:
        """Return how each point that failed did."""
        return {place: several.outcome for several in self.failures for place in several.points}

    @cached_property
    def missing(self) -> tuple[int, ...]:
        """Return the points that were not tried yet."""
        return tuple(
            place
            for place, ms in enumerate(self.device_ms)
            if ms is None and place not in self.failed
        )

    @property
    def optimum_ms(self) -> float:
        """Return the least time.

        Raises:
            ValueError: No point passed.
        """
        return min(ms for ms in self.device_ms if ms is not None)

    @cached_property
    def candidates(self) -> tuple[Candidate, ...]:
        """Return every point as a candidate."""
        return tuple(points(self.structures))

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Return each point's place by its candidate's id."""
        return {candidate.id: place for place, candidate in enumerate(self.candidates)}

    def is_near(self, place: int) -> bool:
        """Return whether a point is within 5 % of the optimum."""
        ms = self.device_ms[place]
        return ms is not None and ms <= NEAR * self.optimum_ms

    def outcome(self, place: int) -> Outcome:
        """Return how the judge's trial of a point ended.

        Raises:
            KeyError: It was not tried.
        """
        ms = self.device_ms[place]
        if ms is None:
            return self.failed[place]
        # The figure that counts here is device_ms: the host's time would choose another one.
        peers = [
            peer.model_copy(update={"call_ms": peer.device_ms}) for peer in (self.baseline,) if peer
        ]
        time = WorkloadTime(
            workload=self.workload.name,
            weight=1.0,
            device_ms=ms,
            call_ms=ms,
            peers=tuple(peers),
        )
        return Passed(times=(time,))

    def filled(self, outcomes: Mapping[int, Outcome]) -> "Landscape":
        """Return the landscape with more of its points tried.

        Raises:
            IndexError: A point passed, but was not timed: there was no device.
        """
        device_ms = list(self.device_ms)
        failed: dict[int, Failure] = dict(self.failed)
        baseline = self.baseline
        for place, outcome in outcomes.items():
            if isinstance(outcome, Passed):
                time = outcome.times[0]
                baseline = baseline or find_best_peer(time, "device_ms")
                failed.pop(place, None)
                device_ms[place] = _rounded(time.device_ms)
            else:
                failed[place] = _short(outcome)
                device_ms[place] = None
        grouped = _grouped(failed)
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return Landscape(
            **fields
            | {
                "baseline": baseline,
                "device_ms": tuple(device_ms),
                "failures": grouped,
                "near_share": find_near_share(device_ms, grouped),
            }
        )


def find_near_share(
    device_ms: Sequence[float | None], failures: Sequence[Failures]
) -> float | None:
    """Return the share of points within 5 % of the optimum; None until all points are there."""
    times = [ms for ms in device_ms if ms is not None]
    tried = len(times) + sum(len(several.points) for several in failures)
    if tried < len(device_ms) or not times:
        return None
    near = sum(ms <= NEAR * min(times) for ms in times)
    return round(near / len(device_ms), _DIGITS)


def load_landscape(path: Path) -> Landscape:
    """Return the landscape that a file holds.

    Raises:
        LandscapeError: The file is not there, is damaged or of another version; says where.
    """
    try:
        return Landscape.from_json(path.read_bytes())
    except OSError as error:
        raise LandscapeError(path, str(error)) from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the whole"
        raise LandscapeError(path, f"{where}: {first['msg']}") from error


def load_landscapes(folder: Path) -> tuple[Landscape, ...]:
    """Return all landscapes of a folder, by name.

    Raises:
        LandscapeError: A file is damaged, or lacks points, or none of its points passed.
    """
    found = []
    for path in sorted(folder.glob("*.json")):
        landscape = load_landscape(path)
        if landscape.missing:
            reason = f"{len(landscape.missing)} of {landscape.size} points were not tried yet"
            raise LandscapeError(path, reason)
        if landscape.near_share is None:
            raise LandscapeError(path, "no point passed")
        found.append(landscape)
    if not found:
        raise LandscapeError(folder, "there is no landscape; `bench landscapes` records them")
    return tuple(found)


def write_landscape(path: Path, landscape: Landscape) -> None:
    """Write a landscape's file; whoever reads sees all of it or what was there before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, landscape.to_json() + "\n")


def _rounded(ms: float) -> float:
    return float(f"{ms:.{_DIGITS}g}")


def _grouped(failed: Mapping[int, Failure]) -> tuple[Failures, ...]:
    groups: dict[str, tuple[Failure, list[int]]] = {}
    for place in sorted(failed):
        outcome = failed[place]
        groups.setdefault(outcome.to_json(), (outcome, []))[1].append(place)
    return tuple(Failures(outcome=o, points=tuple(places)) for o, places in groups.values())


def _short(failure: Failure) -> Failure:
    """Return a failure without what differs from run to run, so that many are alike."""
    match failure:
        case Incorrect():
            return Incorrect(reason=_first_line(failure.reason))
        case Failed():
            return failure.model_copy(update={"log": _first_line(failure.log)})
        case Cheated():
            return failure.model_copy(update={"detail": _first_line(failure.detail)})
        case TimedOut():
            return failure


def _first_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[0][:_LONGEST_LOG] if lines else ""
