"""One process pair of a confirming run: candidate, peers and the peers' twin, told in turn."""

import random
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Self

from knowledge.outcome import Failed, TimedOut
from optimizer.evaluate import protocol as p
from optimizer.evaluate.cases import CheckedCase
from optimizer.evaluate.peer_table import AbsentPeer, PeerProcess
from optimizer.evaluate.process import Process, attempt
from optimizer.evaluate.rounds import (
    LEAST_ROUNDS,
    MOST_ROUNDS,
    WARM_SETS,
    Failure,
    Rounds,
    Subjects,
)
from optimizer.evaluate.summary import TWIN, Reading
from optimizer.evaluate.trial import Trial
from optimizer.evaluate.workbench import Workbench


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
    """A pair at work, which first gets ready and then is measured.

    Its processes are the caller's to end, before it is closed: some are started by its threads.
    """

    trial: Trial
    plan: PairPlan
    rng: random.Random
    peers: PeerProcess
    twin: PeerProcess
    absent: list[AbsentPeer] = field(default_factory=list)
    """Peers that could not be measured, and so count in no pair."""
    bursts: dict[str, dict[str, float]] = field(default_factory=dict)
    """By workload and subject: milliseconds of a call in a row of calls, by the judge's clock."""

    first_ms: dict[str, dict[str, float]] = field(default_factory=dict)
    """By workload and subject: the first call in its process, by that process's clock."""
    _subjects: dict[str, Subjects] = field(default_factory=dict)
    # A child dies with the thread that started it, so the threads live as long as the pair.
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2))

    def prepare(self) -> Failed | TimedOut | None:
        """Compile and warm up who is measured on each workload; return how the candidate fails.

        Raises:
            RunnerError: A process can't be started.
        """
        found = self._prepare()
        if not isinstance(found, dict):
            return found
        self._subjects = found
        return None

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def measure(self, *, budget_s: float) -> dict[str, dict[str, list[Reading]]] | Failure:
        """Return all readings by workload and subject, or how the candidate fails.

        Args:
            budget_s: Seconds for the samples of all workloads.
        """
        found = {}
        for case in self.plan.cases:
            each_s = budget_s / len(self.plan.cases)
            readings = self._measure(case, self._subjects[case.workload.name], budget_s=each_s)
            if not isinstance(readings, dict):
                return readings
            found[case.workload.name] = readings
        return found

    def _measure(
        self, case: CheckedCase, subjects: Subjects, *, budget_s: float
    ) -> dict[str, list[Reading]] | Failure:
        rounds = Rounds(self.trial, case, subjects, self.rng, self.absent)
        until = time.monotonic() + budget_s
        while rounds.taken < LEAST_ROUNDS or (
            rounds.taken < MOST_ROUNDS and time.monotonic() < until
        ):
            failure = rounds.take()
            if failure is not None:
                return failure
        readings = rounds.finish()
        if isinstance(readings, dict):
            self.bursts[case.workload.name] = rounds.bursts()
        return readings

    def _prepare(self) -> dict[str, Subjects] | Failed | TimedOut:
        """Return who is measured on each workload, compiled and warmed up on all of them."""
        found: dict[str, Subjects] = {}
        for case in self.plan.cases:
            found[case.workload.name] = {}
            if case.workload.name not in self.plan.handed_back:
                prepared = self._prepare_candidate(case)
                if not isinstance(prepared, p.Prepared):
                    return prepared
                mine = (self.trial.process, p.CANDIDATE)
                if prepared.first_ms is not None:
                    self.first_ms[case.workload.name] = {p.CANDIDATE: prepared.first_ms}
                found[case.workload.name][p.CANDIDATE] = mine
        twins = {workload: [peer] for workload, peer in self.plan.twins.items()}
        sides = (self.peers, self.twin)
        # Both sides compile at once: nothing is timed meanwhile.
        ready = self._pool.map(self._prepare_side, sides, (self.plan.peers, twins))
        for side, peers in zip(sides, list(ready), strict=True):
            for workload, peer in peers:
                label = peer if side is self.peers else TWIN
                found[workload][label] = (side.open(), peer)
        return found

    def _prepare_candidate(self, case: CheckedCase) -> p.Prepared | Failed | TimedOut:
        process = self.trial.process
        message = p.Prepare(case=case.case.key, subject=p.CANDIDATE, sets=WARM_SETS)

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
                reason = side.prepare(case.case, peer, sets=WARM_SETS)
                if reason is None:
                    ready.append((case.workload.name, peer))
                    self._note_first(side, case, peer)
                else:
                    self.miss(case, peer, reason)
        return ready

    def _note_first(self, side: PeerProcess, case: CheckedCase, peer: str) -> None:
        told_ms = side.first_ms.get((case.case.key, peer))
        if side is self.peers and told_ms is not None:
            self.first_ms.setdefault(case.workload.name, {})[peer] = told_ms

    def miss(self, case: CheckedCase, peer: str, reason: str) -> None:
        """Note that a peer could not be measured."""
        self.absent.append(AbsentPeer(workload=case.workload.name, peer=peer, reason=reason))
