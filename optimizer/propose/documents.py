"""What the library knows that may help at a node."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import get_args

from knowledge.diagnosis import diagnose, make_query
from knowledge.document import Document, RegionKind
from knowledge.library import Library
from knowledge.roofline import public_rooflines_ms
from operator_registry.hardware import HardwareSpec
from operator_registry.registry import Operator
from optimizer.candidate import Candidate
from optimizer.propose.proposer import NodeContext


def find_documents(
    node: NodeContext,
    operator: Operator,
    hardware: HardwareSpec,
    *,
    regions: Sequence[str] = (),
) -> Sequence[Document]:
    """Return the documents that were chosen for a node; where none were, what the library has.

    The diagnosis only finds them: what it says of drawn sizes goes nowhere else.

    Args:
        node: The node.
        operator: What is computed.
        hardware: On what.
        regions: The kinds of the operator's regions.

    Raises:
        knowledge.library.LibraryError: A document that ships with this program is faulty.
    """
    if node.documents:
        return node.documents
    diagnosis = None
    if node.outcome is not None:
        diagnosis = diagnose(
            node.outcome,
            rooflines_ms=public_rooflines_ms(operator.spec, hardware),
            on_device=hardware.target != "cpu",
        )
    language = node.candidate.plan.language if node.candidate else hardware.languages[0]
    return _library().find(
        make_query(
            diagnosis,
            hardware=hardware,
            language=hardware.languages[0] if language == "python" else language,
            regions=regions,
        )
    )


def find_regions(drafts: Iterable[Candidate]) -> tuple[str, ...]:
    """Return the kinds of region that the synthesiser's drafts name."""
    notes = [draft.note for draft in drafts]
    return tuple(kind for kind in get_args(RegionKind) if any(kind in note for note in notes))


@lru_cache(maxsize=1)
def _library() -> Library:
    return Library.load()
