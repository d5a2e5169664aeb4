"""Where trials run."""

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from knowledge.evaluation import Environment, Evaluation
from knowledge.evidence import Evidence
from knowledge.outcome import Outcome
from optimizer.candidate import Candidate


class Runner(Protocol):
    """A place with a device, on which the judge tries candidates of one goal."""

    @property
    def environment(self) -> Environment:
        """The environment in which results of this runner hold."""
        ...

    @property
    def builds_ahead(self) -> bool:
        """Whether what is asked for next can be built while something is tried."""
        ...

    def evaluate(
        self,
        candidates: Sequence[Candidate],
        *,
        ahead: Sequence[Candidate] = (),
        on_done: Callable[[Evaluation], None] = ...,
    ) -> Sequence[Evaluation]:
        """Return one evaluation for each candidate, in order.

        Args:
            candidates: What is to be tried, frozen.
            ahead: What the next call will probably ask for, frozen too: it is built meanwhile
                where that disturbs nothing.
            on_done: Called with each evaluation as soon as there is one, so that it can be kept
                whatever happens to the others.

        Raises:
            RunnerError: The machine failed; nothing is known of the candidates.
        """
        ...

    def confirm(
        self,
        candidate: Candidate,
        *,
        deadline_s: float,
        alpha: float,
        handed_back: Collection[str],
        earlier: Sequence[Evidence] = (),
    ) -> Evidence | Outcome:
        """Return the evidence of a confirming run in fresh processes.

        An `Outcome` other than Passed comes back where the candidate fails the drawn sizes.

        Args:
            candidate: The kernel, frozen.
            deadline_s: Seconds that the run may take; fewer pairs are taken when it is short.
            alpha: One-sided level of the lower end of the ratio's interval.
            handed_back: The dispatch table as frozen before the run: the workloads that the
                baseline serves in the kernel's stead.
            earlier: The evidence of earlier confirming runs of this very candidate, in order: their
                samples are pooled with the new ones.

        Raises:
            RunnerError: The machine failed; nothing is known of the candidate.
        """
        ...
