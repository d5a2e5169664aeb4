"""Which number masked-off elements may hold so that a reduction does not see them."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any

from optimizer.propose.synthesis.dtypes import Dtypes, is_float
from optimizer.propose.synthesis.emission import Depth, depth_of
from optimizer.propose.synthesis.value import (
    Apply,
    Constant,
    Load,
    Reduce,
    Symbol,
    Value,
    walk,
)

NEUTRAL: Mapping[str, float] = {"sum": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}
_LEAST_INTEGERS: Mapping[str, int] = {"int64": 2**63, "int32": 2**31, "int16": 2**15, "int8": 2**7}
_SAMPLES = (-2.9, 0.37, 7.3)
"""Finite numbers of either sign that stand for what is not masked, such as a row's mean."""
_MEANINGS: Mapping[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b, "neg": lambda a: -a, "abs": abs, "exp": math.exp,
    "sqrt": math.sqrt, "tanh": math.tanh, "erf": math.erf, "max": max, "min": min,
    "cast": lambda a: a, "round": lambda a: a, "log": math.log, "rsqrt": lambda a: 1 / math.sqrt(a),
}  # fmt: skip


def choose_fillers(
    reductions: Sequence[Reduce], dtypes: Dtypes
) -> tuple[dict[Load, float], frozenset[Reduce]]:
    """Return what each load gives where it is masked off, and which reductions that satisfies.

    The choice satisfies as many of the reductions as any.
    """
    parts = (part for reduction in reductions for part in walk(reduction.body))
    loads = [
        part
        for part in dict.fromkeys(parts)
        if isinstance(part, Load)
        and depth_of(part) == Depth.ELEMENT
        and is_float(dtypes.computed(part.dtype))
    ]
    best: tuple[dict[Load, float], frozenset[Reduce]] = ({}, frozenset())
    for numbers in product((0.0, -math.inf, math.inf), repeat=min(len(loads), 3)):
        fillers = dict(zip(loads, numbers, strict=False))
        satisfied = frozenset(r for r in reductions if _satisfies(r, fillers))
        if len(satisfied) > len(best[1]) or not best[0]:
            best = (fillers, satisfied)
    return best


def divisors(values: Iterable[Value]) -> set[Load]:
    """Return the loads that are divided by: masked off, they must not be 0."""
    found: set[Load] = set()
    for value in values:
        if isinstance(value, Apply) and value.op in {"div", "floordiv", "mod", "truncdiv"}:
            below = value.args[1]
            below = below.args[0] if isinstance(below, Apply) and below.op == "cast" else below
            found |= {below} if isinstance(below, Load) else set()
    return found


def neutral(reduction: Reduce) -> str:
    """Return, as Triton, the number that a reduction does not see."""
    number = NEUTRAL[reduction.kind]
    if is_float(reduction.dtype):
        return f'float("{number}")' if math.isinf(number) else f"{number:.1f}"
    if math.isinf(number):
        least = _LEAST_INTEGERS.get(reduction.dtype, 1)
        return str(-least if number < 0 else least - 1)
    return f"{number:.0f}"


def _satisfies(reduction: Reduce, fillers: Mapping[Load, float]) -> bool:
    wanted = NEUTRAL[reduction.kind]
    try:
        return all(_value(reduction.body, fillers, sample) == wanted for sample in _SAMPLES)
    except (ArithmeticError, ValueError, KeyError, TypeError):
        return False


def _value(value: Value, fillers: Mapping[Load, float], sample: float) -> float:
    match value:
        case Constant(value=number):
            return float(number)
        case Load() if value in fillers:
            return fillers[value]
        case Load() | Reduce() | Symbol() if depth_of(value) != Depth.ELEMENT:
            return sample
        case Apply(op=op, args=args):
            meaning = _MEANINGS[op.partition(":")[0]]
            return float(meaning(*(_value(arg, fillers, sample) for arg in args)))
        case _:
            raise KeyError(value)
