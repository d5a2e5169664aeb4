"""Optuna's tree-structured Parzen estimator on a landscape: the only door to `optuna`."""

import math
import random
from collections.abc import Mapping
from typing import Final

import optuna

from optimizer.landscapes.landscape import Landscape

_REPEATS: Final = 20
"""After so many points in a row that were tried before, one is drawn that was not."""


class TpeCourse:
    """Asks Optuna for the next point. Asking for a known one again costs nothing."""

    def __init__(self, landscape: Landscape, seed: int) -> None:
        """Begin with nothing tried, at Optuna's own defaults."""
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._landscape = landscape
        self._rng = random.Random(seed)  # noqa: S311 - which point, no secret
        sampler = optuna.samplers.TPESampler(seed=seed)
        self._study = optuna.create_study(direction="minimize", sampler=sampler)
        self._found: dict[int, float] = {}
        self._asked: optuna.trial.Trial | None = None

    def ask(self) -> int | None:
        """Return the place to try; None when all are."""
        if len(self._found) == self._landscape.size:
            return None
        for _ in range(_REPEATS):
            trial = self._study.ask()
            place = self._place(trial)
            if place not in self._found:
                self._asked = trial
                return place
            self._study.tell(trial, self._found[place])
        left = [p for p in range(self._landscape.size) if p not in self._found]
        return self._rng.choice(left)

    def tell(self, place: int) -> None:
        """Take note of what a point is worth."""
        ms = self._landscape.device_ms[place]
        worth = math.inf if ms is None else math.log(ms)
        self._found[place] = worth
        if self._asked is not None:
            self._study.tell(self._asked, worth)
            self._asked = None

    def _place(self, trial: optuna.trial.Trial) -> int:
        """Return the place of a point that Optuna suggests, tunable by tunable."""
        structures = self._landscape.structures
        chosen = trial.suggest_int("structure", 0, len(structures) - 1)
        first = sum(structure.size for structure in structures[:chosen])
        return first + _number(trial, chosen, structures[chosen].tunables)


def _number(
    trial: optuna.trial.Trial, structure: int, tunables: Mapping[str, tuple[int, ...]]
) -> int:
    """Return a point's number within its structure: its last tunable changes fastest."""
    number = 0
    for name, values in tunables.items():
        ordered = sorted(values)
        step = trial.suggest_int(f"{structure}.{name}", 0, len(values) - 1)
        number = number * len(values) + values.index(ordered[step])
    return number
