"""Masks read as runs: which neighbouring elements of each segment a mask keeps."""

from dataclasses import dataclass

from optimizer.propose.synthesis.affine import Affine, Index, along
from optimizer.propose.synthesis.arithmetic import apply, number
from optimizer.propose.synthesis.dtypes import RegionError
from optimizer.propose.synthesis.graph import Ref
from optimizer.propose.synthesis.linear import Linear, linear, value_of
from optimizer.propose.synthesis.lower import Lowering, number_at
from optimizer.propose.synthesis.value import (
    Apply,
    Load,
    Position,
    Scan,
    Segment,
    Value,
    free_indices,
    rewrite,
    walk,
)

SEGMENT = "segment"
"""The name of the loop variable over segments."""
ELEMENT = "element"
"""The name of the loop variable over elements of the innermost segments."""


@dataclass(frozen=True)
class Run:
    """What a mask keeps of each segment."""

    segments: Index
    lengths: str
    low: Value | None
    high: Value | None
    element: Index
    level: int
    inner: str | None

    @property
    def kept(self) -> tuple[object, ...]:
        """Return what must be the same for all that one region selects."""
        return (self.segments, self.lengths, self.low, self.high)

    @classmethod
    def read(cls, lowering: Lowering, mask: Ref) -> "Run":
        """Return the run that a mask describes.

        Raises:
            RegionError: It describes something else.
        """
        element = Index(ELEMENT, lowering.shape(mask)[0])
        value = lowering.element(mask, (along(element),))
        outermost = _outermost(value)
        if outermost is None:
            msg = f"no region for the mask {mask.node}: repeat_interleave made no segments for it"
            raise RegionError(msg)
        size = lowering.shape(Ref(node=outermost.lengths))[0]
        segments = Index(SEGMENT, size)
        inner = _inner(outermost, element)
        stored = lowering.graph.kind_of(Ref(node=outermost.lengths)).dtype
        bounds = _Bounds(outermost, segments, stored)
        for term in _conjunction(value):
            bounds.add(term, mask.node)
        level = 2 if inner else 1
        return cls(segments, outermost.lengths, bounds.low, bounds.high, element, level, inner)


def _outermost(value: Value) -> Segment | None:
    """Return the segment that no other segment of the mask contains."""
    found = [part for part in walk(value) if isinstance(part, Segment)]
    return found[-1] if found else None


def _inner(outermost: Segment, element: Index) -> str | None:
    """Return the second level's lengths, None where there is one level."""
    if outermost.place == along(element):
        return None
    inside = number_at(outermost.place)
    if isinstance(inside, Segment) and inside.place == along(element):
        return inside.lengths
    msg = f"no region for segments of more than two levels (by {outermost.lengths})"
    raise RegionError(msg)


def _conjunction(value: Value) -> list[Value]:
    if isinstance(value, Apply) and value.op in {"and", "bitand"}:
        return [term for arg in value.args for term in _conjunction(arg)]
    return [value]


@dataclass
class _Bounds:
    """The limits that comparisons set to the position within a segment."""

    segment: Segment
    segments: Index
    stored: str
    """The dtype of the lengths."""
    low: Value | None = None
    high: Value | None = None

    def add(self, term: Value, mask: str) -> None:
        """Take in one comparison.

        Raises:
            RegionError: It is no limit of the position.
        """
        if isinstance(term, Apply) and term.op in {"lt", "le", "gt", "ge"}:
            difference = linear(term.args[0]) - linear(term.args[1])
            for sign in (1, -1):
                rest = difference - self._position().scaled(sign)
                if self._of_segment(rest):
                    limit = value_of(rest.scaled(-sign))
                    self._limit(_flipped(term.op) if sign < 0 else term.op, limit)
                    return
        msg = f"no region for the mask {mask}: it is no comparison of positions within segments"
        raise RegionError(msg)

    def _position(self) -> Linear:
        """Return the position within the segment: the place less where the segment starts."""
        at = along(self.segment)
        length = Load(self.segment.lengths, at, self.stored)
        start = linear(Scan(self.segment.lengths, at)) - linear(length)
        return linear(number_at(self.segment.place)) - start

    def _of_segment(self, rest: Linear) -> bool:
        """Return whether a sum depends on the segment only."""
        own = Position(along(self.segments))
        moved = [self._moved(value) for value in rest.values]
        return all(value == own or _plain(value) for value in moved)

    def _moved(self, value: Value) -> Value:
        """Return a value of the element's segment as one of the loop over segments."""

        def change(part: Value) -> Value:
            return Position(along(self.segments)) if part == self.segment else part

        def place(affine: Affine) -> Affine:
            result = Affine((), affine.offset)
            for atom, stride in affine.terms:
                own = isinstance(atom, Position) and atom.place == along(self.segments)
                result += Affine(((self.segments if own else atom, stride),))
            return result

        return rewrite(value, change, place=place)

    def _limit(self, op: str, limit: Value) -> None:
        limit = self._moved(limit)
        if op in {"le", "gt"}:
            limit = apply("add", limit, number(1, "int64"))
        if op in {"lt", "le"}:
            self.high = limit if self.high is None else apply("min", self.high, limit)
        else:
            self.low = limit if self.low is None else apply("max", self.low, limit)


def _plain(value: Value) -> bool:
    """Return whether a kernel can compute a value from its segment alone, without a scan."""
    single = any(index.name == ELEMENT for index in free_indices(value))
    return not single and not any(isinstance(part, Scan | Segment) for part in walk(value))


def _flipped(op: str) -> str:
    return {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}[op]
