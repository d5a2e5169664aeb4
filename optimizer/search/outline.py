"""A search's tree in lines of text: the best path, what was tried beside it, and how it ended."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from optimizer.events import explain
from optimizer.search.tree import Node, Tree

ROWS: Final = 60
"""Nodes that are shown, unless more are asked for."""
_DETAIL: Final = 100
"""Characters of a note or a reason."""
_ROOTS: Final = 3
"""Of a best path that is too long, so many nodes at its beginning are shown."""


@dataclass(frozen=True)
class Line:
    """A line of the drawing."""

    text: str
    best: bool
    """Whether it is on the path to the best node."""


def find_best_path(tree: Tree) -> list[Node]:
    """Return the nodes from a draft to the best one; none where none was timed."""
    return [] if tree.best is None else [tree.best, *tree.best.line()][::-1]


def pick_shown(tree: Tree, *, rows: int) -> list[Node]:
    """Return the nodes worth showing, in the order of their trials.

    Those of the best path go first, of which half of the rows are enough; then the fittest; then
    the latest that were not timed.
    """
    path = find_best_path(tree)
    if len(path) > max(rows // 2, _ROOTS + 1):
        path = [*path[:_ROOTS], *path[_ROOTS - max(rows // 2, _ROOTS + 1) :]]
    shown = {node.place: node for node in path}
    for nodes in (tree.ranked, reversed(tree.nodes)):
        for node in nodes:
            if len(shown) >= rows:
                break
            shown.setdefault(node.place, node)
    return [shown[place] for place in sorted(shown)]


def draw(tree: Tree, *, rows: int = ROWS) -> list[Line]:
    """Return the tree in lines; what is left out is counted where it would stand."""
    shown = pick_shown(tree, rows=rows)
    below = _arrange(shown)
    hidden = _count_hidden(tree, shown)
    best = {node.place for node in find_best_path(tree)}
    lines: list[Line] = []
    # A stack in place of recursion: a tree may be deeper than Python's own.
    stack = [("", *entry) for entry in reversed(_entries(None, below, hidden))]
    while stack:
        indent, item, is_last = stack.pop()
        branch = "└─ " if is_last else "├─ "
        if isinstance(item, str):
            lines.append(Line(f"{indent}{branch}{item}", best=False))
            continue
        node, skipped = item
        on_path = node.place in best
        mark = "* " if on_path else ""
        steps = f"({skipped} {'step' if skipped == 1 else 'steps'} on) " if skipped else ""
        lines.append(Line(f"{indent}{branch}{steps}{mark}{describe(node)}", best=on_path))
        deeper = indent + ("   " if is_last else "│  ")
        stack += [(deeper, *entry) for entry in reversed(_entries(node.place, below, hidden))]
    return lines


def describe(node: Node) -> str:
    """Return a node in a line: number, end, speed, who made it, and what was done."""
    outcome = node.trial.evaluation.outcome
    candidate = node.trial.candidate
    end = outcome.kind.replace("_", " ")
    if node.fitness > 0:
        end = f"{node.fitness:.2f}x"
    elif reason := explain(outcome):
        end = f"{end} ({clip(reason)})"
    crossed = f" x {node.mate.trial.number}" if node.mate else ""
    note = f": {clip(candidate.note)}" if candidate.note else ""
    return f"{node.trial.number} {end} {clip(candidate.origin)}{crossed}{note}"


def clip(text: str) -> str:
    """Return a stranger's text as a line may hold it: without escapes, and not too long."""
    plain = "".join(c if c.isprintable() else " " for c in text).strip()
    return plain if len(plain) <= _DETAIL else f"{plain[: _DETAIL - 1]}…"


_Shown = tuple[Node, int]
"""A node, and how many between it and the one that it is drawn below are left out."""


def _arrange(shown: Sequence[Node]) -> dict[int | None, list[_Shown]]:
    """Return what is drawn below each shown node: it is the nearest ancestor that is shown."""
    places = {node.place for node in shown}
    below: dict[int | None, list[_Shown]] = {}
    for node in shown:
        skipped, above = 0, None
        for one in node.line():
            if one.place in places:
                above = one.place
                break
            skipped += 1
        below.setdefault(above, []).append((node, skipped))
    return below


def _count_hidden(tree: Tree, shown: Sequence[Node]) -> dict[int | None, Counter[str]]:
    """Return the outcomes of what is left out below each shown node."""
    places = {node.place for node in shown}
    anchors: dict[int, int | None] = {}
    hidden: dict[int | None, Counter[str]] = {}
    for node in tree.nodes:
        above = None if node.parent is None else anchors[node.parent.place]
        anchors[node.place] = node.place if node.place in places else above
        if node.place not in places:
            kind = node.trial.evaluation.outcome.kind
            hidden.setdefault(above, Counter())[kind] += 1
    return hidden


def _entries(
    place: int | None,
    below: dict[int | None, list[_Shown]],
    hidden: dict[int | None, Counter[str]],
) -> list[tuple[_Shown | str, bool]]:
    """Return what is drawn below a node, and which of it is the last."""
    items: list[_Shown | str] = [*below.get(place, ())]
    if left := hidden.get(place):
        items.append(", ".join(_tell_hidden(left)))
    return [(item, at == len(items) - 1) for at, item in enumerate(items)]


def _tell_hidden(left: Counter[str]) -> Iterator[str]:
    yield f"… {left.total()} more"
    for kind, number in left.most_common():
        yield f"{number} {kind.replace('_', ' ')}"
