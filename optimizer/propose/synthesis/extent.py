"""Symbolic sizes: polynomials with whole coefficients over axes."""

import ast
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

Monomial = tuple[str, ...]
"""Names that are multiplied, sorted; empty for the constant term."""


@dataclass(frozen=True)
class Extent:
    """A size such as ``rows * cols + 1``; equal polynomials are equal values."""

    terms: tuple[tuple[Monomial, int], ...] = ()

    def __add__(self, other: "Extent") -> "Extent":
        """Return the sum."""
        return _collect((*self.terms, *other.terms))

    def __neg__(self) -> "Extent":
        """Return the negative."""
        return Extent(tuple((names, -factor) for names, factor in self.terms))

    def __sub__(self, other: "Extent") -> "Extent":
        """Return the difference."""
        return self + -other

    def __mul__(self, other: "Extent") -> "Extent":
        """Return the product."""
        return _collect(
            (tuple(sorted(a + b)), x * y) for a, x in self.terms for b, y in other.terms
        )

    @property
    def number(self) -> int | None:
        """Return the value where it depends on no axis."""
        if not self.terms:
            return 0
        return self.terms[0][1] if self.names == frozenset() else None

    @property
    def names(self) -> frozenset[str]:
        """Return the axes that the size depends on."""
        return frozenset(name for names, _ in self.terms for name in names)

    def divide(self, other: "Extent") -> "Extent | None":
        """Return the quotient by a single term, None where a remainder is left."""
        if len(other.terms) != 1:
            return ONE if self == other else None
        ((names, factor),) = other.terms
        quotient = []
        for mine, value in self.terms:
            left = list(mine)
            for name in names:
                if name not in left:
                    return None
                left.remove(name)
            if value % factor:
                return None
            quotient.append((tuple(left), value // factor))
        return Extent(tuple(quotient))

    def __str__(self) -> str:
        """Return the size as an expression of a launch plan; also valid Python and C++."""
        text = ""
        for names, factor in self.terms:
            product = " * ".join((*([str(abs(factor))] if abs(factor) != 1 else []), *names))
            sign = "-" if factor < 0 else "+"
            text += f" {sign} {product or '1'}" if text else f"{'-' * (factor < 0)}{product or '1'}"
        return text or "0"


ZERO = Extent()
ONE = Extent((((), 1),))


def make_extent(size: str | int) -> Extent:
    """Return the size that an expression of names, numbers, ``+``, ``-`` and ``*`` stands for.

    A call, such as ``largest(elements)``, is taken as one name.
    """
    return _read(ast.parse(str(size), mode="eval").body)


def product(sizes: Iterable[Extent]) -> Extent:
    """Return the product of sizes, one for none."""
    result = ONE
    for size in sizes:
        result *= size
    return result


def _collect(terms: Iterable[tuple[Monomial, int]]) -> Extent:
    sums: defaultdict[Monomial, int] = defaultdict(int)
    for names, factor in terms:
        sums[names] += factor
    # The highest degree first: "rows * cols + 1" is how a person writes it.
    ordered = sorted(sums.items(), key=lambda term: (-len(term[0]), term[0]))
    return Extent(tuple((names, factor) for names, factor in ordered if factor))


def _read(node: ast.expr) -> Extent:
    match node:
        case ast.Constant(value=int(value)):
            return _collect([((), value)])
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _read(left) + _read(right)
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return _read(left) - _read(right)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _read(left) * _read(right)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_read(operand)
        case _:
            return _collect([((ast.unparse(node),), 1)])
