"""The worker's end of a tray: outputs are made in memory that the judge lends."""

import mmap
import os
from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor

from optimizer.evaluate.handing import fetch
from optimizer.evaluate.protocol import Lend, LentMemory
from optimizer.prepared import Allocate

Asked = tuple[tuple[int, ...], torch.dtype]


class Lent:
    """Makes the outputs of a call, one after another, in the slots of its case.

    Without a slot, or without memory that was lent, they are made in the worker's own memory. What
    the last call on a case asked for lies ready before the next one, and each output is also made,
    in vain, as it is for a user: so a call takes as long as with memory of its own.
    """

    def __init__(self, device: str, own: Allocate) -> None:
        self.device = device
        self._own = own
        self._path = ""
        self._memory = torch.empty(0, dtype=torch.uint8)
        self._slots: dict[str, tuple[int, ...]] = {}
        self._asked: dict[str, list[Asked]] = {}
        self._ready: list[tuple[Asked, Tensor]] = []
        self._case = ""
        self._next = 0
        self.shift = 0
        """Added to the place of each slot."""
        self.twice = True
        """Whether each output is made in vain too: not where memory is weighed, and all counts."""

    def serve(self, device: str, own: Allocate) -> None:
        """Note the device and what makes own memory; what is mapped already stays."""
        self.device = device
        self._own = own

    def take(self, lend: Lend) -> None:
        """Map the memory, unless it is mapped already, and note a case's slots."""
        if lend.memory.path != self._path:
            self._ready.clear()
            self._memory = map_lent(lend.memory, self.device)
            self._path = lend.memory.path
        self._slots[lend.case] = lend.slots
        self._asked.pop(lend.case, None)

    def drop(self, case: str) -> None:
        """Forget a case."""
        self._slots.pop(case, None)
        self._asked.pop(case, None)

    def arm(self, case: str, *, shift: int) -> None:
        """Lay a case's outputs ready, as its last call asked for them."""
        self.shift = shift
        self._case = case
        slots = self._slots.get(case, ())
        asked = self._asked.get(case, [])
        self._ready = [(a, self._cut(slot, *a)) for a, slot in zip(asked, slots, strict=False)]

    def holds(self, tensor: Tensor) -> bool:
        """Return whether a tensor lies in the lent memory."""
        begin = self._memory.data_ptr()
        return begin <= tensor.data_ptr() < begin + self._memory.numel()

    def begin(self, case: str) -> None:
        """Begin a call: the next output is its first."""
        if case != self._case:
            self.arm(case, shift=self.shift)
        self._next = 0

    def allocate(
        self, size: Sequence[int], /, *, dtype: torch.dtype, device: torch.device
    ) -> Tensor:
        """Return the call's next output; see `Allocate`."""
        place, self._next = self._next, self._next + 1
        asked = (tuple(size), dtype)
        if self.twice:
            torch.empty(size, dtype=dtype, device=device)
        if place < len(self._ready) and self._ready[place][0] == asked:
            return self._ready[place][1]
        slots = self._slots.get(self._case, ())
        if place >= len(slots):
            return self._own(size, dtype=dtype, device=device)
        del self._ready[place:]
        tensor = self._cut(slots[place], *asked)
        if place == len(self._ready):
            self._ready.append((asked, tensor))
            self._asked[self._case] = [one for one, _ in self._ready]
        return tensor

    def _cut(self, slot: int, size: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        begin = slot + self.shift
        part = self._memory[begin : begin + prod(size) * dtype.itemsize]
        return part.view(dtype).view(size)


def map_lent(memory: LentMemory, device: str) -> Tensor:
    """Return lent memory as bytes; the judge sees what is written there.

    Raises:
        OSError: It can't be mapped.
    """
    if device == "cuda":
        # Only here: the driver is of no use elsewhere.
        from optimizer.targets.device_memory import map_handed  # noqa: PLC0415

        file = fetch(memory.path)
        try:
            return map_handed(file, memory.nbytes).as_bytes()
        finally:
            os.close(file)
    file = os.open(memory.path, os.O_RDWR | os.O_NOFOLLOW)
    try:
        mapped = mmap.mmap(file, memory.nbytes, mmap.MAP_SHARED | mmap.MAP_POPULATE)
    finally:
        os.close(file)
    return torch.frombuffer(mapped, dtype=torch.uint8)
