"""Whether a device still computes right, and what is done with one that keeps failing.

A candidate that breaks its own context harms nobody else: its process is ended, and a fresh one is
well. A device on which fresh processes fail again and again is *cordoned*: nothing is run on it any
more until somebody has looked at it.
"""

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from optimizer.errors import RunnerError
from optimizer.evaluate.child_errors import ChildError
from optimizer.evaluate.device_state import FOLDER, DeviceState, read_state, remedy
from optimizer.evaluate.process import Process
from optimizer.targets.driver import open_driver

_PAUSE_S: Final = 2.0
"""A driver needs a while to get over a process that it killed."""


class CordonedError(RunnerError):
    """A device failed too often; somebody must look at it."""

    def __init__(self, state: DeviceState, file: Path) -> None:
        last = state.faults[-1]
        super().__init__(
            f"{state.device} is cordoned: {len(state.faults)} fresh processes could not use it, "
            f"the last at {last.at}: {last.reason}. {remedy(file)}"
        )
        self.file = file


@dataclass(frozen=True)
class Watch:
    """Watches one device; what it knows is kept in a folder."""

    folder: Path
    device: str

    @property
    def file(self) -> Path:
        """Return where the device's state stands; to delete it lifts the cordon."""
        return self.folder / FOLDER / f"{self.device}.json"

    def refuse_cordoned(self) -> None:
        """Refuse a device that nothing may run on.

        Raises:
            CordonedError: It is cordoned.
        """
        state = self._read()
        if state.cordoned:
            raise CordonedError(state, self.file)

    def open(self, start: Callable[[], Process], end: Callable[[], None]) -> Process:
        """Return a process that finds the device well.

        Args:
            start: Returns the process in use, or a fresh one once `end` was called.
            end: Ends it.

        Raises:
            CordonedError: The device is cordoned, or now is.
        """
        self.refuse_cordoned()
        while True:
            used = False
            try:
                process = start()
                used = bool(process.taken)
                process.probe()
            except (ChildError, RunnerError) as error:
                end()
                if not used:
                    self._note_fault(str(error).strip().splitlines()[-1])
                    time.sleep(_PAUSE_S)
            else:
                self.file.unlink(missing_ok=True)
                return process

    def _note_fault(self, reason: str) -> None:
        state = self._read().after(reason, at=datetime.now(UTC).isoformat(timespec="seconds"))
        self.file.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.file.with_suffix(".new")
        fresh.write_text(state.to_json(indent=1), encoding="utf-8")
        fresh.replace(self.file)
        if state.cordoned:
            raise CordonedError(state, self.file)

    def _read(self) -> DeviceState:
        return read_state(self.file) or DeviceState(device=self.device)


def name_device(kind: str) -> str:
    """Return a device's own name, by which it is known again; the kind's where it tells none."""
    with contextlib.suppress(OSError):
        return f"{kind}-{open_driver().device_uuid(0)}"
    return kind
