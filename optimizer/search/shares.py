"""Who is asked: trials are split among proposers by what each has lately earned (pure)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

FADING: Final = 0.95
"""What a trial is still worth after the next one: about the last 20 count.

Of those who were not asked it fades as well, so that they come back.
"""
FOR_PASSING: Final = 0.25
"""What a candidate that passed has earned; one that is the best so far has earned 1."""


@dataclass(frozen=True)
class Earned:
    """What a proposer's candidates have earned, lately."""

    sum: float = 0.0
    trials: float = 0.0
    at: int = 0
    """The number of trials of the search, of all proposers, for which this holds."""

    def faded(self, at: int) -> "Earned":
        """Return what is left of it so many trials later."""
        left = FADING ** (at - self.at)
        return Earned(self.sum * left, self.trials * left, at)

    def after(self, earning: float, *, at: int) -> "Earned":
        """Return it with a trial that made the search so many trials long."""
        now = self.faded(at)
        return Earned(now.sum + earning, now.trials + 1, at)


def rate(*, passed: bool, is_best: bool) -> float:
    """Return what a trial has earned its proposer, from 0 to 1."""
    if is_best:
        return 1.0
    return FOR_PASSING if passed else 0.0


def pick_by_share(
    able: Sequence[str], earned: Mapping[str, Earned], *, at: int, seed: str
) -> str | None:
    """Return who of those that are able is asked (Thompson's sampling); None where nobody is.

    Each draws for itself, so that the order of the others stays when one falls away.
    """

    def draw(name: str) -> float:
        lately = earned.get(name, Earned()).faded(at)
        lost = max(0.0, lately.trials - lately.sum)
        return Random(f"{seed}/{name}").betavariate(1 + lately.sum, 1 + lost)  # noqa: S311 - no secret

    return max(able, key=draw, default=None)
