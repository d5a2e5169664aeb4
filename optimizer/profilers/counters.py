"""The door to Nsight Compute: what the device counts while a call's kernels run.

The tool runs the process that it counts in, and each kernel several times over; so a whole worker
is run under it, in a child of the judge's, once and apart from everything that is timed.
"""

import csv
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from knowledge.profile import KernelCounters, StallReason
from optimizer.evaluate import protocol as p

CHILD: Final = f"{__name__}:count"
_TOOL: Final = "ncu"
_TIME: Final = "gpu__time_duration.sum"
_BYTES: Final = ("dram__bytes_read.sum", "dram__bytes_write.sum")
_REASONS: Final = (
    "barrier", "branch_resolving", "dispatch_stall", "drain", "imc_miss", "lg_throttle",
    "long_scoreboard", "math_pipe_throttle", "membar", "mio_throttle", "misc", "no_instruction",
    "not_selected", "selected", "short_scoreboard", "sleeping", "tex_throttle", "wait",
)  # fmt: skip
_STALL: Final = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
_WORKING: Final = frozenset({"selected", "not_selected"})
"""Warps that could go on: no stalls, though the device lists them among them."""
_SHOWN_REASONS: Final = 3
_MOST_KERNELS: Final = 16
_UNITS: Final[Mapping[str, float]] = {
    "ns": 1e-6, "nsecond": 1e-6, "us": 1e-3, "usecond": 1e-3, "ms": 1.0, "msecond": 1.0,
    "s": 1e3, "second": 1e3,
    "byte": 1.0, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "": 1.0,
}  # fmt: skip
"""What a unit is in milliseconds or bytes."""
_TOOLS_WORD: Final = re.compile(r"==(?:ERROR|PROF)== (.*)")
_TOOL_S: Final = 150


def find_counter_tool() -> tuple[Path, ...]:
    """Return what a process must see to count: the tool's folders; nothing where it is absent."""
    found = shutil.which(_TOOL)
    if found is None:
        return ()
    return tuple(dict.fromkeys((Path(found).parent, Path(found).resolve().parent)))


def count(request: str) -> str:
    """Return the answer to a `CountRequest`; runs in a child process."""
    file = Path("count.json")
    file.write_text(request, encoding="utf-8")
    command = (
        *(_TOOL, "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none"),
        *("--target-processes", "application-only", "--profile-from-start", "off"),
        *("--launch-count", str(_MOST_KERNELS), "--metrics", ",".join(_metrics())),
        *(sys.executable, "-P", "-m", "optimizer.profilers.counted", str(file)),
    )
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TOOL_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return p.CountAnswer(fault=f"{_TOOL} failed: {error}").to_json()
    counters = read_counters(done.stdout)
    if counters:
        return p.CountAnswer(counters=counters).to_json()
    return p.CountAnswer(fault=_find_fault(done.stdout + done.stderr)).to_json()


def read_counters(text: str) -> tuple[KernelCounters, ...]:
    """Return what a table of the tool's says of each kernel; nothing where there is no table."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    units, *rows = list(csv.DictReader(lines)) or [{}]
    found = []
    for row in rows:
        try:
            found.append(_read(row, units))
        except (KeyError, ValueError):
            continue  # a kernel that the tool could not count
    return tuple(found)


def _read(row: Mapping[str, str], units: Mapping[str, str]) -> KernelCounters:
    took_ms = _number(row, units, _TIME)
    moved = sum(_number(row, units, name) for name in _BYTES)
    return KernelCounters(
        kernel=row["Kernel Name"].partition("(")[0],
        device_ms=took_ms,
        dram_bytes=moved,
        bandwidth_gb_s=moved / took_ms / 1e6,
        stalls=tuple(_stalls(row)),
    )


def _stalls(row: Mapping[str, str]) -> Iterator[StallReason]:
    """Yield the most frequent reasons, each with its share of all warps' states."""
    states = {}
    for reason in _REASONS:
        told = row.get(_STALL.format(reason), "").replace(",", "")
        if told.replace(".", "", 1).isdigit():
            states[reason] = float(told)
    total = sum(states.values())
    waits = {reason: share for reason, share in states.items() if reason not in _WORKING}
    for reason in sorted(waits, key=lambda name: -waits[name])[:_SHOWN_REASONS]:
        if waits[reason] > 0:
            yield StallReason(reason=reason, share=round(waits[reason] / total, 4))


def _number(row: Mapping[str, str], units: Mapping[str, str], name: str) -> float:
    """Return a figure in milliseconds or bytes.

    Raises:
        KeyError: The tool does not tell it, or in another unit.
        ValueError: It is no number.
    """
    return float(row[name].replace(",", "")) * _UNITS[units[name]]


def _metrics() -> list[str]:
    return [_TIME, *_BYTES, *map(_STALL.format, _REASONS)]


def _find_fault(text: str) -> str:
    """Return the tool's last word, and the last line of what it ran: as a rule an exception."""
    words = _TOOLS_WORD.findall(text)[-1:]
    others = [line for line in text.splitlines() if line.strip() and not line.startswith("==")]
    said = "; ".join(word.strip() for word in [*words, *others[-1:]])
    return f"{_TOOL} counted nothing: {said or 'it said nothing'}"
