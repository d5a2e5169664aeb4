"""How much memory one call takes, as PyTorch's allocators tell it."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch.profiler import ProfilerActivity, profile

Returned = TypeVar("Returned")
_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_RESET_PEAK = "5"
_KIB = 1024


@dataclass(frozen=True)
class Taken:
    """Memory that a call took beyond what was there before it."""

    traced_bytes: int
    """The most at a time that PyTorch's allocator gave out."""
    resident_bytes: int
    """By how much the process grew in a first call; 0 on a device, or where none can tell."""


def weigh(call: Callable[[], Returned], *, device: str) -> tuple[Taken, Returned]:
    """Return what a call takes, and what it returned.

    It is called once on a device and twice on a processor, where the first call shows what native
    code takes for itself, as far as the process held no such memory before.
    """
    if device == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        returned = call()
        torch.cuda.synchronize()
        return Taken(torch.cuda.max_memory_allocated() - before, 0), returned
    resident_bytes = _growth_of(call)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what the profiler lacks on a processor
        with profile(
            activities=[ProfilerActivity.CPU], profile_memory=True, acc_events=True
        ) as profiler:
            returned = call()
    raw: Any = profiler.profiler  # the readings themselves, which its types don't tell of
    events = raw.kineto_results.events() if raw is not None else []
    changes = [(e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]"]
    return Taken(peak_of([change for _, change in sorted(changes)]), resident_bytes), returned


def peak_of(changes: list[int]) -> int:
    """Return the greatest running sum of what was taken and, as negative numbers, given back."""
    now = most = 0
    for change in changes:
        now += change
        most = max(most, now)
    return most


def _growth_of(call: Callable[[], object]) -> int:
    try:
        _CLEAR.write_text(_RESET_PEAK, encoding="ascii")
        before = _status_bytes("VmRSS")
    except OSError:
        call()
        return 0
    call()
    return max(0, _status_bytes("VmHWM") - before)


def _status_bytes(name: str) -> int:
    for line in _STATUS.read_text(encoding="ascii").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * _KIB
    return 0
