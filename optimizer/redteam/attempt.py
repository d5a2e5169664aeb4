"""One candidate before the judge, with some guards down: whether it gets through, and why not."""

from collections.abc import Callable, Sequence

from knowledge.evaluation import Evaluation
from knowledge.evidence import Better, Evidence, Interval
from knowledge.outcome import Cheated, Failed, Incorrect, Outcome, Passed, TimedOut
from knowledge.verdict import judge
from operator_registry.record import Record
from optimizer.candidate import Candidate
from optimizer.errors import RunnerError
from optimizer.evaluate.evaluator import Evaluator

ALPHA = 0.001
CONFIRM_S = 60.0
_CLEAR = 10.0
"""A ratio that no interval keeps from being Better."""
_LONGEST, _HEAD = 300, 100


class Attempt(Record):
    """What the judge made of a candidate."""

    through: bool
    """It passed; in a confirming run: nothing but its speed stands between it and Better."""
    how: str
    """The outcome in a line."""
    guard: str = ""
    """The guard that saw a cheat, where one says so."""
    told_ms: float | None = None
    """The time that the judge believes, on the first workload."""
    noisy: bool = False
    """Only the measurement speaks against it, and another might not."""
    broke: str = ""
    """How the judge itself failed, where it did."""


def evaluate(
    judge_: Evaluator,
    candidates: Sequence[Candidate],
    on_done: Callable[[str, Attempt], None],
) -> None:
    """Tell of each candidate, by its id, what a search's judge makes of it."""
    waiting = {candidate.id: candidate for candidate in candidates}

    def note(evaluation: Evaluation) -> None:
        del waiting[evaluation.candidate]
        on_done(evaluation.candidate, _of_outcome(evaluation.outcome))

    try:
        judge_.evaluate(candidates, on_done=note)
    except RunnerError as error:
        if len(candidates) == 1:
            broke = Attempt(through=False, how="the judge failed", broke=_short(str(error)))
            on_done(candidates[0].id, broke)
            return
        # Whose fault it is shows when each is tried alone.
        for one in list(waiting.values()):
            evaluate(judge_, [one], on_done)


def confirm(judge_: Evaluator, candidate: Candidate) -> Attempt:
    """Return what a confirming run makes of a candidate."""
    try:
        found = judge_.confirm(candidate, deadline_s=CONFIRM_S, alpha=ALPHA, handed_back=())
    except RunnerError as error:
        return Attempt(through=False, how="the judge failed", broke=_short(str(error)))
    return _of_evidence(found) if isinstance(found, Evidence) else _of_outcome(found)


def find_suspicion(evidence: Evidence) -> str | None:
    """Return what bars the evidence from being Better, its noise and its ratio aside."""
    clear = Interval(low=_CLEAR, estimate=_CLEAR, high=_CLEAR)
    level = Interval(low=1.0, estimate=1.0, high=1.0)
    workloads = tuple(w.model_copy(update={"ratio": clear}) for w in evidence.workloads)
    null = evidence.null.model_copy(update={"pair_ratios": (1.0,) * 2, "ratio": level})
    verdict = judge(
        evidence.model_copy(update={"ratio": clear, "workloads": workloads, "null": null})
    )
    return None if isinstance(verdict, Better) else verdict.reason


def _of_outcome(outcome: Outcome) -> Attempt:
    match outcome:
        case Passed(times=times, library_only=library_only):
            how = "passed, marked library_only" if library_only else "passed"
            told_ms = times[0].device_ms if times else None
            return Attempt(through=not library_only, how=how, told_ms=told_ms)
        case Incorrect(reason=reason):
            return Attempt(through=False, how=_short(f"incorrect: {reason}"))
        case Failed(stage=stage, log=log):
            last = log.strip().splitlines()[-1] if log.strip() else ""
            return Attempt(through=False, how=_short(f"failed in {stage}: {last}"))
        case TimedOut(stage=stage, deadline_s=deadline_s):
            return Attempt(through=False, how=f"timed out in {stage} after {deadline_s:g} s")
        case Cheated(guard=guard, detail=detail):
            return Attempt(through=False, how=_short(f"cheated: {detail}"), guard=guard)


def _of_evidence(evidence: Evidence) -> Attempt:
    suspicion = find_suspicion(evidence)
    return Attempt(
        through=suspicion is None,
        how=_short(suspicion or "nothing but the ratio decides"),
        told_ms=evidence.workloads[0].device_ms,
        noisy=suspicion is not None and bool(evidence.faults),
    )


def _short(text: str) -> str:
    """Return a line; of a long one the head and the tail, where a traceback says what it is."""
    line = " ".join(text.split())
    tail = _LONGEST - _HEAD - 1
    return line if len(line) <= _LONGEST else f"{line[:_HEAD]}…{line[-tail:]}"
