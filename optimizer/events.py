"""What a job tells while it works, one JSON line an event."""

from collections.abc import Callable
from typing import IO, Literal

from knowledge.outcome import Cheated, Failed, Incorrect, Outcome, Passed, TimedOut
from optimizer.job import ErrorEvent, PhaseEvent, ResultEvent, TrialEvent
from optimizer.store import Trial

Event = PhaseEvent | TrialEvent | ResultEvent | ErrorEvent
Tell = Callable[[Event], None]
Phase = Literal["capture", "baseline", "search", "confirm", "write", "check", "bench", "compare"]


def tell_lines(file: IO[str]) -> Tell:
    """Return a function that writes each event to a file at once."""

    def tell(event: Event) -> None:
        file.write(event.to_json() + "\n")
        file.flush()

    return tell


def trial_event(trial: Trial, *, best: float, left_s: float) -> TrialEvent:
    """Return what is told of a trial that is in the store."""
    return TrialEvent(
        number=trial.number,
        candidate=trial.candidate.id,
        origin=trial.candidate.origin,
        note=trial.candidate.note,
        outcome=trial.evaluation.outcome.kind,
        detail=explain(trial.evaluation.outcome),
        fitness=trial.fitness,
        best=best,
        reused=trial.spent_s == 0,
        seconds_left=left_s,
    )


def explain(outcome: Outcome) -> str:
    """Return in one line why a candidate did not pass; empty where it did."""
    match outcome:
        case Passed():
            return ""
        case Incorrect(reason=reason):
            return reason
        case Failed(stage=stage, log=log):
            return f"{stage}: {log.strip().splitlines()[-1] if log.strip() else 'no log'}"
        case TimedOut(stage=stage, deadline_s=deadline_s):
            return f"{stage}: still busy after {deadline_s:g} s"
        case Cheated(guard=guard, detail=detail):
            return f"{guard}: {detail}"
