"""Which devices there are, who has them, and who waits: read from the store alone."""

from typing import Literal

from pydantic import Field, ValidationError

from daemon.agenda import in_order
from daemon.fleet.found import fits
from daemon.planner import Work
from operator_registry.record import Record
from optimizer.store import Store, StoredDevice, StoredGoal
from optimizer.store.rows import DeviceState


class DeviceRow(Record):
    """A device, as people are shown it."""

    name: str
    hardware: str
    host: str
    state: DeviceState
    why: str
    """Why it is cordoned or draining."""
    task: str
    """What it is leased for."""
    holder: str
    for_s: float
    """Since it came into its state."""


class GoalRow(Record):
    """A goal that has not ended, as people are shown it."""

    operator: str
    hardware: str
    runs_on: str | None
    """The device that its search has; None while it waits."""
    devices: int
    """How many there are that it could be given, now or later."""
    waited_s: float


class Overview(Record):
    """The fleet."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    devices: tuple[DeviceRow, ...]
    queue: tuple[GoalRow, ...]
    """In agenda order."""


def find_overview(store: Store, *, now: float) -> Overview:
    """Return what the fleet is doing.

    Args:
        store: The daemon's.
        now: Seconds since 1970.
    """
    devices = store.devices()
    tasks = {device.task: device.name for device in devices if device.is_held(now)}
    goals = in_order(store.pending_goals(), kernels=(), budget_s=1.0)
    return Overview(
        devices=tuple(_device(device, now) for device in devices),
        queue=tuple(
            GoalRow(
                operator=goal.operator,
                hardware=goal.hardware,
                runs_on=tasks.get(f"{goal.operator} on {goal.hardware}"),
                devices=_count(goal, devices),
                waited_s=round(max(0.0, now - goal.queued_at), 1),
            )
            for goal in goals
        ),
    )


def find_device(devices: tuple[StoredDevice, ...], name: str) -> StoredDevice | None:
    """Return the device of a name, or of the end of one that no other device's name has."""
    exact = [device for device in devices if device.name == name]
    near = [device for device in devices if device.name.endswith(f"/{name}")]
    found = exact or near
    return found[0] if len(found) == 1 else None


def _device(device: StoredDevice, now: float) -> DeviceRow:
    held = device.is_held(now)
    return DeviceRow(
        name=device.name,
        hardware=device.hardware,
        host=device.host,
        state=device.state(now),
        why=device.why,
        task=device.task if held else "",
        holder=(device.holder or "").partition("#")[0] if held else "",
        for_s=round(max(0.0, now - device.since), 1),
    )


def _count(goal: StoredGoal, devices: tuple[StoredDevice, ...]) -> int:
    try:
        work = Work.from_json(goal.payload)
    except ValidationError:  # queued by another version of this program
        return 0
    return sum(device.rule is None and fits(device, work.hardware) for device in devices)
