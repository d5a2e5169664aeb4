"""A landscape replayed: a runner that looks results up, and a source of drafts."""

import random
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from knowledge.evaluation import Environment, Evaluation
from knowledge.evidence import Evidence
from knowledge.outcome import Outcome
from optimizer.candidate import Candidate
from optimizer.errors import RunnerError
from optimizer.landscapes.landscape import Landscape
from optimizer.propose.proposer import NodeContext

LEAST_DRAFTS: Final = 4
"""From each structure one draft at least, and so many in all where there are few."""


@dataclass(frozen=True)
class ReplayRunner:
    """Tells what the judge found when the landscape was recorded; it costs nothing."""

    landscape: Landscape

    @property
    def environment(self) -> Environment:
        """Return the environment of the recording."""
        return self.landscape.environment

    @property
    def builds_ahead(self) -> bool:
        """Nothing is built."""
        return False

    def evaluate(
        self,
        candidates: Sequence[Candidate],
        *,
        ahead: Sequence[Candidate] = (),
        on_done: Callable[[Evaluation], None] = lambda _: None,
    ) -> list[Evaluation]:
        """See `Runner.evaluate`.

        Raises:
            RunnerError: A candidate is no point of the landscape.
        """
        evaluations = [self._look_up(candidate) for candidate in candidates]
        for evaluation in evaluations:
            on_done(evaluation)
        return evaluations

    def confirm(
        self,
        candidate: Candidate,
        *,
        deadline_s: float,
        alpha: float,
        handed_back: Collection[str],
        earlier: Sequence[Evidence] = (),
    ) -> Evidence | Outcome:
        """Refuse: each point was timed once, which proves nothing.

        Raises:
            RunnerError: Always.
        """
        msg = f"{self.landscape.name} is a recording, with which nothing can be confirmed"
        raise RunnerError(msg)

    def _look_up(self, candidate: Candidate) -> Evaluation:
        landscape = self.landscape
        place = landscape.places.get(candidate.id)
        if place is None:
            msg = f"{candidate.note or candidate.id} is no point of {landscape.name}"
            raise RunnerError(msg)
        return Evaluation(
            candidate=candidate.id,
            operator=landscape.operator,
            operator_digest=landscape.operator_digest,
            hardware=landscape.hardware,
            environment=landscape.environment,
            judge_version=landscape.judge_version,
            outcome=landscape.outcome(place),
            took_s=0.0,
        )


@dataclass
class Drafter:
    """Stands for the synthesiser: a draft or more of each structure, and a node's other structures.

    Its drafts are points drawn by a seed, for a person's good defaults can't be measured.
    """

    landscape: Landscape
    seed: int
    name: str = "synthesis"
    """The origin of its candidates."""
    _drafts: tuple[Candidate, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Draw the drafts."""
        rng = random.Random(self.seed)  # noqa: S311 - which points, no secret
        structures = self.landscape.structures
        count = max(LEAST_DRAFTS, len(structures))
        drawn = (structures[n % len(structures)] for n in range(count))
        self._drafts = tuple(
            structure.candidate(
                {name: rng.choice(values) for name, values in structure.tunables.items()},
                origin=self.name,
                note=structure.name,
            )
            for structure in drawn
        )

    def propose(self, node: NodeContext, count: int) -> Sequence[Candidate]:
        """See `Proposer.propose`; nothing comes of two, for that is the tuner's part."""
        if node.mate is not None:
            return ()
        offered = self._drafts if node.candidate is None else self._variants(node.candidate)
        fresh = {c.id: c for c in offered if c.id not in node.tried}
        return tuple(fresh.values())[:count]

    def _variants(self, candidate: Candidate) -> Iterator[Candidate]:
        """Yield the drafts of other structures with the candidate's choices, where they fit."""
        for draft in self._drafts:
            if draft.code == candidate.code:
                continue
            structure = next(s for s in self.landscape.structures if s.name == draft.note)
            fitting = {
                name: value
                for name, value in candidate.chosen.items()
                if value in structure.tunables.get(name, ())
            }
            chosen = {**draft.chosen, **fitting}
            yield draft.model_copy(update={"chosen": chosen, "parent": candidate.id})
