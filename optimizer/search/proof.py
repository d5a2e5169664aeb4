"""Which candidate is confirmed next, at which level, and behind which dispatch (pure)."""

from collections.abc import Sequence

from knowledge.evaluation import Environment
from knowledge.evidence import Evidence, NotBetter, Unclear, Verdict
from knowledge.fitness import hand_back
from knowledge.outcome import Outcome, Passed
from knowledge.verdict import judge
from optimizer.events import explain
from optimizer.store import Confirmation, Trial

WORTH_SERVING = 1.03
"""A workload on which the search saw less than this is handed back to its best peer.

Above the 0.98 that the judge demands, because a search's few samples stray by some percent, and one
doubtful workload would cost the whole verdict.
"""
MOST_EVIDENCE = 2
"""How often a goal is measured; a second time only where the first left it unclear."""


def rank(trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials that passed and were timed, the fittest first."""
    timed = (trial for trial in trials if trial.fitness > 0)
    return sorted(timed, key=lambda trial: (-trial.fitness, trial.number))


def pick_for_proof(trials: Sequence[Trial], confirmations: Sequence[Confirmation]) -> Trial | None:
    """Return the trial whose candidate is to be confirmed next; None where all is said."""
    evidence = _standing(confirmations)
    if evidence:
        again = len(evidence) < MOST_EVIDENCE and isinstance(judge(evidence[-1]), Unclear)
        named = evidence[-1].candidate
        return next((t for t in trials if again and t.candidate.id == named), None)
    failed = find_failed(confirmations)
    left = [trial for trial in rank(trials) if trial.candidate.id not in failed]
    # Another choice of tunables mostly shares the fault: other code goes first.
    suspect = {t.candidate.code for t in trials if t.candidate.id in failed}
    return min(left, key=lambda trial: trial.candidate.code in suspect, default=None)


def find_failed(confirmations: Sequence[Confirmation]) -> frozenset[str]:
    """Return the candidates that failed in any confirming run, once being enough."""
    return frozenset(c.candidate for c in confirmations if not isinstance(c.result, Evidence))


def _standing(confirmations: Sequence[Confirmation]) -> list[Evidence]:
    """Return the evidence, but for that of candidates that failed in another run."""
    failed = find_failed(confirmations)
    return [
        c.result
        for c in confirmations
        if isinstance(c.result, Evidence) and c.candidate not in failed
    ]


def next_alpha(
    first: float, confirmations: Sequence[Confirmation], others: Sequence[Evidence] = ()
) -> float:
    """Return the level of the next confirming run: halved for each one before it.

    Args:
        first: The level of the first.
        confirmations: Those of this search.
        others: The evidence of other searches for the same claim: asking again buys nothing.
    """
    return float(first / 2 ** (len(confirmations) + len(others)))


def find_same_claim(
    evidence: Sequence[Evidence], environment: Environment, judge_version: str
) -> tuple[Evidence, ...]:
    """Return the evidence that was asked for in this environment, of this judge."""
    return tuple(
        e for e in evidence if (e.environment, e.judge_version) == (environment, judge_version)
    )


def find_earlier(
    candidate: str, confirmations: Sequence[Confirmation], others: Sequence[Evidence]
) -> tuple[Evidence, ...]:
    """Return the evidence that a candidate has already, in order: its samples are pooled."""
    mine = [c.result for c in confirmations if isinstance(c.result, Evidence)]
    return tuple(evidence for evidence in (*others, *mine) if evidence.candidate == candidate)


def freeze_dispatch(outcome: Outcome) -> frozenset[str]:
    """Return which workloads are handed back to the baseline.

    None are where the candidate is worth serving nowhere: then the run shows by how much it loses.
    """
    if not isinstance(outcome, Passed):
        return frozenset()
    table = hand_back(outcome.times, floor=WORTH_SERVING)
    return frozenset() if len(table) == len(outcome.times) else table


def conclude(trials: Sequence[Trial], confirmations: Sequence[Confirmation]) -> Verdict:
    """Return the verdict on a search."""
    if evidence := find_evidence(confirmations):
        return judge(evidence)
    outcomes = [c.result for c in confirmations if not isinstance(c.result, Evidence)]
    if outcomes:
        failed = len(find_failed(confirmations))
        candidates = "1 candidate" if failed == 1 else f"{failed} candidates"
        return NotBetter(reason=f"{candidates} failed when confirmed: {explain(outcomes[-1])}")
    if any(isinstance(trial.evaluation.outcome, Passed) for trial in trials):
        return Unclear(reason="candidates were checked, but there is no device here to time them")
    return NotBetter(reason=f"none of {len(trials)} candidates passed")


def find_evidence(confirmations: Sequence[Confirmation]) -> Evidence | None:
    """Return the evidence that the verdict stands on: the last one that still stands."""
    evidence = _standing(confirmations)
    return evidence[-1] if evidence else None
