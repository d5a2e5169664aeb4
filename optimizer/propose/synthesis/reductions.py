"""ATen reductions over the last axes of a tensor, and the operations made of them."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from optimizer.propose.synthesis.affine import Index, along, constant
from optimizer.propose.synthesis.arithmetic import apply, cast, number
from optimizer.propose.synthesis.dtypes import RegionError
from optimizer.propose.synthesis.extent import ONE, Extent, product
from optimizer.propose.synthesis.graph import Argument, Expr, Node, Ref
from optimizer.propose.synthesis.lower import (
    COL,
    Lowering,
    NeedsBufferError,
    Place,
    scalar,
    source,
    special,
    split,
)
from optimizer.propose.synthesis.value import Reduce, ReduceKind, Symbol, Value, indices_of

Body = Callable[[Place], Value]


@dataclass(frozen=True)
class _Row:
    """The axes that a node reduces, and where its element stands among the others."""

    lowering: Lowering
    node: Node
    shape: tuple[Extent, ...]
    outer: Place
    """One place for each axis that is not reduced."""
    reduced: int
    """How many axes, the last ones."""

    @property
    def size(self) -> Extent:
        return product(self.shape[len(self.outer) :])

    @property
    def dtype(self) -> str:
        return self.lowering.dtypes.arithmetic(self.node.kind.dtype, self.node.op)

    def over(self, kind: ReduceKind, body: Body, dtype: str | None = None) -> Value:
        """Return the reduction of `body`, a function of the place in the whole shape.

        Raises:
            NeedsBufferError: It would be computed again for each element of another row.
        """
        if self.size == ONE:
            nothing = tuple(constant(0) for _ in range(self.reduced))
            return cast(body((*self.outer, *nothing)), dtype or self.dtype)
        if any(index.name == COL for place in self.outer for index in indices_of(place)):
            raise NeedsBufferError(self.node.name)
        col = Index(COL, self.size)
        inner = split(along(col), self.shape[len(self.outer) :])
        value = cast(body((*self.outer, *inner)), dtype or self.dtype)
        return Reduce(kind, value, col, value.dtype, hint=self.node.name)

    def of(self, ref: Ref) -> Body:
        return lambda place: cast(self.lowering.element(ref, place), self.dtype)

    def mean(self, body: Body) -> Value:
        return apply("div", self.over("sum", body), self.count())

    def count(self, less: float = 0) -> Value:
        size = Symbol(str(self.size), "int64")
        count = cast(size, self.dtype)
        return apply("sub", count, number(less, self.dtype))


def _row(lowering: Lowering, node: Node, place: Place, axes: Argument, *, keep: bool) -> _Row:
    """Return the row that a node reduces.

    Raises:
        RegionError: The axes are not the last ones.
    """
    shape = lowering.shape(source(node))
    chosen = _axes(node, axes, len(shape))
    first = len(shape) - len(chosen)
    if any(axis < first and shape[axis] != ONE for axis in chosen):
        msg = f"no region for {node.op} over other axes than the last (node {node.name})"
        raise RegionError(msg)
    outer = place[:first] if keep else place
    if len(outer) != first:
        msg = f"no region for {node.op} over these axes (node {node.name})"
        raise RegionError(msg)
    return _Row(lowering, node, shape, outer, len(chosen))


def _axes(node: Node, axes: Argument, rank: int) -> set[int]:
    if axes is None or axes == ():
        return set(range(rank))
    several = axes if isinstance(axes, tuple) else (axes,)
    return {int(scalar(node, axis)) % max(rank, 1) for axis in several}


def _argument(node: Node, position: int, name: str, default: Argument) -> Argument:
    if len(node.args) > position:
        return node.args[position]
    return node.kwargs.get(name, default)


def _simple(kind: ReduceKind) -> Callable[[Lowering, Node, int, Place], Value]:
    def rule(lowering: Lowering, node: Node, result: int, place: Place) -> Value:
        if result:
            msg = f"no region for the indices of {node.op} (node {node.name})"
            raise RegionError(msg)
        axes = _argument(node, 1, "dim", None)
        keep = bool(_argument(node, 2, "keepdim", default=False))
        row = _row(lowering, node, place, axes, keep=keep)
        return row.over(kind, row.of(source(node)))

    return rule


special("aten.sum")(_simple("sum"))
special("aten.amax", "aten.max")(_simple("max"))
special("aten.amin", "aten.min")(_simple("min"))
special("aten.prod")(_simple("prod"))


@special("aten.mean")
def _mean(lowering: Lowering, node: Node, _: int, place: Place) -> Value:
    axes = _argument(node, 1, "dim", None)
    keep = bool(_argument(node, 2, "keepdim", default=False))
    row = _row(lowering, node, place, axes, keep=keep)
    return row.mean(row.of(source(node)))


@special("aten.var", "aten.std", "aten.var_mean")
def _var(lowering: Lowering, node: Node, result: int, place: Place) -> Value:
    axes = _argument(node, 1, "dim", None)
    keep = bool(node.kwargs.get("keepdim", False))
    row = _row(lowering, node, place, axes, keep=keep)
    body = row.of(source(node))
    mean = row.mean(body)
    if result == 1:
        return mean
    correction = node.kwargs.get("correction", 1)
    variance = _variance(
        row, body, mean, less=1 if correction is None else scalar(node, correction)
    )
    return apply("sqrt", variance) if node.family == "aten.std" else variance


def _variance(row: _Row, body: Body, mean: Value, *, less: float) -> Value:
    """Return the mean square of what is left without the mean: two passes, no cancellation."""

    def squared(place: Place) -> Value:
        left = apply("sub", body(place), mean)
        return apply("mul", left, left)

    return apply("div", row.over("sum", squared), row.count(less))


@special("aten._softmax", "aten._log_softmax")
def _softmax(lowering: Lowering, node: Node, _: int, place: Place) -> Value:
    axis = int(scalar(node, node.args[1])) % max(len(place), 1)
    if axis != len(place) - 1:
        msg = f"no region for {node.op} over other axes than the last (node {node.name})"
        raise RegionError(msg)
    row = _Row(lowering, node, lowering.shape(source(node)), place[:-1], 1)
    body = row.of(source(node))
    greatest = row.over("max", body)

    def raised(at: Place) -> Value:
        return apply("exp", apply("sub", body(at), greatest))

    total = row.over("sum", raised)
    if node.family == "aten._softmax":
        return apply("div", raised(place), total)
    return apply("sub", apply("sub", body(place), greatest), apply("log", total))


@special("aten.native_layer_norm")
def _layer_norm(lowering: Lowering, node: Node, result: int, place: Place) -> Value:
    normalized = node.args[1]
    axes = len(normalized) if isinstance(normalized, tuple) else 1
    shape = lowering.shape(source(node))
    row = _Row(lowering, node, shape, place[: len(shape) - axes], axes)
    body = row.of(source(node))
    mean = row.mean(body)
    if result == 1:
        return mean
    variance = _variance(row, body, mean, less=0)
    scale = apply("rsqrt", apply("add", variance, _epsilon(row, node.args[4])))
    if result == 2:  # noqa: PLR2004 - the third result
        return scale
    value = apply("mul", apply("sub", body(place), mean), scale)
    return _affine(row, value, place, node.args[2], node.args[3])


@special("aten.linalg_vector_norm")
def _norm(lowering: Lowering, node: Node, _: int, place: Place) -> Value:
    order = scalar(node, node.args[1]) if len(node.args) > 1 else 2
    axes = _argument(node, 2, "dim", None)
    keep = bool(_argument(node, 3, "keepdim", default=False))
    row = _row(lowering, node, place, axes, keep=keep)
    body = row.of(source(node))
    match order:
        case 2:
            return apply("sqrt", row.over("sum", lambda at: apply("mul", body(at), body(at))))
        case 1:
            return row.over("sum", lambda at: apply("abs", body(at)))
        case math.inf:
            return row.over("max", lambda at: apply("abs", body(at)))
        case _:
            msg = f"no region for {node.op} of the order {order} (node {node.name})"
            raise RegionError(msg)


def _affine(row: _Row, value: Value, place: Place, weight: Argument, bias: Argument) -> Value:
    inner = place[len(row.outer) :]
    for op, argument in (("mul", weight), ("add", bias)):
        if isinstance(argument, Ref):
            value = apply(op, value, cast(row.lowering.element(argument, inner), row.dtype))
    return value


def _epsilon(row: _Row, argument: Argument) -> Value:
    if argument is None:
        argument = 1.1920928955078125e-07
    if isinstance(argument, Expr):
        return Symbol(argument.text, "float32")
    return number(scalar(row.node, argument), row.dtype)
