"""Traces at several sizes made one graph: numbers become expressions over axes and attributes.

A trace is a `Graph` whose sizes are numbers. What is the same number in every trace is a constant;
what differs must equal one expression in all of them.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

from operator_registry.spec import Scalar
from optimizer.errors import CaptureError
from optimizer.propose.synthesis.graph import Argument, Expr, Graph, Kind, Node, Ref

Binding = Mapping[str, Scalar]
"""What each axis and attribute was in a trace."""


@dataclass(frozen=True)
class Trace:
    """A graph with numbers for sizes, and what the axes and attributes were."""

    graph: Graph
    values: Binding


def unify(traces: Sequence[Trace]) -> Graph:
    """Return the graph that all traces are cases of.

    Raises:
        CaptureError: The traces differ in more than numbers, or a number fits no expression.
    """
    first = traces[0].graph
    graphs = [trace.graph for trace in traces]
    if len({tuple(node.op for node in graph.nodes) for graph in graphs}) > 1:
        msg = (
            f"{first.form} runs other operations at other sizes ({_first_difference(graphs)}): "
            "a loop or a branch over a size can't be captured"
        )
        raise CaptureError(msg)
    fitting = _Fitting([trace.values for trace in traces], first.form)
    return first.model_copy(
        update={
            "nodes": tuple(
                fitting.node(same) for same in zip(*(g.nodes for g in graphs), strict=True)
            ),
            "inputs": {
                name: kind.model_copy(
                    update={"shape": fitting.kind([g.inputs[name] for g in graphs], name).shape}
                )
                for name, kind in first.inputs.items()
            },
        }
    )


def _first_difference(graphs: Sequence[Graph]) -> str:
    for place, nodes in enumerate(zip(*(graph.nodes for graph in graphs), strict=False)):
        if len({node.op for node in nodes}) > 1:
            return f"operation {place} is {' or '.join(sorted({node.op for node in nodes}))}"
    return f"{' or '.join(str(len(graph.nodes)) for graph in graphs)} operations"


@dataclass
class _Fitting:
    bindings: Sequence[Binding]
    form: str

    def node(self, same: Sequence[Node]) -> Node:
        """Return a node whose numbers are expressions."""
        first = same[0]
        where = f"{first.op} (node {first.name} of {self.form})"
        kinds = zip(*(node.results for node in same), strict=True)
        return first.model_copy(
            update={
                "args": self.argument([node.args for node in same], where),
                "kwargs": {
                    key: self.argument([node.kwargs.get(key) for node in same], where)
                    for key in first.kwargs
                },
                "results": tuple(self.kind(list(alike), where) for alike in kinds),
            }
        )

    def kind(self, same: Sequence[Kind], where: str) -> Kind:
        """Return a shape whose sizes are expressions."""
        if len({len(kind.shape) for kind in same}) > 1:
            msg = f"the rank of {where} depends on sizes"
            raise CaptureError(msg)
        columns = zip(*(kind.shape for kind in same), strict=True)
        shape = tuple(self.text([int(size) for size in sizes], where) for sizes in columns)
        return Kind(shape=shape, dtype=same[0].dtype)

    def argument(self, same: Sequence[Argument], where: str) -> Argument:
        """Return an argument whose numbers are expressions."""
        first = same[0]
        if isinstance(first, tuple) and all(isinstance(one, tuple) for one in same):
            parts = [one for one in same if isinstance(one, tuple)]
            if len({len(one) for one in parts}) == 1:
                return tuple(self.argument(column, where) for column in zip(*parts, strict=True))
        if all(_is_number(one) for one in same):
            numbers = [one for one in same if isinstance(one, int | float)]
            found = self.text(numbers, where)
            if len(set(numbers)) > 1:
                return Expr(text=found, real=isinstance(numbers[0], float))
            return first
        if any(one != first for one in same):
            msg = f"an argument of {where} depends on sizes: {first!r}"
            raise CaptureError(msg)
        return first

    def text(self, numbers: Sequence[float], where: str) -> str:
        """Return the expression that has these values in the traces."""
        if len(set(numbers)) == 1:
            return str(numbers[0])
        names = list(self.bindings[0])
        for text, values in _candidates(names, self.bindings, real=isinstance(numbers[0], float)):
            if all(map(_close, values, numbers)):
                return text
        shown = ", ".join(str(number) for number in numbers)
        msg = f"{where}: the numbers {shown} fit no expression over {', '.join(names)}"
        raise CaptureError(msg)


def _candidates(
    names: Sequence[str], bindings: Sequence[Binding], *, real: bool
) -> Iterator[tuple[str, list[float]]]:
    """Yield expressions, the simplest first, with their values in the traces."""
    columns = {
        name: [float(b[name]) if real else b[name] for b in bindings]
        for name in names
        if isinstance(bindings[0][name], float) == real and not isinstance(bindings[0][name], bool)
    }
    yield from columns.items()
    for name, values in columns.items():
        for step in (-1, 1):
            yield f"{name} {'-' if step < 0 else '+'} 1", [value + step for value in values]
        yield f"-{name}", [-value for value in values]
    for count in (2, 3):
        for chosen in combinations_with_replacement(columns, count):
            products = [1.0 if real else 1 for _ in bindings]
            for name in chosen:
                products = [p * v for p, v in zip(products, columns[name], strict=True)]
            yield " * ".join(chosen), products
    for a, b in combinations_with_replacement(columns, 2):
        yield f"{a} + {b}", [x + y for x, y in zip(columns[a], columns[b], strict=True)]
    for name, values in columns.items():
        for factor in range(2, 9):
            yield f"{factor} * {name}", [factor * value for value in values]


def _close(one: float, other: float) -> bool:
    """Return whether two numbers are the same, floats as float32: some operations keep no more."""
    if isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-6)
    return one == other


def _is_number(argument: Argument) -> bool:
    return isinstance(argument, int | float) and not isinstance(argument, bool | Ref)
