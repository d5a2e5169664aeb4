"""What one element of a result is: an expression over loaded elements, shared parts and all.

Both emitters print these values, so that C++ and Triton compute the same. Dtypes are those in
which is computed: float32 for the half formats, the integers' own.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Literal

from optimizer.propose.synthesis.affine import Affine, Index

ReduceKind = Literal["sum", "max", "min", "prod"]
Scalar = bool | int | float


@dataclass(frozen=True)
class _Part:
    """A value; its hash is computed once, for values are graphs with shared parts."""

    @cached_property
    def _hash(self) -> int:
        parts = tuple(getattr(self, f.name) for f in fields(self) if f.compare)
        return hash((type(self).__name__, *parts))

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True)
class Constant(_Part):
    """A number."""

    value: Scalar
    dtype: str
    __hash__ = _Part.__hash__


@dataclass(frozen=True)
class Symbol(_Part):
    """A number of the plan: an axis, an attribute or an expression of them."""

    text: str
    dtype: str
    __hash__ = _Part.__hash__


@dataclass(frozen=True)
class Position(_Part):
    """A place used as a number."""

    place: Affine
    dtype: str = "int64"
    __hash__ = _Part.__hash__


@dataclass(frozen=True)
class Load(_Part):
    """An element of an input or a buffer, as it is stored."""

    tensor: str
    place: Affine
    dtype: str
    """The dtype in memory."""
    __hash__ = _Part.__hash__


@dataclass(frozen=True)
class Apply(_Part):
    """An operation on values; ``cast`` converts to `dtype`."""

    op: str
    args: "tuple[Value, ...]"
    dtype: str
    hint: str = field(default="", compare=False)
    """A name for it, from the captured graph."""
    __hash__ = _Part.__hash__


@dataclass(frozen=True)
class Search(_Part):
    """How many of a sorted table's `size` elements are below `needle` (or equal, if `right`)."""

    table: str
    table_dtype: str
    size: str
    needle: "Value"
    right: bool = False
    dtype: str = "int64"
    __hash__ = _Part.__hash__


@dataclass(frozen=True)
class Reduce(_Part):
    """A reduction of `body` over the loop variable `over`, which is free nowhere else."""

    kind: ReduceKind
    body: "Value"
    over: Index
    dtype: str
    hint: str = field(default="", compare=False)
    __hash__ = _Part.__hash__


@dataclass(frozen=True)
class Segment(_Part):
    """In which segment an element stands, when `lengths` holds the segments' lengths."""

    lengths: str
    place: "Affine"
    dtype: str = "int64"
    __hash__ = _Part.__hash__


@dataclass(frozen=True)
class Scan(_Part):
    """The sum of the elements of a one-dimensional input up to and with `place`."""

    tensor: str
    place: "Affine"
    dtype: str = "int64"
    __hash__ = _Part.__hash__


Value = Constant | Symbol | Position | Load | Apply | Search | Reduce | Segment | Scan


def parts(value: Value) -> tuple[Value, ...]:
    """Return the values that a value is made of directly, those inside places too."""
    match value:
        case Apply(args=args):
            return args
        case Search(needle=needle):
            return (needle,)
        case Reduce(body=body):
            return (body,)
        case Position(place=place) | Load(place=place) | Segment(place=place) | Scan(place=place):
            return tuple(atom for atom, _ in place.terms if not isinstance(atom, Index))
        case Constant() | Symbol():
            return ()


def places(value: Value) -> tuple[Affine, ...]:
    """Return the places that a value holds itself."""
    match value:
        case Position(place=place) | Load(place=place) | Segment(place=place) | Scan(place=place):
            return (place,)
        case _:
            return ()


def walk(*roots: Value) -> Iterator[Value]:
    """Yield each value below the roots once, parts before what is made of them."""
    seen: set[Value] = set()
    stack: list[tuple[Value, bool]] = [(root, False) for root in reversed(roots)]
    while stack:
        value, expanded = stack.pop()
        if value in seen:
            continue
        if expanded:
            seen.add(value)
            yield value
            continue
        stack.append((value, True))
        stack += [(part, False) for part in reversed(parts(value)) if part not in seen]


def free_indices(value: Value) -> frozenset[Index]:
    """Return the loop variables that a value depends on; a reduction's own is not among them."""
    known: dict[Value, frozenset[Index]] = {}
    for part in walk(value):
        found = frozenset[Index]().union(*(known[p] for p in parts(part)))
        found |= frozenset[Index]().union(*(place.indices for place in places(part)))
        known[part] = found - {part.over} if isinstance(part, Reduce) else found
    return known[value]


def indices_of(place: Affine) -> frozenset[Index]:
    """Return the loop variables that a place depends on, by its atoms as well."""
    atoms = (atom for atom, _ in place.terms if not isinstance(atom, Index))
    return place.indices.union(*(free_indices(atom) for atom in atoms))


Change = Callable[[Value], Value]


def rewrite(
    value: Value,
    change: Change,
    *,
    known: dict[Value, Value] | None = None,
    place: Callable[[Affine], Affine] = lambda affine: affine,
) -> Value:
    """Return the value with `change` applied to each part, from the leaves up.

    Args:
        value: What is rewritten.
        change: Is given each part after its own parts were rewritten.
        known: What was rewritten before, to share work between values.
        place: Is applied to each place after the values in it were rewritten.
    """
    known = {} if known is None else known
    for part in walk(value):
        if part not in known:
            known[part] = change(_rebuilt(part, known, place))
    return known[value]


def _rebuilt(part: Value, known: Mapping[Value, Value], place: Callable[[Affine], Affine]) -> Value:
    match part:
        case Apply(args=args):
            return replace(part, args=tuple(known[a] for a in args))
        case Search(needle=needle):
            return replace(part, needle=known[needle])
        case Reduce(body=body):
            return replace(part, body=known[body])
        case Position() | Load() | Segment() | Scan():
            terms = tuple(
                (atom if isinstance(atom, Index) else known[atom], stride)
                for atom, stride in part.place.terms
            )
            return replace(part, place=place(Affine(terms, part.place.offset)))
        case Constant() | Symbol():
            return part


def substitute(value: Value, index: Index, by: Affine) -> Value:
    """Return the value with a loop variable replaced by a place."""

    def moved(place: Affine) -> Affine:
        return place.without(index) + by.scaled(place.stride(index))

    return rewrite(value, lambda part: part, place=moved)
