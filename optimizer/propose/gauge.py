"""How many tokens a text has, without its model's tokenizer."""

import math
from dataclasses import dataclass
from typing import Final

_FIRST: Final = 0.4
"""Tokens a byte before anything is known: a task has 0.35 where each digit is a token, else 0.3."""
_LEAST: Final = 0.125
"""No tokenizer does better on code; a server that counts fewer is not believed."""
_MARGIN: Final = 1.1
"""The next prompt may hold more digits and signs than those before."""
_HARD_MARGIN: Final = 1.5
_FRAME: Final = 256
"""What a chat template and a server's own system text add at most."""


@dataclass(frozen=True)
class Gauge:
    """What counts of earlier prompts say of the next one."""

    seen: float | None = None
    """The most tokens a byte so far."""

    def estimate(self, size_bytes: int) -> int:
        """Return about how many tokens a text has, rather too many than too few."""
        each = _FIRST if self.seen is None else self.seen * _MARGIN
        return math.ceil(size_bytes * each)

    def bound(self, size_bytes: int) -> int:
        """Return the most tokens that a prompt can have.

        Each token stands for a byte at least; counts of earlier prompts allow to say less.
        """
        most = size_bytes if self.seen is None else math.ceil(size_bytes * self.seen * _HARD_MARGIN)
        return min(size_bytes, most) + _FRAME

    @property
    def doubt(self) -> float:
        """Return how many times its estimate a long prompt's bound is."""
        return 1 / _FIRST if self.seen is None else _HARD_MARGIN / _MARGIN

    def fitting(self, tokens: int) -> int:
        """Return how many bytes have about so many tokens, rather too few than too many."""
        each = _FIRST if self.seen is None else self.seen * _MARGIN
        return int(tokens / each)

    def after(self, size_bytes: int, tokens: int) -> "Gauge":
        """Return the gauge once a server has counted a prompt."""
        each = max(_LEAST, min(1.0, tokens / max(1, size_bytes)))
        return Gauge(max(each, self.seen or 0.0))
