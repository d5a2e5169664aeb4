"""ATen operations that only choose which element: views, gathers, constants and searches."""

from collections.abc import Sequence

from optimizer.propose.synthesis.affine import constant, row_major
from optimizer.propose.synthesis.arithmetic import apply, cast, number
from optimizer.propose.synthesis.dtypes import RegionError, promoted
from optimizer.propose.synthesis.extent import ONE, Extent, make_extent
from optimizer.propose.synthesis.graph import Argument, Node, Ref
from optimizer.propose.synthesis.lower import (
    Lowering,
    Place,
    index_of,
    joined,
    number_at,
    scalar,
    source,
    special,
    split,
    whole,
)
from optimizer.propose.synthesis.value import (
    Apply,
    Constant,
    Position,
    Search,
    Segment,
    Symbol,
    Value,
)


@special("aten.view", "aten.reshape", "aten._unsafe_view", "aten.view_copy")
def _view(lowering: Lowering, node: Node, _: int, place: Place) -> Value:
    out = tuple(make_extent(size) for size in node.kind.shape)
    ref = source(node)
    flat = joined(row_major(place, out))
    return lowering.element(ref, split(flat, lowering.shape(ref)))


@special("aten.unsqueeze")
def _unsqueeze(lowering: Lowering, node: Node, _: int, place: Place) -> Value:
    axis = _axis(node, node.args[1], len(place))
    return lowering.element(source(node), place[:axis] + place[axis + 1 :])


@special("aten.squeeze")
def _squeeze(lowering: Lowering, node: Node, _: int, place: Place) -> Value:
    shape = lowering.shape(source(node))
    chosen = _axes(node, node.args[1], len(shape)) if len(node.args) > 1 else range(len(shape))
    left = iter(place)
    index = [
        constant(0) if axis in chosen and size == ONE else next(left)
        for axis, size in enumerate(shape)
    ]
    return lowering.element(source(node), tuple(index))


@special("aten.expand")
def _expand(lowering: Lowering, node: Node, _: int, place: Place) -> Value:
    return lowering.broadcast(source(node), place)


@special("aten.permute")
def _permute(lowering: Lowering, node: Node, _: int, place: Place) -> Value:
    order = _axes(node, node.args[1], len(place))
    index = [place[order.index(axis)] for axis in range(len(place))]
    return lowering.element(source(node), tuple(index))


@special("aten.transpose", "aten.t")
def _transpose(lowering: Lowering, node: Node, _: int, place: Place) -> Value:
    first, second = (
        (_axis(node, a, len(place)) for a in node.args[1:]) if len(node.args) > 1 else (0, 1)
    )
    index = list(place)
    if len(place) > 1:
        index[first], index[second] = index[second], index[first]
    return lowering.element(source(node), tuple(index))


@special("aten.slice")
def _slice(lowering: Lowering, node: Node, _: int, place: Place) -> Value:
    axis = _axis(node, node.args[1], len(place)) if len(node.args) > 1 else 0
    start = whole(node, node.args[2] or 0) if len(node.args) > 2 else make_extent(0)  # noqa: PLR2004
    step = scalar(node, node.args[4]) if len(node.args) > 4 else 1  # noqa: PLR2004
    if _from_the_end(start):
        start += lowering.shape(source(node))[axis]
    moved = place[axis].scaled(make_extent(int(step))) + constant(start)
    return lowering.element(source(node), (*place[:axis], moved, *place[axis + 1 :]))


@special("aten.select")
def _select(lowering: Lowering, node: Node, _: int, place: Place) -> Value:
    axis = _axis(node, node.args[1], len(place) + 1)
    chosen = whole(node, node.args[2])
    if _from_the_end(chosen):
        chosen += lowering.shape(source(node))[axis]
    return lowering.element(source(node), (*place[:axis], constant(chosen), *place[axis:]))


@special("aten.arange")
def _arange(lowering: Lowering, node: Node, _: int, place: Place) -> Value:
    numbers = [whole(node, argument) for argument in node.args]
    start = numbers[0] if len(numbers) > 1 else make_extent(0)
    step = numbers[2] if len(numbers) > 2 else ONE  # noqa: PLR2004
    position = number_at(place[0].scaled(step) + constant(start))
    return cast(position, lowering.dtypes.arithmetic(node.kind.dtype, node.op))


@special("aten.full", "aten.full_like", "aten.scalar_tensor", "aten.fill")
def _full(lowering: Lowering, node: Node, _: int, place: Place) -> Value:
    argument = node.args[0] if node.family == "aten.scalar_tensor" else node.args[1]
    dtype = lowering.dtypes.arithmetic(node.kind.dtype, node.op)
    if isinstance(argument, Ref):
        return cast(lowering.broadcast(argument, ()), dtype)
    if isinstance(argument, bool | int | float):
        return number(argument, dtype)
    return cast(Symbol(str(whole(node, argument)), "int64"), dtype)


@special("aten.zeros", "aten.zeros_like", "aten.new_zeros")
def _zeros(lowering: Lowering, node: Node, _: int, place: Place) -> Value:
    return number(0, lowering.dtypes.arithmetic(node.kind.dtype, node.op))


@special("aten.ones", "aten.ones_like", "aten.new_ones")
def _ones(lowering: Lowering, node: Node, _: int, place: Place) -> Value:
    return number(1, lowering.dtypes.arithmetic(node.kind.dtype, node.op))


@special("aten.index")
def _index(lowering: Lowering, node: Node, _: int, place: Place) -> Value:
    """Indexing by one integer tensor along one axis, negative indices from the end."""
    chosen = node.args[1]
    refs = chosen if isinstance(chosen, tuple) else (chosen,)
    given = [(axis, ref) for axis, ref in enumerate(refs) if isinstance(ref, Ref)]
    if len(given) != 1 or lowering.graph.kind_of(given[0][1]).dtype == "bool":
        msg = f"no region for {node.op} with this index (node {node.name})"
        raise RegionError(msg)
    axis, ref = given[0]
    rank = len(lowering.shape(ref))
    size = lowering.shape(source(node))[axis]
    at = _wrapped(lowering.element(ref, place[axis : axis + rank]), str(size))
    return lowering.element(source(node), (*place[:axis], index_of(at), *place[axis + rank :]))


@special("aten.index_select")
def _index_select(lowering: Lowering, node: Node, _: int, place: Place) -> Value:
    axis = _axis(node, node.args[1], len(place))
    at = cast(lowering.element(source(node, 2), (place[axis],)), "int64")
    return lowering.element(source(node), (*place[:axis], index_of(at), *place[axis + 1 :]))


@special("aten.gather")
def _gather(lowering: Lowering, node: Node, _: int, place: Place) -> Value:
    axis = _axis(node, node.args[1], len(place))
    at = cast(lowering.element(source(node, 2), place), "int64")
    return lowering.element(source(node), (*place[:axis], index_of(at), *place[axis + 1 :]))


@special("aten.embedding")
def _embedding(lowering: Lowering, node: Node, _: int, place: Place) -> Value:
    at = cast(lowering.element(source(node, 1), place[:-1]), "int64")
    return lowering.element(source(node), (index_of(at), place[-1]))


@special("aten.bucketize", "aten.searchsorted")
def _search(lowering: Lowering, node: Node, _: int, place: Place) -> Value:
    flipped = node.family == "aten.searchsorted"
    table, values = (
        (source(node, 0), source(node, 1)) if flipped else (source(node, 1), source(node))
    )
    if len(lowering.shape(table)) != 1:
        msg = f"no region for {node.op} in a table of several axes (node {node.name})"
        raise RegionError(msg)
    _check_plain_search(node)
    name = lowering.name_of(table, node.op)
    stored = lowering.graph.kind_of(table).dtype
    needle = lowering.broadcast(values, place)
    met = promoted([lowering.dtypes.arithmetic(stored, node.op), needle.dtype])
    right = bool(node.kwargs.get("right", False)) or node.kwargs.get("side") == "right"
    size = str(lowering.shape(table)[0])
    found = Search(name, stored, size, cast(needle, met), right)
    return cast(found, lowering.dtypes.arithmetic(node.kind.dtype, node.op))


def _check_plain_search(node: Node) -> None:
    if node.kwargs.get("sorter") is not None:
        msg = f"no region for {node.op} with a sorter (node {node.name})"
        raise RegionError(msg)


def _from_the_end(place: Extent) -> bool:
    """Return whether a place is negative, so that it counts from the end."""
    return bool(place.terms) and all(factor < 0 for _, factor in place.terms)


def _wrapped(at: Value, size: str) -> Value:
    """Return an index that counts from the end where it is negative."""
    at = cast(at, "int64")
    if not_negative(at):
        return at
    below = apply("lt", at, number(0, "int64"), dtype="bool")
    return Apply("select", (below, apply("add", at, Symbol(size, "int64")), at), "int64")


def not_negative(value: Value) -> bool:
    """Return whether a whole number surely is at least 0."""
    match value:
        case Search() | Position() | Segment():
            return True
        case Apply(op="min" | "mul" | "add" | "floordiv", args=args):
            return all(not_negative(a) or _is_size(a) for a in args)
        case Apply(op="max", args=args):
            return any(not_negative(a) or _is_size(a) for a in args)
        case _:
            return _is_size(value)


def _is_size(value: Value) -> bool:
    """Return whether the value is a size; a size less one counts, -1 only for an empty table."""
    return isinstance(value, Symbol) or (isinstance(value, Constant) and value.value >= 0)


def _axis(node: Node, argument: Argument, rank: int) -> int:
    return int(scalar(node, argument)) % max(rank, 1)


def _axes(node: Node, argument: Argument, rank: int) -> Sequence[int]:
    several = argument if isinstance(argument, tuple) else (argument,)
    return [_axis(node, one, rank) for one in several]
