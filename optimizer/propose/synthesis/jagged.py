"""Jagged selects: of each segment of a list of elements, one run of neighbours is kept.

What is kept is read off the mask: a conjunction of comparisons of an element's position within its
segment with a number of that segment. A second level is a jagged tensor whose segments are the
first level's elements: the values of kept elements stay.
"""

from dataclasses import dataclass, replace

from operator_registry.spec import OperatorSpec
from optimizer.propose.synthesis.affine import Index, along
from optimizer.propose.synthesis.dtypes import Dtypes, RegionError
from optimizer.propose.synthesis.graph import Graph, Node, Ref
from optimizer.propose.synthesis.lower import Lowering, Place, scalar, source, special
from optimizer.propose.synthesis.regions import Partition, Store, cut_outputs
from optimizer.propose.synthesis.runs import Run
from optimizer.propose.synthesis.value import Apply, Load, Scan, Segment, Value


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
    low: Value | None
    """The first kept position of a segment, not yet limited to it; None for its start."""
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
    runs = {name: Run.read(lowering, mask) for name, mask in masks.items()}
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


def _move(lowering: Lowering, spec: OperatorSpec, name: str, run: Run) -> Move:
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
