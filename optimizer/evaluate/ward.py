"""The memory that a candidate's calls are given: poisoned, watched at its edges, and counted."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from optimizer.evaluate.guards import ALL_UP, Guard, Guards
from optimizer.evaluate.memory import bytes_of
from optimizer.evaluate.padded import Padded, make_padded, spoil


@dataclass
class Ward:
    """Allocates like `torch.empty`.

    In a checked call memory holds random bytes and lies between canaries. A timed call gets plain
    memory, which is spoiled once it is over: what the allocator hands out next holds random bytes
    as well, never what an earlier call left, and nothing of that is in the time.
    """

    guards: Guards = ALL_UP
    _seed: int | None = None
    _watched: list[Padded] = field(default_factory=list)
    _lent: list[Tensor] = field(default_factory=list)
    _rng: random.Random = field(default_factory=random.SystemRandom)

    def __call__(
        self, size: Sequence[int], /, *, dtype: torch.dtype, device: torch.device
    ) -> Tensor:
        """Return a contiguous tensor that begins at a multiple of 16 bytes."""
        if self._seed is None:
            memory: Tensor = torch.empty(size, dtype=dtype, device=device)
            self._lent.append(memory)
            return memory
        bytes_wanted = torch.Size(size).numel() * dtype.itemsize
        padded = make_padded(bytes_wanted, device=device, seed=self._seed + len(self._watched))
        self._watched.append(padded)
        watched = padded.view(dtype, size)
        if not self.guards.up(Guard.POISON):
            watched.zero_()  # as memory often is that the machine gives for the first time
        return watched

    def watch(self, seed: int) -> None:
        """Begin a checked call; the seed decides what its memory holds."""
        self.release()
        self._seed = seed

    def unwatch(self) -> bool:
        """End a checked call; return whether all canaries are alive."""
        intact = all(padded.is_intact() for padded in self._watched)
        self._watched, self._seed = [], None
        return intact or not self.guards.up(Guard.CANARIES)

    def release(self) -> None:
        """Spoil what calls were given, so that no later call finds their outputs in it."""
        for memory in self._lent:
            if self.guards.up(Guard.POISON):
                spoil(memory, self._rng.getrandbits(48))
        self._lent = []

    @property
    def lent_bytes(self) -> int:
        """Return how much memory calls were given since the last release."""
        return sum(bytes_of(memory).numel() for memory in self._lent)
