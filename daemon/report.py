"""What a turn of the daemon did, and how each goal ended: what `status` and scripts read."""

from typing import Literal, Self

from daemon.pulls.publish import Publication
from knowledge.evidence import Interval
from operator_registry.record import Record
from optimizer.job import OptimizeResult
from optimizer.store.rows import QueuedGoal

EndVerdict = Literal[
    "better", "not_better", "unclear", "declined", "superseded", "obsolete", "stopped", "failed"
]


class End(Record):
    """How a goal ended."""

    operator: str
    hardware: str
    verdict: EndVerdict
    """The judge's, or why there was nothing to judge."""
    why: str = ""
    ratio: Interval | None = None
    """Best peer's time over the kernel's, where it was measured."""
    trials: int = 0
    passed: int = 0
    seconds: float = 0.0
    publication: Publication | None = None

    @classmethod
    def of(
        cls,
        goal: QueuedGoal,
        verdict: EndVerdict,
        why: str,
        *,
        publication: Publication | None = None,
    ) -> Self:
        """Return the end of a goal that was not judged."""
        return cls(
            operator=goal.operator,
            hardware=goal.hardware,
            verdict=verdict,
            why=why,
            publication=publication,
        )

    @classmethod
    def of_result(
        cls, goal: QueuedGoal, result: OptimizeResult, publication: Publication | None
    ) -> Self:
        """Return the end of a goal that was searched for."""
        verdict = result.verdict
        return cls(
            operator=goal.operator,
            hardware=goal.hardware,
            verdict=verdict.kind if verdict else "failed",
            why=getattr(verdict, "reason", "") if verdict else "the search ended without a verdict",
            ratio=result.evidence.ratio if result.evidence else None,
            trials=result.trials,
            passed=result.passed,
            seconds=result.seconds,
            publication=publication,
        )


class Held(Record):
    """A goal that this machine can't work on; it stays in the queue."""

    operator: str
    hardware: str
    why: str


class Report(Record):
    """What one turn did."""

    planned: tuple[str, ...] = ()
    ends: tuple[End, ...] = ()
    held: tuple[Held, ...] = ()
    errors: tuple[str, ...] = ()
    stopped: bool = False
