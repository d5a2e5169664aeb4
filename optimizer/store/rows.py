"""What the store hands out: goals, trials and confirming runs as values."""

from knowledge.evaluation import Evaluation
from knowledge.evidence import Evidence
from knowledge.outcome import Outcome
from operator_registry.record import Record
from optimizer.candidate import Candidate


class QueuedGoal(Record):
    """A goal as it is put into the queue."""

    key: str
    """Equal keys are the same goal, however often it is enqueued."""
    operator: str
    hardware: str
    operator_digest: str
    reasons: tuple[str, ...]
    share_of_time: float = 0.0
    payload: str = ""
    """What the one who enqueued it needs again; opaque to the store."""


class StoredGoal(QueuedGoal):
    """A goal with what has become of it."""

    queued_at: float
    holder: str | None = None
    held_until: float | None = None
    finished_at: float | None = None
    verdict: str | None = None
    result: str | None = None


class Trial(Record):
    """A finished trial of a search."""

    number: int
    """From 1, in the order recorded."""
    candidate: Candidate
    evaluation: Evaluation
    fitness: float
    spent_s: float
    """Seconds of the search's budget; 0 where the evaluation was found, not run."""


class Confirmation(Record):
    """A confirming run of a search."""

    number: int
    candidate: str
    alpha: float
    result: Evidence | Outcome
    """An outcome where the candidate failed the run's checks."""
    spent_s: float
