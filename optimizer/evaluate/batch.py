"""A batch: candidates that are judged at the same held-out sizes, drawn once they are frozen."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from knowledge.outcome import Failed, TimedOut
from optimizer.candidate import Candidate
from optimizer.errors import RunnerError
from optimizer.evaluate.building import Built, Pending
from optimizer.evaluate.cases import CheckedCase
from optimizer.evaluate.ledger import Ledger
from optimizer.evaluate.sandbox import ChildError
from optimizer.evaluate.workbench import Workbench, fresh_seed


@dataclass(frozen=True)
class Batch:
    """Candidates whose builds have begun."""

    drawn: tuple[CheckedCase, ...]
    builds: Mapping[str, Pending | Failed]
    """By the candidate's id; how it failed where it is not even built."""
    shared_s: float
    """Seconds that its making took, for each candidate."""

    def holds(self, candidates: Sequence[Candidate]) -> bool:
        """Return whether all these belong to the batch."""
        return {candidate.id for candidate in candidates} <= self.builds.keys()

    def settle(self) -> None:
        """Wait until nothing of it is being built."""
        for candidate in self.builds:
            self.built(candidate)

    def built(self, candidate: str) -> Built | Failed | TimedOut:
        """Return what became of a candidate's build, once it has ended.

        Raises:
            RunnerError: The compiler is out of order.
        """
        build = self.builds[candidate]
        if isinstance(build, Failed):
            return build
        try:
            return build.result()
        except ChildError as error:
            msg = f"nothing can be built here: {error}"
            raise RunnerError(msg) from error


def open_batch(
    bench: Workbench,
    candidates: Sequence[Candidate],
    public: Sequence[CheckedCase],
    ledger: Ledger,
) -> Batch:
    """Return the batch of some candidates, with their builds begun.

    Raises:
        RunnerError: The reference fails at a drawn size.
    """
    began_s = time.monotonic()
    with ledger.phase("screen"):
        faults = {candidate.id: bench.screen(candidate) for candidate in candidates}
    with ledger.phase("cases"), ledger.lease(lambda: bench.maker.busy_s):
        drawn = _draw(bench)
    sound = [candidate for candidate in candidates if faults[candidate.id] is None]
    with ledger.phase("build"):
        begun = bench.start_builds(sound, [*drawn, *public])
    builds = {c: fault for c, fault in faults.items() if fault is not None}
    return Batch(
        drawn=tuple(drawn),
        builds=builds | {c.id: build for c, build in zip(sound, begun, strict=True)},
        shared_s=(time.monotonic() - began_s) / len(candidates),
    )


def _draw(bench: Workbench) -> list[CheckedCase]:
    effort = bench.effort
    return bench.drawn_cases(
        effort.drawn_sizes if bench.timed else 2 * effort.drawn_sizes,
        seed=fresh_seed(),
        most=effort.drawn_elements if bench.timed else effort.interpreted_elements,
    )
