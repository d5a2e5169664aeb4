"""How much gets ready side by side beside a device, before anything is timed (pure)."""

import math
from collections.abc import Sequence
from typing import Final

import torch

from operator_registry.hardware import HardwareSpec
from optimizer.evaluate.cases import CheckedCase
from optimizer.evaluate.process import Place

_PROCESSES: Final = 3
"""Of a pair."""
_MOST: Final = 6
_CONTEXT_BYTES, _COPIES = 1 << 30, 6
"""What a process takes of a device: for itself, and of inputs, with outputs and temporaries."""
_SHARE: Final = 0.5
"""Of a device's memory: what pairs that get ready side by side may take."""


def count_abreast(place: Place, hardware: HardwareSpec, input_bytes: int) -> int:
    """Return how many pairs may get ready side by side: what there are cores and memory for.

    On a processor one: it is the device itself, and has nothing to spare.

    Args:
        place: Where they run.
        hardware: The device.
        input_bytes: All that each of their processes is given.
    """
    if place.device == "cpu":
        return 1
    held = input_bytes * _COPIES + _CONTEXT_BYTES
    by_memory = int(_SHARE * hardware.limits.dram_gb * 1e9 / (_PROCESSES * held))
    return max(1, min(_MOST, place.threads // _PROCESSES, by_memory))


def bytes_of_inputs(cases: Sequence[CheckedCase]) -> int:
    """Return how much the inputs of cases take, in all their sets."""
    files = [
        file
        for case in cases
        for one in case.case.sets
        for value in one
        for file in (value if isinstance(value, tuple) else (value,))
    ]
    return sum(math.prod(f.shape) * getattr(torch, f.dtype).itemsize for f in files)
