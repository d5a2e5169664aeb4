"""What went on beside a measurement: load, clocks, temperature, others on the device."""

import csv
import io
import os
import subprocess
from dataclasses import dataclass
from typing import Final

import psutil

from knowledge.evidence import Conditions, DeviceState

_GPU_FIELDS: Final = "clocks.sm,clocks.mem,temperature.gpu,clocks_event_reasons.active"
_TIMEOUT_S: Final = 10.0
# Bits of the driver's reasons that slow a device down; idle (1) and asked-for clocks (2) do not.
_THROTTLES: Final = {
    0x4: "power cap", 0x8: "hardware slowdown", 0x20: "thermal (software)",
    0x40: "thermal (hardware)", 0x80: "power brake",
}  # fmt: skip


@dataclass(frozen=True)
class Glance:
    """The machine at one moment."""

    load: float
    """Runnable processes, averaged over a minute."""
    device: DeviceState | None
    others: int | None
    """Processes on the device that are not the judge's; None where nobody says."""


def glance(device: str) -> Glance:
    """Look at the machine now; never while anything is timed."""
    load = os.getloadavg()[0]
    if device != "cuda":
        return Glance(load, None, None)
    return Glance(load, _device_state(), _processes())


def describe(before: Glance, after: Glance) -> Conditions:
    """Return what stands in the evidence of glances before and after the pairs."""
    states = tuple(g.device for g in (before, after) if g.device is not None)
    counts = [g.others for g in (before, after) if g.others is not None]
    others = max(counts) if counts else None
    return Conditions(load=(before.load, after.load), device=states, other_processes=others)


def read_state(line: str) -> DeviceState | None:
    """Return the device's state from a line of ``nvidia-smi``; None where it can't be read."""
    cells = next(csv.reader(io.StringIO(line), skipinitialspace=True), [])
    try:
        sm_mhz, memory_mhz, celsius = (float(cell) for cell in cells[:3])
        reasons = int(cells[3], 16)
    except (ValueError, IndexError):
        return None
    slowed = tuple(word for bit, word in _THROTTLES.items() if reasons & bit)
    return DeviceState(sm_mhz=sm_mhz, memory_mhz=memory_mhz, celsius=celsius, slowed_by=slowed)


def _device_state() -> DeviceState | None:
    found = _ask(f"--query-gpu={_GPU_FIELDS}", "--format=csv,noheader,nounits")
    return read_state(found[0]) if found else None


def _processes() -> int | None:
    found = _ask("--query-compute-apps=pid", "--format=csv,noheader")
    if found is None:
        return None
    own = {os.getpid(), *(child.pid for child in psutil.Process().children(recursive=True))}
    return sum(line.strip() not in map(str, own) for line in found)


def _ask(*arguments: str) -> list[str] | None:
    """Return what ``nvidia-smi`` says of the first device; None where it says nothing."""
    try:
        said = subprocess.run(
            ["nvidia-smi", "--id=0", *arguments],
            capture_output=True,
            check=True,
            text=True,
            timeout=_TIMEOUT_S,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    return [line for line in said.splitlines() if line.strip()]
