"""How many tokens a text has, without its model's tokenizer."""

import math
import re
from dataclasses import dataclass
from typing import Final

_LETTERS: Final = re.compile(r"[A-Za-z_]+")
_SPACES: Final = re.compile(r"\s+")
_LETTER: Final = 0.17
_SPACE: Final = 0.4
_SIGN: Final = 0.95
"""Tokens for a letter, a space, and any other byte: a digit, a bracket, a part of another script.

Fitted to SmolLM2's tokenizer, for which each digit is a token, on tasks, kernels and documents: the
true number is 0.9 to 1.1 of the weight, while it is 0.26 to 0.46 of the bytes.
"""
_MARGIN: Final = 1.15
"""The next prompt may be denser than those before."""
_HARD_MARGIN: Final = 1.5
_LEAST: Final = 0.3
"""Tokens for a unit of weight: no tokenizer does better, and a server that says so is wrong."""
_FRAME: Final = 256
"""What a chat template and a server's own system text add at most."""


def weigh(text: str) -> float:
    """Return about how many tokens a text has for a tokenizer that splits finely."""
    letters = sum(len(found) for found in _LETTERS.findall(text))
    spaces = sum(len(found) for found in _SPACES.findall(text))
    others = len(text.encode()) - letters - spaces
    return _LETTER * letters + _SPACE * spaces + _SIGN * others


@dataclass(frozen=True)
class Gauge:
    """What counts of earlier prompts say of the next one."""

    seen: float | None = None
    """The most tokens for a unit of weight so far."""

    def estimate(self, weight: float) -> int:
        """Return about how many tokens a text of a weight has, rather too many than too few."""
        return math.ceil(weight * _MARGIN * (1.0 if self.seen is None else self.seen))

    def bound(self, size_bytes: int, weight: float) -> int:
        """Return the most tokens that a prompt can have.

        Each token stands for a byte at least; counts of earlier prompts allow to say less.
        """
        if self.seen is None:
            return size_bytes + _FRAME
        return min(size_bytes, math.ceil(weight * _HARD_MARGIN * self.seen)) + _FRAME

    @property
    def doubt(self) -> float:
        """Return how many times its estimate a long prompt's bound is, about."""
        return 3.0 if self.seen is None else _HARD_MARGIN / _MARGIN

    def after(self, weight: float, tokens: int) -> "Gauge":
        """Return the gauge once a server has counted a prompt."""
        each = max(_LEAST, min(1 / _LETTER, tokens / max(1.0, weight)))
        return Gauge(max(each, self.seen or 0.0))
