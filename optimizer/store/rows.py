"""What the store hands out: goals, trials, confirming runs, devices, a code host's mail."""

from datetime import date
from typing import Literal

from knowledge.evaluation import Evaluation
from knowledge.evidence import Evidence
from knowledge.outcome import Outcome
from operator_registry.record import Record
from optimizer.candidate import Candidate
from optimizer.spending import Spending


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


class StoredSearch(Record):
    """A search, without its trials."""

    id: int
    goal_key: str
    operator: str
    hardware: str
    finished_at: float | None = None
    """In seconds since 1970; None while it goes on, or was left."""


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


class Cost(Record):
    """What one source spent on one search in one day."""

    operator: str
    hardware: str
    search: int
    day: date
    """In UTC."""
    source: str
    """Who spent it: ``trial``, ``confirm``, ``build``, or a proposer's name."""
    spent: Spending


class NewDevice(Record):
    """A device as the daemon that owns its host, or its cluster, found it."""

    name: str
    """``HOST/DEVICE``: the same at each look."""
    host: str
    hardware: str
    """What its driver, or the cluster, calls its kind."""
    arch: str = ""
    """What the compiler would be told; empty where nobody has said."""
    access: str = ""
    """How a job gets at it; opaque to the store."""


DeviceRule = Literal["cordoned", "draining"]
Ruler = Literal["person", "health"]
DeviceState = Literal["idle", "leased", "cordoned", "draining"]


class StoredDevice(NewDevice):
    """A device with what has become of it."""

    rule: DeviceRule | None = None
    """What somebody said; none where it may be leased."""
    why: str = ""
    ruled_by: Ruler = "health"
    """Who said so; of one without a rule, who freed it. A lease forgets a person's word."""
    since: float = 0.0
    """When its state last changed."""
    holder: str | None = None
    task: str = ""
    """What the holder does with it."""
    held_until: float | None = None

    def is_held(self, now: float) -> bool:
        """Return whether somebody's lease of it has not ended."""
        return self.holder is not None and (self.held_until or 0.0) > now

    def state(self, now: float) -> DeviceState:
        """Return what it is to whoever wants to use it; one that is drained is cordoned."""
        held = self.is_held(now)
        if self.rule == "draining" and held:
            return "draining"
        if self.rule is not None:
            return "cordoned"
        return "leased" if held else "idle"


class Delivery(Record):
    """What a code host sent."""

    id: str
    event: str
    body: str
    """JSON, as it came."""
    received_at: float


CommandState = Literal["received", "running", "done", "refused", "failed", "misunderstood"]
OPEN_STATES: tuple[CommandState, ...] = ("received", "running")


class NewCommand(Record):
    """A line of a comment by which a person asks for something."""

    comment_id: int
    line: int
    """Of the comment, from 1."""
    number: int
    """The issue or pull request that it stands below."""
    head_sha: str | None = None
    """The pull request's head when it was received."""
    author_id: int
    author: str
    text: str
    """As it was written."""


class StoredCommand(NewCommand):
    """A command with what has become of it."""

    id: int
    received_at: float
    state: CommandState
    told: str = ""
    """What the person is told of it."""
    goal_key: str | None = None
    """The goal that it queued or concerns."""
    changed_at: float


URGENT = 0
"""The priority of what goes before everything else."""


class Effect(Record):
    """Something to be done on the code host, once."""

    key: str
    """Equal keys are the same effect, however often it is asked for."""
    kind: str
    payload: str
    """JSON; its form is the kind's affair."""
    priority: int = 5
    """The least number goes first."""


class StoredEffect(Effect):
    """An effect with what has become of it."""

    id: int
    made_at: float
    not_before: float
    attempts: int
    done_at: float | None = None
    remote: str | None = None
    """What the code host calls it."""
    error: str | None = None
    """Why it failed last; with `done_at`, why it was given up."""


class Backlog(Record):
    """How much of what passes by a code host waits."""

    deliveries: int
    """Nobody has handled them."""
    oldest_delivery_at: float | None
    commands: int
    """They are in one of `OPEN_STATES`."""
    effects: int
    """They are neither done nor given up."""
    oldest_effect_at: float | None
    given_up: int
    """Effects that failed for good."""
