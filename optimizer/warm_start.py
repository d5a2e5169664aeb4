"""Where a search may begin but from nothing: kernels that were proven for operators like its own.

They come from the evidence in the store and from published kernels. Each is taken with a small
probability only: reuse finds a good kernel sooner, and narrows what is looked at. Whether one is
taken is drawn from the goal's key and the candidate, so that a killed search goes on with the same.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from knowledge.evidence import Better
from knowledge.verdict import judge
from operator_registry.hardware import HardwareSpec
from operator_registry.record import digest
from operator_registry.registry import Operator
from optimizer.candidate import Candidate
from optimizer.errors import KernelFolderError
from optimizer.kernel import read_kernel
from optimizer.likeness import find_renaming, is_of_size, likeness
from optimizer.propose.synthesis.rename import rename_plan
from optimizer.store import Store, Tested

ORIGIN: Final = "warm start"
OURS: Final = frozenset({"synthesis", "tuner"})
"""Whose candidates are this program's own code; all others' is foreign."""
MOST: Final = 8
"""So many are tried at most."""
_LOOKED_AT: Final = 200


@dataclass(frozen=True)
class Beginning:
    """The search that is about to begin."""

    operator: Operator
    hardware: HardwareSpec
    goal_key: str
    search_id: int


def find_warm_starts(
    store: Store,
    beginning: Beginning,
    *,
    published: Sequence[Path] = (),
    probability: float,
    trusts_foreign: Callable[[], bool],
) -> tuple[Candidate, ...]:
    """Return the candidates to begin with, in the search's own names; the likeliest first.

    Args:
        store: What was searched before.
        beginning: The search.
        published: Folders of published kernels for this hardware.
        probability: Of each to be taken.
        trusts_foreign: Whether others' code than this program's may run here; asked only where
            there is such.

    Raises:
        StoreError: The database is away.
    """
    if probability <= 0:
        return ()
    ours = beginning.operator.spec
    tested = store.tested_before(beginning.search_id, likeness=likeness(ours), limit=_LOOKED_AT)
    proven = [t for t in (*_read(published), *tested) if isinstance(judge(t.evidence), Better)]
    # Versions of the operator itself before others: those compute the same, or nearly so.
    proven.sort(key=lambda t: t.operator.name != ours.name)
    found: dict[str, Candidate] = {}
    for one in proven:
        candidate = _adapt(one, beginning)
        if candidate is None or not _is_drawn(beginning.goal_key, candidate.id, probability):
            continue
        if _wrote(one) in OURS or trusts_foreign():
            found.setdefault(candidate.id, candidate)
    return tuple(found.values())[:MOST]


def _read(folders: Iterable[Path]) -> Iterator[Tested]:
    for folder in folders:
        try:
            kernel = read_kernel(folder)
        except KernelFolderError:
            continue  # a damaged folder is no kernel
        for variant in kernel.variants.values():
            yield Tested(kernel.operator, variant.candidate, variant.evidence)


def _adapt(tested: Tested, beginning: Beginning) -> Candidate | None:
    """Return the candidate in the names of the search's operator; None where it can't serve it."""
    theirs, ours = tested.operator.spec, beginning.operator.spec
    if not is_of_size(theirs, ours, beginning.hardware.target):
        return None
    renaming = find_renaming(theirs, ours)
    if renaming is None and theirs.name != ours.name:
        return None
    # A version whose form is another may still serve: what it names is mostly there.
    plan = rename_plan(tested.candidate.plan, renaming or {})
    candidate = tested.candidate
    note = f"proven for {theirs.name}: {candidate.note}".strip(": ")
    return candidate.model_copy(
        update={"plan": plan, "origin": ORIGIN, "note": note, "parent": None, "mate": None}
    )


def _is_drawn(goal_key: str, candidate_id: str, probability: float) -> bool:
    return int(digest(goal_key, candidate_id)[:12], 16) < probability * 16**12


def _wrote(tested: Tested) -> str:
    """Return who proposed a candidate."""
    search = tested.evidence.search
    return tested.candidate.origin if search is None else search.proposer
