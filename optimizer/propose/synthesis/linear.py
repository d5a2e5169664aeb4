"""Whole-number sums of values: what stands in them, and how often."""

from collections.abc import Iterable
from dataclasses import dataclass

from optimizer.propose.synthesis.affine import Index, along
from optimizer.propose.synthesis.arithmetic import apply, number
from optimizer.propose.synthesis.extent import Extent
from optimizer.propose.synthesis.value import Apply, Constant, Position, Symbol, Value

ONE = Constant(1, "int64")
"""Stands for the constant term."""


@dataclass(frozen=True)
class Linear:
    """``sum(factor * value)``; the constant term is a factor of `ONE`."""

    terms: frozenset[tuple[Value, int]] = frozenset()

    def __add__(self, other: "Linear") -> "Linear":
        """Return the sum."""
        return _collect((*self.terms, *other.terms))

    def __sub__(self, other: "Linear") -> "Linear":
        """Return the difference."""
        return self + other.scaled(-1)

    def scaled(self, factor: int) -> "Linear":
        """Return a multiple."""
        return _collect((value, factor * times) for value, times in self.terms)

    @property
    def values(self) -> tuple[Value, ...]:
        """Return what stands in the sum."""
        return tuple(value for value, _ in self.terms)


def linear(value: Value) -> Linear:  # noqa: PLR0911 - one return a case
    """Return a whole number's value as a sum, as far as it is one."""
    match value:
        case Constant(value=constant):
            return _collect([(ONE, int(constant))])
        case Apply(op="add", args=(left, right)):
            return linear(left) + linear(right)
        case Apply(op="sub", args=(left, right)):
            return linear(left) - linear(right)
        case Apply(op="neg", args=(one,)):
            return linear(one).scaled(-1)
        case Apply(op="cast", args=(one,)) if one.dtype in {"int32", "int64"}:
            return linear(one)
        case Position(place=place):
            terms: list[tuple[Value, int]] = []
            for atom, stride in place.terms:
                if stride.number is None:
                    return _collect([(value, 1)])
                single = Position(along(atom)) if isinstance(atom, Index) else atom
                terms.append((single, stride.number))
            return _collect([*terms, *_of_size(place.offset)])
        case _:
            return _collect([(value, 1)])


def value_of(total: Linear) -> Value:
    """Return a sum as a value, what is added before what is taken away."""
    ordered = sorted(total.terms, key=lambda term: (term[1] < 0, term[0] == ONE, repr(term[0])))
    result: Value = number(0, "int64")
    for value, factor in ordered:
        if value == ONE:
            result = apply("add" if factor > 0 else "sub", result, number(abs(factor), "int64"))
            continue
        part = value if abs(factor) == 1 else apply("mul", value, number(abs(factor), "int64"))
        if factor > 0 and result == number(0, "int64"):
            result = part
        else:
            result = apply("add" if factor > 0 else "sub", result, part)
    return result


def _of_size(size: Extent) -> Iterable[tuple[Value, int]]:
    for names, factor in size.terms:
        yield (Symbol(" * ".join(names), "int64") if names else ONE), factor


def _collect(terms: Iterable[tuple[Value, int]]) -> Linear:
    sums: dict[Value, int] = {}
    for value, factor in terms:
        sums[value] = sums.get(value, 0) + factor
    return Linear(frozenset((value, factor) for value, factor in sums.items() if factor))
