"""A captured reference: ATen operations over symbolic sizes, readable without torch."""

from typing import Literal

from typing_extensions import TypeAliasType

from operator_registry.record import Identifier, Record
from operator_registry.registry import Operator

SizeText = str
"""A size as an expression over the spec's axes, such as ``rows * cols``."""


class Kind(Record):
    """What a value is: shape, outermost first, and dtype."""

    shape: tuple[SizeText, ...]
    dtype: str
    """A dtype, or a dtype variable of the spec."""


class Ref(Record):
    """An argument: an input or what a node gave."""

    node: str
    result: int = 0


class Expr(Record):
    """An argument: a number that depends on axes or attributes."""

    text: str
    real: bool = False
    """True for a floating number."""


Argument = TypeAliasType(
    "Argument",
    "Ref | Expr | bool | int | float | str | tuple[Argument, ...] | None",  # pyright: ignore[reportInvalidTypeForm] - its own name
)


class Node(Record):
    """One ATen operation."""

    name: str
    op: str
    """With its overload: ``aten.add.Tensor``."""
    args: tuple[Argument, ...] = ()
    kwargs: dict[str, Argument] = {}
    results: tuple[Kind, ...]

    @property
    def kind(self) -> Kind:
        """Return what the first result is."""
        return self.results[0]

    @property
    def family(self) -> str:
        """Return the operation without its overload: ``aten.add``."""
        return self.op.rpartition(".")[0]


class GraphInput(Kind):
    """An input. Of a list of tensors, the graph shows one member that stands for each."""

    list_over: Identifier | None = None


class GraphOutput(Record):
    """An output, and the value that it is."""

    ref: Ref
    list_over: Identifier | None = None


class Graph(Record):
    """The operations of one form of a reference, in the order in which they run.

    Where inputs are lists, nodes that depend on a member appear once and stand for every member.
    """

    schema_version: Literal[1] = 1
    operator: str
    form: str
    """The function that was captured."""
    inputs: dict[str, GraphInput]
    nodes: tuple[Node, ...]
    outputs: dict[str, GraphOutput]

    def kind_of(self, ref: Ref) -> Kind:
        """Return what an argument's value is."""
        if ref.node in self.inputs:
            return self.inputs[ref.node]
        return self.node(ref.node).results[ref.result]

    def node(self, name: str) -> Node:
        """Return a node by its name.

        Raises:
            KeyError: No such node.
        """
        for node in self.nodes:
            if node.name == name:
                return node
        raise KeyError(name)


class CaptureRequest(Record):
    """Which form of an operator's reference to capture."""

    operator: Operator
    form: str


class CaptureReply(Record):
    """A graph, or why there is none."""

    graph: Graph | None = None
    reason: str = ""


def references(argument: Argument) -> tuple[Ref, ...]:
    """Return the values that an argument holds, in order."""
    if isinstance(argument, Ref):
        return (argument,)
    if isinstance(argument, tuple):
        return tuple(ref for part in argument for ref in references(part))
    return ()


def arguments_of(node: Node) -> tuple[Ref, ...]:
    """Return the values that a node uses, in order."""
    return references(node.args) + references(tuple(node.kwargs.values()))
