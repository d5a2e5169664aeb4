"""How the seconds of a goal are shared between searching and proving (pure)."""

from dataclasses import dataclass

from pydantic import Field

from operator_registry.record import Record
from optimizer.spending import Allowance


class Budget(Record):
    """The seconds of a goal. A part is kept for the confirming run, without which all is vain."""

    total_s: float = Field(gt=0)
    reserve_share: float = Field(default=0.5, ge=0, le=1)
    reserve_least_s: float = Field(default=90.0, ge=0)
    reserve_most_share: float = Field(default=0.75, ge=0, le=1)
    """However small the whole, the search keeps the rest."""

    @property
    def reserve_s(self) -> float:
        """Return the seconds kept for the confirming run."""
        wanted = max(self.reserve_share * self.total_s, self.reserve_least_s)
        return min(wanted, self.reserve_most_share * self.total_s)

    def search_left_s(self, spent_s: float) -> float:
        """Return the seconds that the search may still take."""
        return max(0.0, self.total_s - self.reserve_s - spent_s)

    def left_s(self, spent_s: float) -> float:
        """Return the seconds left of the whole."""
        return max(0.0, self.total_s - spent_s)


def search_allowance(allowance: Allowance) -> Allowance:
    """Return what of an allowance the search may spend: of seconds a part is kept for the proof."""

    def searching(total_s: float | None) -> float | None:
        return Budget(total_s=total_s).search_left_s(0) if total_s else total_s

    kept = {"device_s": searching(allowance.device_s), "cpu_s": searching(allowance.cpu_s)}
    return allowance.model_copy(update=kept)


@dataclass(frozen=True)
class Pace:
    """How long a trial took in the last batch; the first one also times the peers, and is slow."""

    trial_s: float | None = None

    def batch(self, left_s: float, *, at_most: int) -> int:
        """Return how many candidates to try next, so that the time left is hardly overrun.

        At least one while there is time; before the first trial is known, half of a full batch.
        """
        if left_s <= 0:
            return 0
        if self.trial_s is None:
            return max(1, at_most // 2)
        return max(1, min(at_most, int(left_s / max(self.trial_s, 1e-3))))

    def after(self, trials: int, seconds: float) -> "Pace":
        """Return the pace after a batch; known results, which cost nothing, do not change it."""
        return Pace(seconds / trials) if trials else self
