"""What a warm start saves: trials until the best, over the catalogue's operators on a processor.

Each operator is searched for; then its reference changes, and the new version is searched for
without and with what was proven for the old one. The proposers are the real ones. The device is a
cost model that tells a time from the hash of the code and from each tunable's distance to a best
value, so that the figures are the same on every machine.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pytest

from knowledge.evaluation import Evaluation
from operator_registry.registry import CATALOG, Operator, load_registry
from optimizer.candidate import Candidate
from optimizer.job import OptimizeRequest
from optimizer.optimize import Workshop, optimize
from optimizer.propose.proposer import Proposer
from optimizer.propose.synthesis.make import make_proposers
from optimizer.search.search import Clock
from optimizer.store import Store
from tests.fakes import FakeClock, FakeRunner
from tests.makers import HARDWARE, make_evaluation, make_evidence, make_passed

pytestmark = [pytest.mark.drill, pytest.mark.timeout(580)]
CLOSE = 0.999
"""Of the best that was ever found: near enough to count as found."""


def draw(text: str, *, below: int) -> int:
    return int(sha256(text.encode()).hexdigest()[:8], 16) % below


def model_ms(candidate: Candidate) -> float:
    """Return 0.4 to 1 ms for the code, more the further each tunable is from its best value."""
    time_ms = 0.4 + 0.6 * draw(candidate.code, below=1000) / 1000
    for name, value in candidate.chosen.items():
        best = draw(candidate.code + name, below=4)
        time_ms *= 1 + 0.15 * abs(math.log2(max(1, value)) % 4 - best)
    return time_ms


@dataclass
class ModelRunner(FakeRunner):
    """A device of which the cost model says how long a candidate takes."""

    operator_digest: str = ""

    def evaluate(
        self,
        candidates: Sequence[Candidate],
        *,
        ahead: Sequence[Candidate] = (),
        on_done: Callable[[Evaluation], None] = lambda _: None,
    ) -> Sequence[Evaluation]:
        done = []
        for candidate in candidates:
            self.clock.now_s += 1
            passed = make_passed(model_ms(candidate))
            done.append(make_evaluation(candidate, passed, operator_digest=self.operator_digest))
            on_done(done[-1])
        return done


@dataclass
class Laboratory:
    """A store in which one operator is searched for, version after version."""

    folder: Path
    proposers: Sequence[Proposer]
    clock: FakeClock

    def search(self, operator: Operator, *, key: str, warm_start: float) -> list[float]:
        """Return the fitness of each trial of a search, in order."""
        self.clock.now_s += 1
        runner = ModelRunner(clock=self.clock, operator_digest=operator.digest)
        request = OptimizeRequest(
            operator=operator,
            hardware=HARDWARE,
            goal_key=key,
            store_url="sqlite://",
            state_folder=self.folder / "state",
            out_folder=self.folder / "out",
            budget_s=600,
            warm_start=warm_start,
        )
        runner.confirm_one = lambda candidate: make_evidence(
            candidate, operator_digest=operator.digest
        )
        with Store(f"sqlite:///{self.folder}/store.db") as store:
            store.migrate()
            workshop = Workshop(
                store=store,
                runner=runner,
                make_proposers=lambda: self.proposers,
                judge_version="1",
                clock=Clock(self.clock, self.clock),
                tell=lambda event: None,
                missing_walls=lambda: (),
            )
            optimize(request, workshop)
            search = store.open_search(
                key,
                operator=operator.name,
                hardware=HARDWARE.name,
                operator_digest=operator.digest,
                now=0,
            )
            return [trial.fitness for trial in store.trials(search)]


def trials_until(fitness: Sequence[float], best: float) -> int:
    found = (number for number, one in enumerate(fitness, start=1) if one >= CLOSE * best)
    return next(found, len(fitness))


def test_a_warm_start_finds_the_best_in_fewer_trials(tmp_path: Path) -> None:
    cold: list[int] = []
    warm: list[int] = []
    for name, operator in sorted(load_registry(CATALOG).operators.items()):
        newer = operator.model_copy(update={"source": f"{operator.source}\nNEWER = True\n"})
        proposers = make_proposers(operator, HARDWARE)
        for warm_start, trials in ((0.0, cold), (1.0, warm)):
            laboratory = Laboratory(tmp_path / name / str(warm_start), proposers, FakeClock())
            best = max(laboratory.search(operator, key="first", warm_start=0.0))
            fitness = laboratory.search(newer, key="second", warm_start=warm_start)
            trials.append(trials_until(fitness, best))
        print(f"{name}: {cold[-1]} trials without, {warm[-1]} with")  # noqa: T201 - by `pytest -s`

    assert all(ours <= theirs for ours, theirs in zip(warm, cold, strict=True))
    assert 2 * sum(warm) <= sum(cold)
