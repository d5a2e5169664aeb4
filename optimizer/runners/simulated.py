"""A judge that only waits, as long as real trials took: for drills of what stands around judges."""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from knowledge.evaluation import Environment, Evaluation
from knowledge.evidence import Evidence
from knowledge.outcome import Failed, Outcome, Passed
from operator_registry.record import digest
from optimizer.candidate import Candidate
from optimizer.plan import Launch, Plan
from optimizer.propose.proposer import NodeContext
from optimizer.runners.post import JudgeRequest

JUDGE: Final = "optimizer.runners.simulated:open_judge"
VERSION: Final = "simulated"
SLOWNESS: Final = "slowness"
"""In the effort of a request: how many times as long a trial takes on this device."""
LENGTHS_S: Final = (
    0.137, 0.142, 0.147, 0.161, 0.171, 0.174, 0.177, 0.180, 0.183, 0.187, 0.189, 0.195, 0.197,
    0.199, 0.204, 0.211, 0.214, 0.219, 0.222, 0.224, 0.227, 0.230, 0.232, 0.233, 0.235, 0.236,
    0.237, 0.239, 0.241, 0.242, 0.246, 0.248, 0.251, 0.254, 0.257, 0.261, 0.264, 0.282, 1.228,
    1.359,
)  # fmt: skip
"""Forty quantiles of the 239 trials of ``benchmarks/cpu/throughput.json``; the median is 0.227."""
_ENVIRONMENT: Final = Environment(
    device="simulated", arch="simulated", torch="none", python="none", threads=1
)
_ARGUMENTS: Final = ("x", "y")


def length_s(candidate: str) -> float:
    """Return how long the trial of a candidate takes on a device that is not slow."""
    return LENGTHS_S[int(digest(candidate)[:8], 16) % len(LENGTHS_S)]


@dataclass(frozen=True)
class SimulatedJudge:
    """A `optimizer.runners.post.Judge` to which all candidates are the same."""

    request: JudgeRequest
    builds_ahead: bool = False

    @property
    def environment(self) -> Environment:
        """Return an environment that no device has."""
        return _ENVIRONMENT

    def evaluate(
        self,
        candidates: Sequence[Candidate],
        *,
        ahead: Sequence[Candidate] = (),
        on_done: Callable[[Evaluation], None] = lambda _: None,
    ) -> Sequence[Evaluation]:
        """Return one evaluation for each candidate, each after its time."""
        return [self._try(candidate, on_done) for candidate in candidates]

    def confirm(
        self,
        candidate: Candidate,
        *,
        deadline_s: float,
        alpha: float,
        handed_back: Collection[str],
        earlier: Sequence[Evidence] = (),
    ) -> Evidence | Outcome:
        """Return that nothing can be proven of what was never run."""
        return Failed(stage="run", log="a simulated judge proves nothing")

    def find_samples(self, name: str) -> bytes | None:
        """Return none: it takes no samples."""
        return None

    def _try(self, candidate: Candidate, on_done: Callable[[Evaluation], None]) -> Evaluation:
        took_s = length_s(candidate.id) * (self.request.effort.get(SLOWNESS) or 1.0)
        time.sleep(took_s)
        evaluation = Evaluation(
            candidate=candidate.id,
            operator=self.request.operator.name,
            operator_digest=self.request.operator.digest,
            hardware=self.request.hardware.name,
            environment=_ENVIRONMENT,
            judge_version=VERSION,
            outcome=Passed(times=()),
            took_s=took_s,
        )
        on_done(evaluation)
        return evaluation


@contextmanager
def open_judge(request: JudgeRequest) -> Iterator[SimulatedJudge]:
    """Be a judge that only waits."""
    yield SimulatedJudge(request)


@dataclass(frozen=True)
class NumberedProposer:
    """Hands out candidates that differ by a number; what was tried says which are left."""

    count: int

    def propose(self, node: NodeContext, count: int) -> Sequence[Candidate]:
        """Return the first candidates that were not tried."""
        made = map(make_candidate, range(self.count))
        return [candidate for candidate in made if candidate.id not in node.tried][:count]


def make_candidate(number: int) -> Candidate:
    """Return the candidate of a number; no compiler ever sees it."""
    return Candidate(
        code=f"// simulated {number}",
        plan=Plan(language="cpp", steps=(Launch(kernel="none", arguments=_ARGUMENTS),)),
        origin="simulated",
        note=f"number {number}",
    )
