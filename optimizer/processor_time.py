"""How much processor time this process and all that it started have taken."""

import os
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_USED: Final = slice(11, 15)
"""In ``/proc/PID/stat`` behind the name: own time, and that of children that ended (proc(5))."""


def count_cpu_s() -> float:
    """Return the seconds so far; what ended without its parent's asking is not in it."""
    ticks, waiting = 0, [str(os.getpid())]
    while waiting:
        folder = _PROC / waiting.pop()
        try:
            stat = (folder / "stat").read_text(encoding="utf-8")
            ticks += sum(map(int, stat.rpartition(")")[2].split()[_USED]))
            for children in folder.glob("task/*/children"):
                waiting += children.read_text(encoding="utf-8").split()
        except OSError:
            # It has ended; its parent has counted it, or will have the next time.
            continue
    return ticks / os.sysconf("SC_CLK_TCK")
