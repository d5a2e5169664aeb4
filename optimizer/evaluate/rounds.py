"""The rounds of a process pair on one workload: samples in turn, and what betrays a cheat."""

import contextlib
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median

from knowledge.outcome import Cheated, Failed, Incorrect, TimedOut
from operator_registry.spec import Normal, OperatorSpec, Uniform
from optimizer.evaluate import protocol as p
from optimizer.evaluate.cases import CheckedCase
from optimizer.evaluate.census import Census
from optimizer.evaluate.conduct import find_late, find_lingering
from optimizer.evaluate.guards import Guard
from optimizer.evaluate.outputs import judge_outputs
from optimizer.evaluate.peer_table import AbsentPeer, reason_of
from optimizer.evaluate.process import Process, attempt
from optimizer.evaluate.sandbox import ChildError
from optimizer.evaluate.shelf import Shelf
from optimizer.evaluate.summary import TWIN, Reading
from optimizer.evaluate.tray import Taken
from optimizer.evaluate.trial import Trial
from optimizer.evaluate.turns import Setting, Turn, take_turn

LEAST_ROUNDS = 7
"""Samples of each subject on a workload in a pair, however short the time is."""
MOST_ROUNDS = 21
WARM_SETS = 2
"""The sets on which subjects are warmed up, and timed with their values in other orders."""
NEW_SETS = 2
"""Sets that a candidate first meets in timed rounds whose outputs are checked."""
_TURN_S = 60.0
_MOST_ROLL = 1 << 20
_FLOATS = frozenset({"float64", "float32", "float16", "bfloat16"})
_BURST_CALLS = (2, 22)
"""Two rows of calls: by the difference, the judge's clock knows what a call takes."""
_BURST_MS = 40.0
"""How long the longer row may be expected to take."""
Failure = Failed | TimedOut | Incorrect | Cheated
Subjects = dict[str, tuple[Process, str]]
"""By label: the process, and the subject's name in it."""


@dataclass
class Rounds:
    """The rounds on one workload: in each, every subject takes one sample, in random order.

    Nothing that a candidate can see tells the rounds whose outputs are checked from the others:
    each time it finds values that it never met before, and memory that was filled anew.
    """

    trial: Trial
    case: CheckedCase
    subjects: Subjects
    rng: random.Random
    absent: list[AbsentPeer] = field(default_factory=list)
    """Peers that failed while they were measured."""
    taken: int = 0
    readings: dict[str, list[Reading]] = field(default_factory=dict)
    _left: dict[int, Taken] = field(default_factory=dict)
    _censuses: list[tuple[Census, Census]] = field(default_factory=list)
    _shelf: Shelf | None = None

    def __post_init__(self) -> None:
        """Draw the rounds whose outputs are checked: they can't be foreseen, but for the last."""
        self.readings = {label: [] for label in self.subjects}
        self._guards = self.trial.process.place.guards
        self._rolled = movable(self.trial.operator.spec, self.case.workload.dtypes)
        sets = len(self.case.case.sets)
        rounds = self.rng.sample(range(LEAST_ROUNDS), sets - 1)
        self._checked = dict(zip(rounds, range(sets - 1), strict=True))

    def take(self) -> Failure | None:
        """Take one round; return how the candidate fails, None where it does not."""
        return self._take(self._checked.get(self.taken))

    def finish(self) -> dict[str, list[Reading]] | Failure:
        """Take the last round, which is checked, and return all readings."""
        failure = self._take(len(self.case.case.sets) - 1)
        return failure or self._judge() or self._find_cheat() or self.readings

    def bursts(self) -> dict[str, float]:
        """Return what a call takes in a row of calls, of the candidate and of the best peer."""
        found = {}
        for label in {p.CANDIDATE, TWIN} & self.subjects.keys():
            with contextlib.suppress(ChildError):
                found[label] = self._burst_ms(label)
        # A row of many calls that seems to take less time than one of few tells nothing.
        return {label: took_ms for label, took_ms in found.items() if took_ms > 0}

    def _find_cheat(self) -> Cheated | None:
        mine = self.readings.get(p.CANDIDATE)
        if not mine:
            return None
        return find_late(mine, self._guards) or find_lingering(self._censuses, self._guards)

    def _judge(self) -> Incorrect | None:
        """Return what is wrong with the timed outputs that were kept, None where nothing is."""
        if not self._guards.up(Guard.TIMED):
            return None
        found = judge_outputs(self.trial.operator, self.case, self._left)
        return found if isinstance(found, Incorrect) else None

    def _take(self, checked: int | None) -> Failure | None:
        """Take a round, on the set whose outputs are checked if there is one."""
        usual = self.taken % WARM_SETS
        roll = self.rng.randrange(1, _MOST_ROLL)
        for label in self.rng.sample(list(self.subjects), len(self.subjects)):
            if label == p.CANDIDATE:
                turn = attempt("run", lambda: self._take_mine(checked, usual, roll=roll))
                if not isinstance(turn, Turn):
                    return turn
            else:
                setting = Setting(roll=roll, rolled=self._rolled, counted=True)
                self._take_peer(label, setting, usual)
        self.taken += 1
        return None

    def _take_mine(self, checked: int | None, usual: int, *, roll: int) -> Turn:
        """Take a sample of the candidate; its outputs lie at another place each time."""
        shelf = self._shelf = self._shelf or self.trial.shelf(self.case)
        number = usual if checked is None else checked
        shelf.move(self.rng)
        shelf.clear(number, self.rng.randrange(256))
        files: tuple[p.Stored, ...] | None = shelf.files(number)
        if checked is None and files:  # only to copy outputs does a worker need to know
            files = None
        setting = Setting(
            shift=shelf.shift,
            roll=roll if checked is None else 0,
            rolled=self._rolled,
            checked=checked is not None,
            counted=True,
        )
        turn = self._turn(p.CANDIDATE, number, files, setting)
        if turn.censuses is not None:
            self._censuses.append(turn.censuses)
        if checked is not None:
            self._left[number] = shelf.take(number, turn.outputs)
        return turn

    def _take_peer(self, label: str, setting: Setting, number: int) -> None:
        try:
            self._turn(label, number, None, setting)
        except ChildError as error:
            _, peer = self.subjects.pop(label)
            self.readings.pop(label)
            missed = AbsentPeer(
                workload=self.case.workload.name, peer=peer, reason=reason_of(error)
            )
            self.absent.append(missed)

    def _turn(
        self, label: str, number: int, outputs: tuple[p.Stored, ...] | None, setting: Setting
    ) -> Turn:
        process, subject = self.subjects[label]
        process.take(self.case.case)
        bound = (self.case.case, number, subject)
        turn = take_turn(
            process, bound, outputs=outputs, deadline_s=self._deadline_s(label), setting=setting
        )
        self.readings[label].append(turn.reading)
        return turn

    def _burst_ms(self, label: str) -> float:
        process, subject = self.subjects[label]
        call_ms = median(reading.call_ms for reading in self.readings[label])
        few, many = _BURST_CALLS
        many = min(many, few + max(1, round(_BURST_MS / call_ms)))
        took_ms = []
        for calls in (few, few, many):  # the first brings code and memory back
            message = p.Burst(case=self.case.case.key, subject=subject, calls=calls)
            began = time.perf_counter_ns()
            process.tell(message, p.Done, deadline_s=self._deadline_s(label))
            took_ms.append((time.perf_counter_ns() - began) * 1e-6)
        return (took_ms[2] - took_ms[1]) / (many - few)

    def _deadline_s(self, label: str) -> float:
        return self.trial.run_s if label == p.CANDIDATE else _TURN_S


def movable(spec: OperatorSpec, dtypes: Mapping[str, str]) -> tuple[int, ...]:
    """Return the places of the inputs whose values may stand in any order: independent floats."""
    return tuple(
        place
        for place, tensor in enumerate(spec.inputs.values())
        if isinstance(tensor.values, Normal | Uniform)
        and dtypes.get(tensor.dtype, tensor.dtype) in _FLOATS
    )
