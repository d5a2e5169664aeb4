"""What is remembered of a device that failed, in a file that other processes read (no torch)."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from operator_registry.record import Record

CORDONED_AFTER: Final = 3
"""Fresh processes that failed, one after another, with none between that did not."""
FOLDER: Final = "devices"
"""In the folder of a judge."""
_FAULTS_KEPT: Final = 16


class DeviceFault(Record):
    """A fresh process could not use the device."""

    at: str
    reason: str


class DeviceState(Record):
    """What is remembered of a device."""

    device: str
    faults: tuple[DeviceFault, ...] = ()
    """Since a process last found it well."""

    @property
    def cordoned(self) -> bool:
        """Return whether nothing may run on it any more."""
        return len(self.faults) >= CORDONED_AFTER

    def after(self, reason: str, *, at: str) -> "DeviceState":
        """Return the state once another fresh process has failed."""
        faults = (*self.faults, DeviceFault(at=at, reason=reason))[-_FAULTS_KEPT:]
        return self.model_copy(update={"faults": faults})


def remedy(file: Path) -> str:
    """Return what is to be done about a cordoned device whose state stands in a file."""
    return f"Reset the device or restart the machine, then delete {file}"


def read_state(file: Path) -> DeviceState | None:
    """Return what is remembered of a device; None where that is nothing, or damaged."""
    with contextlib.suppress(OSError, ValidationError):
        return DeviceState.from_json(file.read_text(encoding="utf-8"))
    return None


def find_states(folder: Path) -> Iterator[tuple[Path, DeviceState]]:
    """Yield each device of which faults are remembered under a state folder, with its file."""
    for file in sorted({*folder.glob(f"{FOLDER}/*.json"), *folder.glob(f"*/{FOLDER}/*.json")}):
        state = read_state(file)
        if state is not None and state.faults:
            yield file, state
