"""The synthesiser as a proposer: structural variants of what was captured."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from operator_registry.hardware import HardwareSpec
from operator_registry.registry import Operator
from optimizer.candidate import Candidate, Choice, load_tunables
from optimizer.errors import CaptureError
from optimizer.propose.proposer import NodeContext
from optimizer.propose.synthesis.drafts import make_drafts
from optimizer.propose.synthesis.graph import Graph


@dataclass
class SynthesisProposer:
    """Writes kernels for the regions of captured graphs, a draft for each way to lay out loops."""

    operator: Operator
    graphs: Sequence[Graph]
    hardware: HardwareSpec
    name: str = field(default="synthesis", init=False)
    reasons: list[str] = field(default_factory=list, init=False)
    """Why graphs gave no candidate."""
    _drafts: tuple[Candidate, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Make the drafts."""
        drafts: dict[str, Candidate] = {}
        for graph in self.graphs:
            try:
                for draft in make_drafts(self.operator.spec, graph, self.hardware):
                    drafts.setdefault(draft.id, draft)
            except CaptureError as error:
                self.reasons.append(f"{graph.form}: {error}")
        self._drafts = tuple(drafts.values())

    @property
    def drafts(self) -> tuple[Candidate, ...]:
        """Return all drafts, the likeliest of each graph first."""
        return self._drafts

    def propose(self, node: NodeContext, count: int) -> Sequence[Candidate]:
        """See `Proposer.propose`: drafts for the root, for a candidate its other structures."""
        offered = self._drafts if node.candidate is None else tuple(self._variants(node.candidate))
        fresh = [candidate for candidate in offered if candidate.id not in node.tried]
        return fresh[:count]

    def _variants(self, candidate: Candidate) -> Iterator[Candidate]:
        """Yield the drafts of another structure with the candidate's choices, where they fit."""
        for draft in self._drafts:
            if draft.code == candidate.code:
                continue
            chosen = draft.chosen | _fitting(draft, candidate.chosen)
            yield draft.model_copy(update={"chosen": chosen, "parent": candidate.id})


def _fitting(draft: Candidate, chosen: Choice) -> Choice:
    admitted = load_tunables(draft.code, language=draft.plan.language)
    return {n: value for n, value in chosen.items() if value in admitted.get(n, ())}
