"""When a search ends, and what the reason is called (pure)."""

from collections.abc import Mapping, Sequence
from typing import Final

from pydantic import Field

from knowledge.evidence import Ending
from knowledge.fitness import weighted_geomean
from knowledge.outcome import Outcome, Passed
from knowledge.roofline import UnboundAxisError, memory_bound_ms
from operator_registry.hardware import HardwareSpec
from operator_registry.record import Record
from operator_registry.spec import OneMoreAxis, OperatorSpec
from optimizer.search.tree import Tree
from optimizer.spending import Allowance, Spending

ENDINGS: Final[Mapping[Ending, str]] = {
    "stopped": "it was told to stop",
    "seconds": "its time was up",
    "trials": "it had made its trials",
    "device_s": "its seconds of the device were spent",
    "cpu_s": "its seconds of processors were spent",
    "tokens": "its tokens were spent",
    "money_usd": "its money was spent",
    "stalled": "nothing had got better for long",
    "fitness": "the wanted speed was reached",
    "roofline": "the best kernel came near the roofline",
    "nothing_left": "nobody had an idea left",
}
"""Each reason in words, after "the search ended because"."""


class Bounds(Record):
    """What ends a search, beside the clock; None never does."""

    allowance: Allowance = Field(default_factory=Allowance)
    trials: int | None = Field(default=None, ge=0)
    fitness: float | None = Field(default=None, gt=0)
    """Speed of the best candidate, relative to its best peer's."""
    roofline_percent: float | None = Field(default=None, ge=0)
    """By how much the best candidate's times may be above the floors, in %."""
    floors_ms: dict[str, float] = {}
    """The least time of each public workload for which one is known."""
    patience: int = Field(default=24, ge=1)
    """After so many trials without `gain` the search has stalled."""
    gain: float = Field(default=1.01, ge=1)


def find_ending(bounds: Bounds, tree: Tree, spent: Spending) -> Ending | None:
    """Return why a search ends now; None where it goes on."""
    best = tree.best
    if bounds.trials is not None and len(tree) >= bounds.trials:
        return "trials"
    if best is not None and bounds.fitness is not None and best.fitness >= bounds.fitness:
        return "fitness"
    if best is not None and _is_near_floor(bounds, best.trial.evaluation.outcome):
        return "roofline"
    if excess := bounds.allowance.find_excess(spent):
        return excess
    stalled = is_stalled(tree.curve, patience=bounds.patience, gain=bounds.gain)
    return "stalled" if stalled else None


def is_stalled(curve: Sequence[float], *, patience: int = 24, gain: float = 1.01) -> bool:
    """Return whether the last `patience` trials brought less than `gain` over the best before them.

    What the search leaves of its time narrows the interval of the proof.

    Args:
        curve: The best fitness after each trial.
        patience: How many trials.
        gain: The ratio.
    """
    before = curve[-patience - 1] if len(curve) > patience else 0.0
    return before > 0 and curve[-1] < gain * before


def find_floors_ms(spec: OperatorSpec, hardware: HardwareSpec) -> dict[str, float]:
    """Return the least time of each public workload by the hardware's memory, in ms.

    A workload is left out where its data decide a size.
    """
    floors: dict[str, float] = {}
    for workload in spec.workloads_on(hardware.target):
        sizes = dict(workload.sizes)
        for name, axis in spec.axes.items():
            if isinstance(axis, OneMoreAxis) and axis.one_more_than in sizes:
                sizes[name] = sizes[axis.one_more_than] + 1
        try:
            floor = memory_bound_ms(spec, sizes, hardware, dtypes=workload.dtypes)
        except UnboundAxisError:
            continue
        floors[workload.name] = floor
    return floors


def times_floor(outcome: Outcome, floors_ms: Mapping[str, float]) -> float | None:
    """Return how many times its floor a candidate takes: 1 at the roofline, and never less.

    It is the weighted geometric mean over the workloads with a floor. One that stays in a cache
    takes less than its floor; that does not count for the others.
    """
    if not isinstance(outcome, Passed):
        return None
    found = [
        (time.weight, max(1.0, time.device_ms / floors_ms[time.workload]))
        for time in outcome.times
        if floors_ms.get(time.workload, 0.0) > 0
    ]
    return weighted_geomean(found) if found else None


def _is_near_floor(bounds: Bounds, outcome: Outcome) -> bool:
    if bounds.roofline_percent is None:
        return False
    times = times_floor(outcome, bounds.floors_ms)
    return times is not None and times <= 1 + bounds.roofline_percent / 100
