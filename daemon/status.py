"""What is queued, what runs, what became of it: read from the store alone."""

import time
from collections.abc import Callable
from typing import Literal

from pydantic import Field, ValidationError

from daemon.agenda import in_order
from daemon.fleet.found import fits, is_elsewhere
from daemon.gate import Gate
from daemon.host import Host
from daemon.pause import find_pause
from daemon.planner import Work
from daemon.pulls.branches import held_mark
from daemon.pulls.pull_request import branch_name
from daemon.report import End
from operator_registry.hardware import HardwareSpec
from operator_registry.record import Record
from optimizer.store import Store, StoredGoal

_SHOWN = 20
State = Literal["running", "queued", "held"]
FindObstacle = Callable[[HardwareSpec], str | None]


class Waiting(Record):
    """A goal that has not ended."""

    operator: str
    hardware: str
    state: State
    why: tuple[str, ...]
    """Why it is wanted."""
    obstacle: str | None = None
    """Why it is not worked on here, or not now."""
    trials: int = 0
    waited_s: float


class Ended(Record):
    """A goal that has ended."""

    end: End
    at: float
    """Seconds since 1970."""


class Status(Record):
    """The daemon's state."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    registry: str | None
    """The origin; None where the daemon never ran."""
    processed: str | None
    """The revision whose goals are queued."""
    broken: str | None
    """The head, where it can't be read."""
    paused: str | None = None
    """Why nothing is searched."""
    waiting: tuple[Waiting, ...]
    """In agenda order."""
    ended: tuple[Ended, ...]
    """The newest first."""


def find_status(
    store: Store, host: Host, *, gate: Gate | None = None, clock: Callable[[], float] = time.time
) -> Status:
    """Return the state of the daemon that uses this store.

    Args:
        store: Its database.
        host: The machine that it works on.
        gate: What it asks before a search; None where nothing but the machine is looked at.
        clock: Seconds since 1970.
    """
    now, devices = clock(), store.devices()

    def find_obstacle(hardware: HardwareSpec) -> str | None:
        theirs = [device for device in devices if fits(device, hardware)]
        if theirs and all(device.rule for device in theirs):
            return "; ".join(f"{d.name} is {d.rule}: {d.why}" for d in theirs)
        return None if any(map(is_elsewhere, theirs)) else host.find_obstacle(hardware)

    pending = in_order(store.pending_goals(), kernels=(), budget_s=1.0)
    return Status(
        registry=store.recall("registry/origin"),
        processed=store.recall("registry/processed"),
        broken=store.recall("registry/broken") or None,
        paused=find_pause(store),
        waiting=tuple(_waiting(goal, store, find_obstacle, gate, now=now) for goal in pending),
        ended=tuple(
            Ended(end=_end(goal), at=goal.finished_at or 0.0)
            for goal in store.finished_goals(limit=_SHOWN)
        ),
    )


def _waiting(
    goal: StoredGoal, store: Store, find_obstacle: FindObstacle, gate: Gate | None, *, now: float
) -> Waiting:
    claimed = goal.holder is not None and (goal.held_until or 0.0) > now
    obstacle = None if claimed else _find_obstacle(goal, store, find_obstacle, gate)
    return Waiting(
        operator=goal.operator,
        hardware=goal.hardware,
        state="running" if claimed else "held" if obstacle else "queued",
        why=goal.reasons,
        obstacle=obstacle,
        trials=sum(store.outcome_counts(goal.key).values()),
        waited_s=round(max(0.0, now - goal.queued_at), 1),
    )


def _find_obstacle(
    goal: StoredGoal, store: Store, find_obstacle: FindObstacle, gate: Gate | None
) -> str | None:
    try:
        work = Work.from_json(goal.payload)
    except ValidationError:
        return "it was queued by another version of this program"
    if why := store.recall(held_mark(branch_name(goal.operator, goal.hardware))):
        return f"proven, and held back: {why}"
    if obstacle := find_obstacle(work.hardware):
        return obstacle
    return gate.find_obstacle(goal.hardware, budget_s=work.budget_s) if gate else None


def _end(goal: StoredGoal) -> End:
    try:
        return End.from_json(goal.result or "")
    except ValidationError:
        return End.of(goal, "failed", "recorded by another version of this program")
