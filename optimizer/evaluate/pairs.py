"""One process pair of a confirming run: candidate, peers and the peers' twin, told in turn."""

import random
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Self

from knowledge.outcome import Failed, Incorrect, TimedOut
from optimizer.evaluate import protocol as p
from optimizer.evaluate.cases import CheckedCase
from optimizer.evaluate.outputs import judge_outputs
from optimizer.evaluate.peer_table import AbsentPeer, PeerProcess, reason_of
from optimizer.evaluate.process import Process, Turn, attempt, take_turn
from optimizer.evaluate.sandbox import ChildError
from optimizer.evaluate.shelf import Shelf
from optimizer.evaluate.summary import TWIN, Reading
from optimizer.evaluate.tray import Taken
from optimizer.evaluate.trial import Trial
from optimizer.evaluate.workbench import Workbench

LEAST_ROUNDS = 7
"""Samples of each subject on a workload in a pair, however short the time is."""
MOST_ROUNDS = 21
_TURN_S = 60.0
Failure = Failed | TimedOut | Incorrect
Subjects = dict[str, tuple[Process, str]]
"""By label: the process, and the subject's name in it."""


@dataclass(frozen=True)
class PairPlan:
    """What a pair measures."""

    cases: Sequence[CheckedCase]
    peers: Mapping[str, Sequence[str]]
    """By workload."""
    twins: Mapping[str, str]
    """By workload, the peer that is measured against itself."""
    handed_back: frozenset[str]
    """Workloads that the candidate does not serve."""


class PairProcesses:
    """A pair's three processes, started side by side; `close` ends them all."""

    def __init__(self, bench: Workbench) -> None:
        self.candidate = Process(bench.place)
        self.peers = PeerProcess(bench.operator, bench.hardware, bench.place)
        self.twin = PeerProcess(bench.operator, bench.hardware, bench.place)
        self.peers.start()
        self.twin.start()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End them."""
        self.close()

    def close(self) -> None:
        """End them."""
        self.candidate.kill()
        self.peers.close()
        self.twin.close()


@dataclass
class PairRun:
    """A pair at work. Its processes are the caller's to end."""

    trial: Trial
    plan: PairPlan
    rng: random.Random
    peers: PeerProcess
    twin: PeerProcess
    absent: list[AbsentPeer] = field(default_factory=list)
    """Peers that could not be measured, and so count in no pair."""

    def run(self, *, budget_s: float) -> dict[str, dict[str, list[Reading]]] | Failure:
        """Return all readings by workload and subject, or how the candidate fails.

        Args:
            budget_s: Seconds for the samples of all workloads, after the compiling.

        Raises:
            RunnerError: A process can't be started.
        """
        # A child dies with the thread that started it, so the threads live as long as the pair.
        pool = ThreadPoolExecutor(2)
        try:
            return self._run(pool, budget_s=budget_s)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _run(
        self, pool: ThreadPoolExecutor, *, budget_s: float
    ) -> dict[str, dict[str, list[Reading]]] | Failure:
        subjects = self._prepare(pool)
        if not isinstance(subjects, dict):
            return subjects
        found = {}
        for case in self.plan.cases:
            each_s = budget_s / len(self.plan.cases)
            readings = self._measure(case, subjects[case.workload.name], budget_s=each_s)
            if not isinstance(readings, dict):
                return readings
            found[case.workload.name] = readings
        return found

    def _measure(
        self, case: CheckedCase, subjects: Subjects, *, budget_s: float
    ) -> dict[str, list[Reading]] | Failure:
        rounds = _Rounds(self, case, subjects)
        until = time.monotonic() + budget_s
        while rounds.taken < LEAST_ROUNDS or (
            rounds.taken < MOST_ROUNDS and time.monotonic() < until
        ):
            failure = rounds.take()
            if failure is not None:
                return failure
        return rounds.finish()

    def _prepare(self, pool: ThreadPoolExecutor) -> dict[str, Subjects] | Failed | TimedOut:
        """Return who is measured on each workload, compiled and warmed up on all of them."""
        found: dict[str, Subjects] = {}
        for case in self.plan.cases:
            found[case.workload.name] = {}
            if case.workload.name not in self.plan.handed_back:
                prepared = self._prepare_candidate(case)
                if not isinstance(prepared, p.Prepared):
                    return prepared
                mine = (self.trial.process, p.CANDIDATE)
                found[case.workload.name][p.CANDIDATE] = mine
        twins = {workload: [peer] for workload, peer in self.plan.twins.items()}
        sides = (self.peers, self.twin)
        # Both sides compile at once: nothing is timed meanwhile.
        ready = pool.map(self._prepare_side, sides, (self.plan.peers, twins))
        for side, peers in zip(sides, list(ready), strict=True):
            for workload, peer in peers:
                label = peer if side is self.peers else TWIN
                found[workload][label] = (side.open(), peer)
        return found

    def _prepare_candidate(self, case: CheckedCase) -> p.Prepared | Failed | TimedOut:
        process = self.trial.process
        message = p.Prepare(case=case.case.key, subject=p.CANDIDATE)

        def prepare() -> p.Prepared:
            self.trial.shelf(case)
            return process.tell(message, p.Prepared, deadline_s=self.trial.run_s)

        return attempt("run", prepare)

    def _prepare_side(
        self, side: PeerProcess, peers: Mapping[str, Sequence[str]]
    ) -> list[tuple[str, str]]:
        """Return the peers that are ready, each with its workload."""
        ready = []
        for case in self.plan.cases:
            for peer in peers.get(case.workload.name, ()):
                reason = side.prepare(case.case, peer)
                if reason is None:
                    ready.append((case.workload.name, peer))
                else:
                    self.miss(case, peer, reason)
        return ready

    def miss(self, case: CheckedCase, peer: str, reason: str) -> None:
        """Note that a peer could not be measured."""
        self.absent.append(AbsentPeer(workload=case.workload.name, peer=peer, reason=reason))


class _Rounds:
    """The rounds on one workload: in each, every subject takes one sample, in random order."""

    def __init__(self, pair: PairRun, case: CheckedCase, subjects: Subjects) -> None:
        self._pair = pair
        self._case = case
        self._subjects = subjects
        self._readings: dict[str, list[Reading]] = {label: [] for label in subjects}
        self._left: dict[int, Taken] = {}
        self._shelf: Shelf | None = None
        sets = len(case.case.sets)
        # The rounds whose timed outputs are checked can't be foreseen, but for the last ones.
        self._checked = {pair.rng.choice(range(s, LEAST_ROUNDS, sets)) for s in range(sets)}
        self.taken = 0

    def take(self) -> Failed | TimedOut | None:
        """Take one round; return how the candidate fails, None where it does not."""
        return self._take(checked=self.taken in self._checked)

    def finish(self) -> dict[str, list[Reading]] | Failure:
        """Take one last, checked round of each set and return all readings."""
        wrong = self._judge()
        for _ in self._case.case.sets:
            failure = wrong or self._take(checked=True)
            if failure is not None:
                return failure
        return self._judge() or self._readings

    def _judge(self) -> Incorrect | None:
        """Return what is wrong with the timed outputs that were kept, None where nothing is."""
        found = judge_outputs(self._pair.trial.operator, self._case, self._left)
        self._left = {}
        return found if isinstance(found, Incorrect) else None

    def _take(self, *, checked: bool) -> Failed | TimedOut | None:
        number = self.taken % len(self._case.case.sets)
        for label in self._pair.rng.sample(list(self._subjects), len(self._subjects)):
            if label == p.CANDIDATE:
                turn = attempt("run", lambda: self._take_mine(number, checked=checked))
                if not isinstance(turn, Turn):
                    return turn
            else:
                self._take_peer(label, number)
        self.taken += 1
        return None

    def _take_mine(self, number: int, *, checked: bool) -> Turn:
        """Take a sample of the candidate; its outputs lie at another place each time."""
        shelf = self._shelf = self._shelf or self._pair.trial.shelf(self._case)
        shelf.move(self._pair.rng)
        if not checked:
            return self._turn(p.CANDIDATE, number, None, shift=shelf.shift)
        shelf.clear(number, self._pair.rng.randrange(256))
        turn = self._turn(p.CANDIDATE, number, shelf.files(number), shift=shelf.shift)
        self._left[number] = shelf.take(number, turn.outputs)
        return turn

    def _take_peer(self, label: str, number: int) -> None:
        try:
            self._turn(label, number, None)
        except ChildError as error:
            _, peer = self._subjects.pop(label)
            self._readings.pop(label)
            self._pair.miss(self._case, peer, reason_of(error))

    def _turn(
        self, label: str, number: int, outputs: tuple[p.Stored, ...] | None, *, shift: int = 0
    ) -> Turn:
        process, subject = self._subjects[label]
        deadline_s = self._pair.trial.run_s if label == p.CANDIDATE else _TURN_S
        process.take(self._case.case)
        bound = (self._case.case, number, subject)
        turn = take_turn(process, bound, outputs=outputs, deadline_s=deadline_s, shift=shift)
        self._readings[label].append(turn.reading)
        return turn
