"""One sample of one subject: what is asked of a process, and what comes of it."""

import time
from dataclasses import dataclass

from optimizer.evaluate import protocol as p
from optimizer.evaluate.census import Census
from optimizer.evaluate.process import Process
from optimizer.evaluate.summary import Reading


@dataclass(frozen=True)
class Turn:
    """A reading, and the form of its outputs where they were asked for."""

    reading: Reading
    outputs: tuple[p.Form | tuple[p.Form, ...], ...] = ()
    censuses: tuple[Census, Census] | None = None
    """Before and right after the call, where they were asked for."""


@dataclass(frozen=True)
class Setting:
    """How a sample's memory is set, and what is looked at beside its time."""

    shift: int = 0
    """See `protocol.Run.shift`."""
    roll: int = 0
    """How far the values of `rolled` are moved on; by 0 all stand as they were drawn."""
    rolled: tuple[int, ...] = ()
    checked: bool = False
    """Its outputs will be compared; the process is not told."""
    counted: bool = False
    """Count the process's threads, and all that it started, before and after the call."""


PLAIN = Setting()


def take_turn(
    process: Process,
    bound: tuple[p.Case, int, str],
    *,
    outputs: tuple[p.Stored, ...] | None,
    deadline_s: float,
    setting: Setting = PLAIN,
) -> Turn:
    """Let a process take one sample of a subject on a set of a case.

    Args:
        process: The process.
        bound: The case, the number of the set, and the subject's name.
        outputs: The judge's files for outputs that the worker copies.
        deadline_s: For each message.
        setting: How memory is set, and what else is looked at.

    Raises:
        ChildError: It did not answer.
    """
    case, number, subject = bound
    arm = p.Arm(
        case=case.key,
        set=number,
        subject=subject,
        shift=setting.shift,
        roll=setting.roll,
        rolled=setting.rolled,
    )
    asked = time.perf_counter_ns()
    process.tell(arm, p.Done, deadline_s=deadline_s)
    armed_ms = (time.perf_counter_ns() - asked) * 1e-6
    if process.place.device == "cpu":
        process.tell(p.WarmUp(), p.Done, deadline_s=deadline_s)
    before = process.census() if setting.counted else None
    began = time.perf_counter_ns()
    fired = process.tell(p.Fire(outputs=outputs), p.Fired, deadline_s=deadline_s)
    parent_ms = (time.perf_counter_ns() - began) * 1e-6
    censuses = (before, process.census()) if before is not None else None
    reading = _reading(fired.sample, parent_ms, armed_ms, checked=setting.checked)
    return Turn(reading, fired.outputs, censuses)


def _reading(sample: p.Sample, parent_ms: float, armed_ms: float, *, checked: bool) -> Reading:
    return Reading(
        device_ms=sample.device_ms,
        call_ms=sample.call_ms,
        faults=sample.faults,
        parent_ms=parent_ms,
        late_ms=sample.late_ms,
        dry=int(sample.dry),
        preemptions=sample.preemptions,
        checked=int(checked),
        armed_ms=armed_ms,
    )
