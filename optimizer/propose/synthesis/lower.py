"""What one element of a graph's node is, worked out from the inputs' elements."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from optimizer.propose.synthesis.affine import Affine, Index, along, constant, row_major
from optimizer.propose.synthesis.arithmetic import cast, number
from optimizer.propose.synthesis.dtypes import Dtypes, RegionError
from optimizer.propose.synthesis.extent import ONE, ZERO, Extent, make_extent, product
from optimizer.propose.synthesis.graph import Argument, Expr, Graph, Node, Ref
from optimizer.propose.synthesis.pointwise import RULES
from optimizer.propose.synthesis.value import (
    Apply,
    Constant,
    Load,
    Position,
    Scalar,
    Symbol,
    Value,
)

Place = tuple[Affine, ...]
"""An element's index, outermost axis first."""
COL = "col"
"""The name of the loop variable along a row."""


class NeedsBufferError(Exception):
    """A result is wanted where it can't be computed in passing: it needs memory of its own."""

    def __init__(self, node: str) -> None:
        super().__init__(node)
        self.node = node


@dataclass
class Lowering:
    """Elements of a graph's nodes as values; what is in `buffers` is loaded, not computed."""

    graph: Graph
    dtypes: Dtypes
    buffers: Mapping[Ref, str] = field(default_factory=dict)
    _known: dict[tuple[str, int, Place], Value] = field(default_factory=dict)

    def element(self, ref: Ref, place: Place) -> Value:
        """Return an element in the dtype in which it is computed.

        Raises:
            RegionError: An operation that no region covers.
            NeedsBufferError: A reduction that would be computed again for each element.
        """
        key = (ref.node, ref.result, place)
        if key not in self._known:
            self._known[key] = self._element(ref, place)
        return self._known[key]

    def shape(self, ref: Ref) -> tuple[Extent, ...]:
        """Return the symbolic shape of a value."""
        return tuple(make_extent(size) for size in self.graph.kind_of(ref).shape)

    def load(self, ref: Ref, name: str, place: Place) -> Value:
        """Return an element of a tensor in memory."""
        stored = self.graph.kind_of(ref).dtype
        loaded = Load(name, joined(row_major(place, self.shape(ref))), stored)
        computed = self.dtypes.computed(stored)
        return loaded if computed == stored else Apply("cast", (loaded,), computed)

    def name_of(self, ref: Ref, what: str) -> str:
        """Return the name of a tensor in memory.

        Raises:
            NeedsBufferError: The value is not in memory.
        """
        if ref in self.buffers:
            return self.buffers[ref]
        if ref.node in self.graph.inputs:
            return ref.node
        raise NeedsBufferError(ref.node)

    def _element(self, ref: Ref, place: Place) -> Value:
        if ref in self.buffers or ref.node in self.graph.inputs:
            return self.load(ref, self.name_of(ref, "load"), place)
        node = self.graph.node(ref.node)
        # What works in place on an intermediate result is its pure form here.
        family = node.family.removesuffix("_")
        if family in RULES:
            value = RULES[family](ElementOperands(self, node, place))
        elif family in SPECIAL:
            value = SPECIAL[family](self, node, ref.result, place)
        else:
            raise RegionError(self._unknown(node))
        if isinstance(value, Apply) and not value.hint:
            return replace(value, hint=node.name)
        return value

    def _unknown(self, node: Node) -> str:
        return f"no region for {node.op} (node {node.name} of {self.graph.form})"

    def broadcast(self, ref: Ref, place: Place) -> Value:
        """Return the element of an operand that meets `place` of the result."""
        shape = self.shape(ref)
        own = place[len(place) - len(shape) :]
        moved = tuple(
            constant(0) if size == ONE else position
            for size, position in zip(shape, own, strict=True)
        )
        return self.element(ref, moved)


Special = Callable[[Lowering, Node, int, Place], Value]
SPECIAL: dict[str, Special] = {}
"""Operations that are not element by element; filled by the modules that hold them."""


def special(*families: str) -> Callable[[Special], Special]:
    """Return a decorator that enters a rule for operations."""

    def enter(rule: Special) -> Special:
        SPECIAL.update(dict.fromkeys(families, rule))
        return rule

    return enter


@dataclass
class ElementOperands:
    """See `pointwise.Operands`."""

    lowering: Lowering
    node: Node
    place: Place

    @property
    def dtype(self) -> str:
        """See `pointwise.Operands`."""
        return self.lowering.dtypes.arithmetic(self.node.kind.dtype, self.node.op)

    def value(self, position: int) -> Value:
        """See `pointwise.Operands`."""
        return cast(self.plain(position), self.dtype)

    def plain(self, position: int) -> Value:
        """See `pointwise.Operands`."""
        return self._made(self.node.args[position])

    def given(self, position: int, name: str = "") -> bool:
        """See `pointwise.Operands`."""
        args, kwargs = self.node.args, self.node.kwargs
        return (len(args) > position and args[position] is not None) or (
            kwargs.get(name) is not None
        )

    def scalar(self, position: int, name: str, default: Scalar) -> Scalar:
        """See `pointwise.Operands`."""
        if not self.given(position, name):
            return default
        args = self.node.args
        argument = args[position] if len(args) > position else self.node.kwargs[name]
        return scalar(self.node, argument)

    def named(self, name: str, default: Scalar) -> Value:
        """See `pointwise.Operands`."""
        return cast(self._made(self.node.kwargs.get(name, default)), self.dtype)

    def _made(self, argument: Argument) -> Value:
        match argument:
            case Ref():
                return self.lowering.broadcast(argument, self.place)
            case Expr(text=text, real=real):
                return Symbol(text, "float32" if real else "int64")
            case bool() | int() | float():
                kind = "bool" if isinstance(argument, bool) else None
                return number(argument, kind or _weak(argument))
            case _:
                msg = f"no region for {self.node.op} with the argument {argument!r}"
                raise RegionError(msg)


def scalar(node: Node, argument: Argument) -> Scalar:
    """Return an argument that must be a plain number.

    Raises:
        RegionError: It depends on the call.
    """
    if isinstance(argument, bool | int | float):
        return argument
    msg = f"no region for {node.op}: the argument {argument!r} must be a constant"
    raise RegionError(msg)


def whole(node: Node, argument: Argument) -> Extent:
    """Return an argument that is a whole number of constants and axes.

    Raises:
        RegionError: It is not.
    """
    if isinstance(argument, int):
        return make_extent(argument)
    if isinstance(argument, Expr) and not argument.real:
        return make_extent(argument.text)
    msg = f"no region for {node.op}: the argument {argument!r} is no size"
    raise RegionError(msg)


def source(node: Node, position: int = 0) -> Ref:
    """Return an argument that must be a tensor.

    Raises:
        RegionError: It is a number.
    """
    argument = node.args[position]
    if isinstance(argument, Ref):
        return argument
    msg = f"no region for {node.op} with the number {argument!r} for a tensor"
    raise RegionError(msg)


def split(place: Affine, sizes: Sequence[Extent]) -> Place:
    """Return the index in a shape of the element at a row-major place."""
    index: list[Affine] = []
    for axis in range(len(sizes) - 1):
        inner = product(sizes[axis + 1 :])
        quotient, place = _divided(place, inner)
        index.append(quotient)
    return (*index, place) if sizes else ()


def _divided(place: Affine, size: Extent) -> tuple[Affine, Affine]:
    found = place.divide(size)
    if found:
        return found
    operands = (number_at(place), Symbol(str(size), "int64"))
    return along(Apply("floordiv", operands, "int64")), along(Apply("mod", operands, "int64"))


def joined(place: Affine) -> Affine:
    """Return the place with ``(i // n) * n + i % n`` written as ``i``."""
    for atom, stride in place.terms:
        if not (isinstance(atom, Apply) and atom.op == "mod"):
            continue
        both, size = atom.args
        quotient = Apply("floordiv", atom.args, "int64")
        if not isinstance(size, Symbol):
            continue
        if place.stride(quotient) == stride * make_extent(size.text):
            rest = place.without(atom).without(quotient)
            return joined(rest + index_of(both).scaled(stride))
    return place


def index_of(value: Value) -> Affine:
    """Return the place that a whole number's value is."""
    if isinstance(value, Position):
        return value.place
    if isinstance(value, Constant):
        return constant(int(value.value))
    if isinstance(value, Symbol):
        return constant(make_extent(value.text))
    return along(value)


def number_at(place: Affine) -> Value:
    """Return a place as a number."""
    if place.number is not None:
        return number(place.number, "int64")
    atom, stride = place.terms[0] if len(place.terms) == 1 else (None, ONE)
    plain = stride == ONE and place.offset == ZERO
    return atom if plain and atom and not isinstance(atom, Index) else Position(place)


def row_index(axis: int, size: Extent) -> Index:
    """Return the loop variable of an axis outside the rows."""
    return Index(f"row{axis}", size)


def _weak(argument: float) -> str:
    return "int64" if isinstance(argument, int) else "float32"
