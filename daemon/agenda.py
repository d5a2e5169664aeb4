"""In which order goals are worked on (pure): share of model time x expected gain / cost."""

from collections.abc import Collection, Iterable
from typing import Protocol, TypeVar

_NO_MODEL_SHARE = 0.001
"""What an operator counts that no model uses: less than any that one does, but not nothing."""
_NEW_GAIN = 2.0
"""What a search is expected to reach where there is no kernel yet."""
_AGAIN_GAIN = 1.1
"""And where there is one already."""


class Wanted(Protocol):
    """What the order depends on."""

    @property
    def operator(self) -> str:
        """The operator's name."""
        ...

    @property
    def hardware(self) -> str:
        """The hardware's name."""
        ...

    @property
    def share_of_time(self) -> float:
        """The greatest share of a model's time."""
        ...


AnyWanted = TypeVar("AnyWanted", bound=Wanted)


def worth_per_s(share_of_time: float, *, has_kernel: bool, budget_s: float) -> float:
    """Return the share of a model's time that a second of search is expected to save."""
    gain = _AGAIN_GAIN if has_kernel else _NEW_GAIN
    return max(share_of_time, _NO_MODEL_SHARE) * (1 - 1 / gain) / budget_s


def in_order(
    goals: Iterable[AnyWanted], *, kernels: Collection[tuple[str, str]], budget_s: float
) -> tuple[AnyWanted, ...]:
    """Return the goals, the most worthwhile first; equal ones by name.

    Args:
        goals: What is wanted.
        kernels: Operator and hardware of each published kernel.
        budget_s: What a search costs.
    """

    def rank(goal: AnyWanted) -> tuple[float, str, str]:
        has_kernel = (goal.operator, goal.hardware) in kernels
        worth = worth_per_s(goal.share_of_time, has_kernel=has_kernel, budget_s=budget_s)
        return (-worth, goal.operator, goal.hardware)

    return tuple(sorted(goals, key=rank))
