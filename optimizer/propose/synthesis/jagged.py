"""Jagged selects: of each segment of a list of elements, one run of neighbours is kept.

What is kept is read off the mask: a conjunction of comparisons of an element's position within its
segment with a number of that segment. A second level is a jagged tensor whose segments are the
first level's elements: the values of kept elements stay.
"""

from dataclasses import dataclass, replace

from operator_registry.spec import OperatorSpec
from optimizer.propose.synthesis.affine import Affine, Index, along
from optimizer.propose.synthesis.arithmetic import apply, number
from optimizer.propose.synthesis.dtypes import Dtypes, RegionError
from optimizer.propose.synthesis.graph import Graph, Node, Ref
from optimizer.propose.synthesis.linear import Linear, linear, value_of
from optimizer.propose.synthesis.lower import Lowering, Place, number_at, scalar, source, special
from optimizer.propose.synthesis.regions import Partition, Store, cut_outputs
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


@dataclass(frozen=True)
class Move:
    """A tensor, or a list of tensors, of which the kept elements become an output."""

    source: str
    output: str
    dtype: str
    level: int
    """1 for one element an element of a segment, 2 for the values of such elements."""
    listed: bool
    axis: str
    """The output's axis."""


@dataclass(frozen=True)
class JaggedRegion:
    """A jagged select with all tensors that it is applied to."""

    segments: Index
    lengths: str
    """The input with the segments' lengths."""
    low: Value
    """The first kept position of a segment, not yet limited to it."""
    high: Value | None
    """One past the last kept position; None for the segment's end."""
    moves: tuple[Move, ...]
    stores: tuple[Store, ...]
    """What is computed for each segment besides."""
    inner: str | None = None
    """The input with the lengths of the second level's segments."""
    inner_listed: bool = False
    members: str | None = None
    """The axis that counts a list's members."""

    @property
    def kind(self) -> str:
        """Return the region's kind in words."""
        return "jagged select"


@special("aten.repeat_interleave")
def _repeat_interleave(lowering: Lowering, node: Node, _: int, place: Place) -> Value:
    """Return the segment of an element, by the lengths of the segments."""
    return Segment(lowering.name_of(source(node), node.op), place[0])


@special("aten.cumsum")
def _cumsum(lowering: Lowering, node: Node, _: int, place: Place) -> Value:
    if len(place) != 1 or scalar(node, node.args[1]) not in {0, -1}:
        msg = f"no region for {node.op} of several axes (node {node.name})"
        raise RegionError(msg)
    return Scan(lowering.name_of(source(node), node.op), place[0])


def cut_jagged(graph: Graph, spec: OperatorSpec, dtypes: Dtypes) -> Partition | None:
    """Return the regions of a graph that selects by a mask; None where it does not.

    Raises:
        RegionError: It selects otherwise than a run of each segment.
    """
    masks = {name: mask for name in graph.outputs if (mask := _mask_of(graph, name))}
    if not masks:
        return None
    lowering = Lowering(graph, dtypes)
    runs = {name: _Run.read(lowering, mask) for name, mask in masks.items()}
    first = next(iter(runs.values()))
    for name, run in runs.items():
        if run.kept != first.kept:
            msg = f"no region for {name}, which keeps other elements than {next(iter(runs))}"
            raise RegionError(msg)
    moves = tuple(_move(lowering, spec, name, runs[name]) for name in masks)
    inner = {run.inner for run in runs.values() if run.inner}
    if len(inner) > 1:
        msg = f"no region for second levels by several lengths ({', '.join(sorted(inner))})"
        raise RegionError(msg)
    lists = {spec.outputs[name].list_over for name in masks} - {None}
    region = JaggedRegion(
        segments=first.segments,
        lengths=first.lengths,
        low=first.low,
        high=first.high,
        moves=moves,
        stores=(),
        inner=next(iter(inner), None),
        inner_listed=any(spec.inputs[name].list_over is not None for name in inner),
        members=next(iter(lists), None),
    )
    return _with_others(lowering, region, [name for name in graph.outputs if name not in masks])


def _with_others(lowering: Lowering, region: JaggedRegion, others: list[str]) -> Partition:
    """Return the partition with the outputs that are not selected."""
    stores: list[Store] = []
    left: list[str] = []
    for name in others:
        ref = lowering.graph.outputs[name].ref
        if lowering.shape(ref) == (region.segments.size,):
            value = lowering.element(ref, (along(region.segments),))
            kind = lowering.graph.kind_of(ref)
            stores.append(Store(name, kind.dtype, along(region.segments), value))
        else:
            left.append(name)
    whole = replace(region, stores=tuple(stores))
    rest = cut_outputs(lowering.graph, lowering.dtypes, left)
    return Partition((whole, *rest.regions), rest.scratch)


def _mask_of(graph: Graph, output: str) -> Ref | None:
    """Return the mask that an output is selected by."""
    ref = graph.outputs[output].ref
    if ref.node in graph.inputs:
        return None
    node = graph.node(ref.node)
    chosen = node.args[1] if node.family in {"aten.index", "aten.masked_select"} else None
    refs = chosen if isinstance(chosen, tuple) else (chosen,)
    if len(refs) != 1 or not isinstance(refs[0], Ref):
        return None
    return refs[0] if graph.kind_of(refs[0]).dtype == "bool" else None


def _move(lowering: Lowering, spec: OperatorSpec, name: str, run: "_Run") -> Move:
    node = lowering.graph.node(lowering.graph.outputs[name].ref.node)
    ref = source(node)
    value = lowering.element(ref, (along(run.element),))
    if isinstance(value, Apply) and value.op == "cast":
        (value,) = value.args
    dtype = lowering.graph.kind_of(ref).dtype
    if not isinstance(value, Load) or value.place != along(run.element) or value.dtype != dtype:
        msg = f"no region for {name}: a jagged select of what is computed, not of an input"
        raise RegionError(msg)
    listed = spec.outputs[name].list_over is not None
    axis = spec.outputs[name].shape[0]
    return Move(value.tensor, name, dtype, run.level, listed, axis)


@dataclass(frozen=True)
class _Run:
    """What a mask keeps of each segment."""

    segments: Index
    lengths: str
    low: Value
    high: Value | None
    element: Index
    level: int
    inner: str | None

    @property
    def kept(self) -> tuple[object, ...]:
        return (self.segments, self.lengths, self.low, self.high)

    @classmethod
    def read(cls, lowering: Lowering, mask: Ref) -> "_Run":
        """Return the run that a mask describes.

        Raises:
            RegionError: It describes something else.
        """
        element = Index(ELEMENT, lowering.shape(mask)[0])
        value = lowering.element(mask, (along(element),))
        outermost = _outermost(value, element)
        if outermost is None:
            msg = f"no region for the mask {mask.node}: it has no segments that repeat_interleave made"
            raise RegionError(msg)
        size = lowering.shape(Ref(node=outermost.lengths))[0]
        segments = Index(SEGMENT, size)
        inner = _inner(outermost, element)
        stored = lowering.graph.kind_of(Ref(node=outermost.lengths)).dtype
        bounds = _Bounds(outermost, segments, stored)
        for term in _conjunction(value):
            bounds.add(term, mask.node)
        level = 2 if inner else 1
        low = bounds.low or number(0, "int64")
        return cls(segments, outermost.lengths, low, bounds.high, element, level, inner)


def _outermost(value: Value, element: Index) -> Segment | None:
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
        return all(not _elements_in(value) or value == own for value in moved)

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


def _elements_in(value: Value) -> bool:
    """Return whether a value depends on single elements, not only on their segment."""

    return any(index.name == ELEMENT for index in free_indices(value))


def _flipped(op: str) -> str:
    return {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}[op]


