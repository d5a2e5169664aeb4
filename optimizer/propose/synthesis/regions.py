"""A graph cut into regions: each becomes one kernel, its kind is its loop structure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from optimizer.propose.synthesis import moves, reductions  # noqa: F401 - they enter their rules
from optimizer.propose.synthesis.affine import Affine, Index, along, constant, row_major
from optimizer.propose.synthesis.arithmetic import unrounded
from optimizer.propose.synthesis.dtypes import Dtypes, RegionError
from optimizer.propose.synthesis.extent import ONE, product
from optimizer.propose.synthesis.graph import Graph, Ref
from optimizer.propose.synthesis.lower import (
    COL,
    Lowering,
    NeedsBufferError,
    joined,
    row_index,
    split,
)
from optimizer.propose.synthesis.value import Load, Reduce, Search, Value, free_indices, walk

if TYPE_CHECKING:
    from optimizer.propose.synthesis.jagged import JaggedRegion


@dataclass(frozen=True)
class Store:
    """A value written to each element of a tensor."""

    tensor: str
    dtype: str
    place: Affine
    value: Value


@dataclass(frozen=True)
class LoopRegion:
    """A loop over rows and, within each, along the row: pointwise, or with reductions of rows."""

    rows: tuple[Index, ...]
    """The axes outside, outermost first; empty where there is one row."""
    col: Index | None
    """The axis along a row; None for single elements."""
    stores: tuple[Store, ...]

    @property
    def reduces(self) -> bool:
        """Return whether rows are reduced."""
        return any(isinstance(part, Reduce) for part in walk(*(s.value for s in self.stores)))

    @property
    def searches(self) -> bool:
        """Return whether tables are searched."""
        return any(isinstance(part, Search) for part in walk(*(s.value for s in self.stores)))

    @property
    def kind(self) -> str:
        """Return the region's kind in words."""
        if self.reduces:
            return "row reduction"
        return "table search" if self.searches else "pointwise"

    @property
    def loaded(self) -> frozenset[str]:
        """Return the tensors that are read."""
        parts = walk(*(s.value for s in self.stores))
        tables = {p.tensor for p in parts if isinstance(p, Load)}
        return frozenset(
            tables
            | {p.table for p in walk(*(s.value for s in self.stores)) if isinstance(p, Search)}
        )


@dataclass(frozen=True)
class Scratch:
    """An intermediate result that is kept in memory between two regions."""

    name: str
    shape: tuple[str, ...]
    dtype: str


@dataclass(frozen=True)
class Partition:
    """The regions of a graph in the order in which they run, and the memory between them."""

    regions: "tuple[LoopRegion | JaggedRegion, ...]"
    scratch: tuple[Scratch, ...] = ()


def cut_outputs(graph: Graph, dtypes: Dtypes, outputs: Sequence[str]) -> Partition:
    """Return the loop regions that compute some outputs of a graph.

    Raises:
        RegionError: A part of the graph has no region; says which and why.
    """
    if lists := [name for name in outputs if graph.outputs[name].list_over]:
        msg = f"no region for the list of tensors {', '.join(lists)}: only jagged selects make one"
        raise RegionError(msg)
    cutting = _Cutting(graph, dtypes)
    loops = [cutting.loop(graph.outputs[name].ref, name) for name in outputs]
    regions = (*cutting.inner, *_merged(loops))
    return Partition(regions, tuple(cutting.scratch))


@dataclass
class _Cutting:
    graph: Graph
    dtypes: Dtypes
    inner: list[LoopRegion] = field(default_factory=list)
    scratch: list[Scratch] = field(default_factory=list)
    buffers: dict[Ref, str] = field(default_factory=dict)

    def loop(self, ref: Ref, name: str) -> LoopRegion:
        """Return the region that writes a value, after those for what it needs in memory."""
        while True:
            wanted: str | None = None
            for trailing in range(1, 1 + max(1, len(self.graph.kind_of(ref).shape))):
                try:
                    return self._whole(ref, name, trailing)
                except NeedsBufferError as error:
                    wanted = wanted or error.node
            try:
                return self._by_rows(ref, name)
            except NeedsBufferError as error:
                wanted = wanted or error.node
            if wanted is None or wanted == ref.node:
                msg = (
                    f"no region for {ref.node} of {self.graph.form}: it mixes rows of several sizes"
                )
                raise RegionError(msg)
            self._keep(Ref(node=wanted))

    def _keep(self, ref: Ref) -> None:
        kind = self.graph.kind_of(ref)
        buffer = f"kept_{ref.node.strip('_').lower()}"
        region = self.loop(ref, buffer)
        self.inner.append(region)
        self.scratch.append(Scratch(buffer, kind.shape, kind.dtype))
        self.buffers[ref] = buffer

    def _whole(self, ref: Ref, name: str, trailing: int) -> LoopRegion:
        """The last axes of the value are the row's."""
        shape = Lowering(self.graph, self.dtypes).shape(ref)
        real = [axis for axis, size in enumerate(shape) if size != ONE]
        outer, inner = real[:-trailing], real[-trailing:]
        rows = {axis: row_index(axis, shape[axis]) for axis in outer}
        place = {axis: along(row) for axis, row in rows.items()}
        col = Index(COL, product(shape[axis] for axis in inner)) if inner else None
        if col:
            parts = split(along(col), [shape[axis] for axis in inner])
            place |= dict(zip(inner, parts, strict=True))
        return self._lowered(ref, name, place, tuple(rows.values()), col)

    def _by_rows(self, ref: Ref, name: str) -> LoopRegion:
        """Each element of the value stands for a whole row."""
        shape = Lowering(self.graph, self.dtypes).shape(ref)
        rows = {a: row_index(a, size) for a, size in enumerate(shape) if size != ONE}
        place = {axis: along(row) for axis, row in rows.items()}
        return self._lowered(ref, name, place, tuple(rows.values()), None)

    def _lowered(
        self, ref: Ref, name: str, along_axes: Mapping[int, Affine], rows: tuple[Index, ...],
        col: Index | None,
    ) -> LoopRegion:  # fmt: skip
        lowering = Lowering(self.graph, self.dtypes, self.buffers)
        shape = lowering.shape(ref)
        place = tuple(along_axes.get(axis, constant(0)) for axis in range(len(shape)))
        value = unrounded(lowering.element(ref, place))
        dtype = self.graph.kind_of(ref).dtype
        store = Store(name, dtype, joined(row_major(place, shape)), value)
        return _checked(LoopRegion(rows, col, (store,)))


def _checked(region: LoopRegion) -> LoopRegion:
    """Return the region if each reduction is of its own rows.

    Raises:
        NeedsBufferError: A reduction is of other rows, or would be repeated.
    """
    rows = frozenset(region.rows)
    found = [p for p in walk(*(s.value for s in region.stores)) if isinstance(p, Reduce)]
    for reduction in found:
        col = region.col or found[0].over
        if reduction.over != col or free_indices(reduction) != rows:
            raise NeedsBufferError(reduction.hint)
    return replace(region, col=found[0].over) if found else region


def _merged(loops: Sequence[LoopRegion]) -> list[LoopRegion]:
    """Return the regions, those over the same rows and columns made one."""
    merged: list[LoopRegion] = []
    for loop in loops:
        for place, other in enumerate(merged):
            if (other.rows, other.col) == (loop.rows, loop.col):
                merged[place] = replace(other, stores=(*other.stores, *loop.stores))
                break
        else:
            merged.append(loop)
    return merged
