"""Neighbouring axes made one wherever all tensors of a region allow it."""

from collections.abc import Callable
from dataclasses import replace

from optimizer.propose.synthesis.affine import Affine, Index
from optimizer.propose.synthesis.extent import ZERO
from optimizer.propose.synthesis.lower import COL
from optimizer.propose.synthesis.regions import LoopRegion, Store
from optimizer.propose.synthesis.value import Value, places, rewrite, walk

ROW = "row"


def coalesce(region: LoopRegion) -> LoopRegion:
    """Return the region with as few axes as its strides allow.

    Contiguous operands become one long row; a bias along the last axis leaves rows and columns.
    Reductions keep their columns, and what lies outside is one axis of rows if possible.
    """
    while region.rows and region.col and not region.reduces:
        merged = _merge(region, region.rows[-1], region.col, COL)
        if merged is None:
            break
        region = merged
    position = len(region.rows) - 1
    while position > 0:
        outer, inner = region.rows[position - 1 : position + 1]
        region = _merge(region, outer, inner, inner.name) or region
        position -= 1
    return _renamed(region)


def _merge(region: LoopRegion, outer: Index, inner: Index, name: str) -> LoopRegion | None:
    """Return the region with two neighbouring axes made one, None where a stride forbids it."""
    if any(place.stride(outer) != place.stride(inner) * inner.size for place in _places(region)):
        return None
    both = Index(name, outer.size * inner.size)

    def moved(place: Affine) -> Affine:
        stride = place.stride(inner)
        rest = place.without(outer).without(inner)
        return rest + Affine(((both, stride),)) if stride != ZERO else rest

    rows = tuple(both if row == inner else row for row in region.rows if row != outer)
    col = both if region.col == inner else region.col
    return _moved(replace(region, rows=rows, col=col), moved)


def _renamed(region: LoopRegion) -> LoopRegion:
    """Return the region with its rows named ``row``, or ``row0``, ``row1`` where several remain."""
    several = len(region.rows) > 1
    names = {row: f"{ROW}{number}" if several else ROW for number, row in enumerate(region.rows)}
    fresh = {row: Index(name, row.size) for row, name in names.items()}

    def moved(place: Affine) -> Affine:
        result = Affine((), place.offset)
        for atom, stride in place.terms:
            known = fresh.get(atom, atom) if isinstance(atom, Index) else atom
            result += Affine(((known, stride),))
        return result

    return _moved(replace(region, rows=tuple(fresh[row] for row in region.rows)), moved)


def _places(region: LoopRegion) -> list[Affine]:
    values = walk(*(store.value for store in region.stores))
    return [store.place for store in region.stores] + [p for v in values for p in places(v)]


def _moved(region: LoopRegion, place: Callable[[Affine], Affine]) -> LoopRegion:
    known: dict[Value, Value] = {}

    def store(old: Store) -> Store:
        value = rewrite(old.value, lambda part: part, known=known, place=place)
        moved = rewrite_place(old.place, known, place)
        return replace(old, place=moved, value=value)

    return replace(region, stores=tuple(store(old) for old in region.stores))


def rewrite_place(
    old: Affine, known: dict[Value, Value], place: Callable[[Affine], Affine]
) -> Affine:
    """Return a place after its atoms were rewritten."""
    terms = tuple(
        (
            atom
            if isinstance(atom, Index)
            else rewrite(atom, lambda part: part, known=known, place=place),
            stride,
        )
        for atom, stride in old.terms
    )
    return place(Affine(terms, old.offset))
