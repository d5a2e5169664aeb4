"""The order in which a row's reductions are computed, and what is worth keeping between them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from optimizer.propose.synthesis.emission import Depth, depth_of
from optimizer.propose.synthesis.regions import LoopRegion, Store
from optimizer.propose.synthesis.value import Apply, Reduce, Value, parts, walk

_COSTLY = frozenset({"exp", "expm1", "log", "log1p", "tanh", "erf", "sin", "cos", "pow"})


@dataclass(frozen=True)
class Passes:
    """Loops along a row: first those that reduce, one after another, then the one that stores."""

    reductions: tuple[tuple[Reduce, ...], ...]
    """The reductions of each loop; each needs only those of loops before it."""
    stores: tuple[Store, ...]
    """Written element by element, in a last loop."""
    row_stores: tuple[Store, ...]
    """Written once a row, at its end."""

    @property
    def bodies(self) -> tuple[tuple[Value, ...], ...]:
        """Return what each loop computes for an element, the last loop's stores included."""
        reducing = tuple(tuple(r.body for r in several) for several in self.reductions)
        return (*reducing, tuple(store.value for store in self.stores))


def make_passes(region: LoopRegion) -> Passes:
    """Return the loops of a region."""
    found = [p for p in walk(*(s.value for s in region.stores)) if isinstance(p, Reduce)]
    levels: dict[Reduce, int] = {}
    for reduction in found:
        below = [levels[p] for p in walk(reduction.body) if isinstance(p, Reduce)]
        levels[reduction] = 1 + max(below, default=-1)
    loops = [
        tuple(r for r in found if levels[r] == level)
        for level in range(1 + max(levels.values(), default=-1))
    ]
    along = [s for s in region.stores if region.col and region.col in s.place.indices]
    return Passes(tuple(loops), tuple(along), tuple(s for s in region.stores if s not in along))


def outside(roots: Sequence[Value]) -> Iterator[Value]:
    """Yield the values that a loop computes itself: nothing inside of finished reductions."""
    seen: set[Value] = set()
    stack = list(roots)
    while stack:
        value = stack.pop()
        if value not in seen:
            seen.add(value)
            yield value
            stack += () if isinstance(value, Reduce) else parts(value)


def uses_in(roots: Sequence[Value]) -> Counter[Value]:
    """Return how often each value stands in what a loop computes itself."""
    uses: Counter[Value] = Counter(roots)
    for value in outside(roots):
        uses.update(() if isinstance(value, Reduce) else parts(value))
    return uses


def worth_keeping(passes: Passes) -> tuple[Value, ...]:
    """Return the values of elements that several loops compute at a cost: the outermost ones."""
    loops = Counter(value for roots in passes.bodies for value in outside(roots))
    costly = [
        value
        for value, times in loops.items()
        if times > 1
        and depth_of(value) == Depth.ELEMENT
        and any(_is_costly(part) for part in outside([value]))
    ]
    inner = {part for v in costly for part in outside([v]) if part is not v and part != v}
    return tuple(value for value in costly if value not in inner)


def _is_costly(value: Value) -> bool:
    return isinstance(value, Apply) and value.op.partition(":")[0] in _COSTLY


def falling(region: LoopRegion) -> frozenset[Value]:
    """Return the values that surely are at most 0: a row's element less the row's greatest."""
    return frozenset(
        value
        for value in walk(*(s.value for s in region.stores))
        if isinstance(value, Apply)
        and value.op == "sub"
        and isinstance(value.args[1], Reduce)
        and (value.args[1].kind, value.args[1].body) == ("max", value.args[0])
    )


def loses_nan(reduction: Reduce, region: LoopRegion) -> bool:
    """Return whether a NaN in an extremum's row would not show in the stores without it.

    It does show where every store also sums what was compared.
    """

    def summed(store: Store) -> bool:
        sums = [p for p in walk(store.value) if isinstance(p, Reduce) and p.kind == "sum"]
        return any(reduction.body in set(walk(p.body)) for p in sums)

    uses = [s for s in region.stores if reduction in set(walk(s.value))]
    return reduction.kind in {"max", "min"} and not all(map(summed, uses))
