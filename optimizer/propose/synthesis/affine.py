"""Places in tensors: sums of loop variables, each times a symbolic stride."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from optimizer.propose.synthesis.extent import ONE, ZERO, Extent, make_extent, product

if TYPE_CHECKING:
    from optimizer.propose.synthesis.value import Value


@dataclass(frozen=True)
class Index:
    """A loop variable that runs from 0 to `size` - 1."""

    name: str
    size: Extent


@dataclass(frozen=True)
class Affine:
    """``sum(stride * atom) + offset``; an atom is a loop variable or a whole number's value."""

    terms: tuple[tuple["Index | Value", Extent], ...] = ()
    offset: Extent = ZERO

    @cached_property
    def _hash(self) -> int:
        return hash((self.terms, self.offset))

    def __hash__(self) -> int:
        """Return the hash, computed once: values are graphs with shared parts."""
        return self._hash

    def __add__(self, other: "Affine") -> "Affine":
        """Return the sum."""
        return _make([*self.terms, *other.terms], self.offset + other.offset)

    def scaled(self, factor: Extent) -> "Affine":
        """Return a multiple."""
        return _make([(a, s * factor) for a, s in self.terms], self.offset * factor)

    def stride(self, atom: "Index | Value") -> Extent:
        """Return the factor of an atom, 0 where it is absent."""
        return dict(self.terms).get(atom, ZERO)

    def without(self, atom: "Index | Value") -> "Affine":
        """Return the rest when an atom's term is left out."""
        return Affine(tuple(t for t in self.terms if t[0] != atom), self.offset)

    @property
    def number(self) -> int | None:
        """Return the value where it is a constant."""
        return None if self.terms else self.offset.number

    @property
    def indices(self) -> frozenset[Index]:
        """Return the loop variables that stand in the sum itself."""
        return frozenset(atom for atom, _ in self.terms if isinstance(atom, Index))

    def divide(self, size: Extent) -> "tuple[Affine, Affine] | None":
        """Return quotient and remainder by a size where both are plain sums, else None.

        ``i * size + j`` with j below size gives i and j.
        """
        whole: list[tuple[Index | Value, Extent]] = []
        rest: list[tuple[Index | Value, Extent]] = []
        for atom, stride in self.terms:
            quotient = stride.divide(size)
            if quotient is not None:
                whole.append((atom, quotient))
            else:
                rest.append((atom, stride))
        offset = self.offset.divide(size) if self.offset != ZERO else ZERO
        if offset is None or not _below(rest, size):
            return None
        return Affine(tuple(whole), offset), Affine(tuple(rest))


def constant(value: int | Extent) -> Affine:
    """Return a place that does not move."""
    return Affine((), value if isinstance(value, Extent) else make_extent(value))


def along(atom: "Index | Value") -> Affine:
    """Return the place that a loop variable or a number itself is."""
    return Affine(((atom, ONE),))


def row_major(index: tuple[Affine, ...], shape: tuple[Extent, ...]) -> Affine:
    """Return the place of an element in a contiguous tensor."""
    place = Affine()
    for axis, position in enumerate(index):
        place += position.scaled(product(shape[axis + 1 :]))
    return place


def _make(terms: "list[tuple[Index | Value, Extent]]", offset: Extent) -> Affine:
    sums: dict[Index | Value, Extent] = {}
    for atom, stride in terms:
        sums[atom] = sums.get(atom, ZERO) + stride
    return Affine(tuple(sorted((t for t in sums.items() if t[1] != ZERO), key=_rank)), offset)


def _rank(term: "tuple[Index | Value, Extent]") -> tuple[bool, str]:
    """Loop variables by name, then the rest as they came: the same text on every run."""
    atom = term[0]
    return (False, atom.name) if isinstance(atom, Index) else (True, "")


def _below(terms: "list[tuple[Index | Value, Extent]]", size: Extent) -> bool:
    """Return whether a sum surely stays below a size, as ``i * c + j`` does below ``b * c``."""
    reach = ONE
    left = list(terms)
    while left:
        fitting = [(a, s) for a, s in left if isinstance(a, Index) and s == reach]
        if not fitting:
            return False
        atom, stride = fitting[0]
        left.remove((atom, stride))
        reach *= atom.size if isinstance(atom, Index) else ONE
    return size.divide(reach) is not None
