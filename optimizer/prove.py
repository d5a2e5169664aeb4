"""The confirming runs at the end of a search, until all is said or what they may take is spent."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from knowledge.evidence import Ending, Evidence, SearchSummary, Unclear, Verdict
from knowledge.outcome import Passed
from optimizer.events import Tell
from optimizer.job import OptimizeRequest, PhaseEvent
from optimizer.search.endings import ENDINGS
from optimizer.search.proof import (
    conclude,
    find_earlier,
    find_same_claim,
    freeze_dispatch,
    next_alpha,
    pick_for_proof,
)
from optimizer.search.search import Search
from optimizer.spending import Allowance, Spending
from optimizer.store import Confirmation, Trial

LEAST_CONFIRM_S: Final = 20.0
"""A confirming run gets at least so long, even where the search has overrun its share."""
AGAIN_S: Final = 10.0
"""Another one is begun only while so much is left: most that fail do so in their first seconds."""
_CURVE_POINTS: Final = 100


@dataclass(frozen=True)
class Proving:
    """Proves what a search has found."""

    request: OptimizeRequest
    search: Search
    tell: Tell

    def run(self) -> Verdict:
        """Return the verdict; each confirming run is in the store before the next begins.

        Raises:
            RunnerError: The machine failed.
            StoreError: The database is away.
        """
        search = self.search
        search_id = search.place.search_id
        confirmations = list(search.store.confirmations(search_id))
        while trial := pick_for_proof(search.trials, confirmations):
            left_s = search.budget.left_s(search.spent_s)
            if search.stopped() or (confirmations and left_s < AGAIN_S):
                break
            if excess := self._find_excess():
                if confirmations:
                    break
                return Unclear(reason=f"nothing was proven: {ENDINGS[excess]}")
            deadline_s = self._clip(max(left_s, LEAST_CONFIRM_S))
            note = trial.candidate.note
            self.tell(PhaseEvent(phase="confirm", detail=note, seconds_left=deadline_s))
            done = self._confirm(trial, confirmations, deadline_s=deadline_s)
            now = search.clock.epoch_s()
            search.store.record_confirmation(search_id, trial.candidate, done, now=now)
            confirmations.append(done)
        return conclude(search.trials, confirmations)

    def _confirm(
        self, trial: Trial, before: Sequence[Confirmation], *, deadline_s: float
    ) -> Confirmation:
        search = self.search
        others = find_same_claim(
            search.store.other_evidence(search.place.search_id),
            search.runner.environment,
            search.place.judge_version,
        )
        alpha = next_alpha(self.request.alpha, before, others)
        began_s, began_cpu_s = search.spent_s, search.clock.cpu_s()
        result = search.runner.confirm(
            trial.candidate,
            deadline_s=deadline_s,
            alpha=alpha,
            handed_back=freeze_dispatch(trial.evaluation.outcome),
            earlier=find_earlier(trial.candidate.id, before, others),
        )
        took_s = search.spent_s - began_s
        took_cpu_s = max(0.0, search.clock.cpu_s() - began_cpu_s)
        search.account.add(Spending(device_s=took_s, cpu_s=took_cpu_s), source="confirm")
        if isinstance(result, Evidence):
            result = result.model_copy(update={"search": _summary(search, trial)})
        return Confirmation(
            number=len(before) + 1,
            candidate=trial.candidate.id,
            alpha=alpha,
            result=result,
            spent_s=took_s,
        )

    def _find_excess(self) -> Ending | None:
        """Return which seconds a confirming run may not take any more: it needs nothing else."""
        allowance = self.request.allowance
        seconds = Allowance(device_s=allowance.device_s, cpu_s=allowance.cpu_s)
        return seconds.find_excess(self.search.account.spent)

    def _clip(self, deadline_s: float) -> float:
        """Return a deadline within the device's seconds that are left."""
        left_s = self.request.allowance.left_after(self.search.account.spent).device_s
        return deadline_s if left_s is None else min(deadline_s, left_s)


def _summary(search: Search, trial: Trial) -> SearchSummary:
    curve = [round(best, 4) for best in search.tree.curve]
    stride = -(-len(curve) // _CURVE_POINTS) or 1
    return SearchSummary(
        trials=len(search.trials),
        passed=sum(isinstance(t.evaluation.outcome, Passed) for t in search.trials),
        seconds=round(search.spent_s, 3),
        proposer=trial.candidate.origin,
        best_so_far=tuple(curve[::stride]),
        ending=search.ending,
    )
