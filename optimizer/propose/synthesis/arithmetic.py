"""Values from values: casts, folded constants and the few compound formulas."""

import math
from collections.abc import Callable

from optimizer.propose.synthesis.dtypes import is_float
from optimizer.propose.synthesis.value import Apply, Constant, Scalar, Value

DAMPED_EXP = "exp:damped"
"""An exponential that only divides: its relative error may grow with its argument."""
_FOLDED: dict[str, Callable[[Scalar, Scalar], Scalar]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
}


def number(value: Scalar, dtype: str) -> Constant:
    """Return a constant, its value in the kind of its dtype."""
    if dtype == "bool":
        return Constant(bool(value), dtype)
    if is_float(dtype):
        return Constant(float(value), dtype)
    return Constant(int(value), dtype)


def cast(value: Value, dtype: str) -> Value:
    """Return the value in another dtype."""
    if value.dtype == dtype:
        return value
    if isinstance(value, Constant):
        return number(value.value, dtype)
    if dtype == "bool":
        return Apply("ne", (value, number(0, value.dtype)), "bool")
    return Apply("cast", (value,), dtype)


def rounded(value: Value, stored: str) -> Value:
    """Return the value as it comes back from memory of dtype `stored`."""
    return value if isinstance(value, Constant) else Apply(f"round:{stored}", (value,), value.dtype)


def unrounded(value: Value) -> Value:
    """Return the value without a rounding that a store does anyhow."""
    while isinstance(value, Apply) and value.op.startswith("round:"):
        (value,) = value.args
    return value


def apply(op: str, *args: Value, dtype: str | None = None, hint: str = "") -> Value:
    """Return an operation on values of one dtype, folded where all are constants."""
    dtype = dtype or args[0].dtype
    if op in _FOLDED and all(isinstance(a, Constant) for a in args):
        left, right = (a.value for a in args if isinstance(a, Constant))
        return number(_FOLDED[op](left, right), dtype)
    if op in {"mul", "div"} and is_one(args[1]):
        return args[0]
    if op in {"add", "sub"} and is_zero(args[1]):
        return args[0]
    return Apply(op, args, dtype, hint)


def is_one(value: Value) -> bool:
    """Return whether the value is the constant 1."""
    return isinstance(value, Constant) and value.value == 1


def is_zero(value: Value) -> bool:
    """Return whether the value is the constant 0."""
    return isinstance(value, Constant) and value.value == 0


def like(value: Value, scalar: Scalar) -> Constant:
    """Return a constant of a value's dtype."""
    return number(scalar, value.dtype)


def sigmoid(x: Value) -> Value:
    """Return ``1 / (1 + exp(-x))``."""
    return apply("div", like(x, 1), apply("add", apply("exp", apply("neg", x)), like(x, 1)))


def silu(x: Value) -> Value:
    """Return ``x / (1 + exp(-x))``."""
    return apply("div", x, apply("add", apply(DAMPED_EXP, apply("neg", x)), like(x, 1)))


def gelu(x: Value, *, tanh: bool) -> Value:
    """Return GELU in its tanh form or by the error function.

    ``(1 + tanh(u)) / 2`` is the sigmoid of ``2 u``: one exponential and no cancellation.
    """
    if not tanh:
        grown = apply("add", apply("erf", apply("mul", x, like(x, math.sqrt(0.5)))), like(x, 1))
        return apply("mul", apply("mul", x, like(x, 0.5)), grown)
    slope = 2 * math.sqrt(2 / math.pi)
    cubic = apply("mul", apply("mul", x, x), like(x, slope * 0.044715))
    inner = apply("mul", apply("add", cubic, like(x, slope)), x)
    falling = apply(DAMPED_EXP, apply("neg", inner))
    return apply("div", x, apply("add", falling, like(x, 1)))


def power(x: Value, exponent: Scalar) -> Value | None:  # noqa: PLR0911 - one return a case
    """Return ``x ** exponent`` by cheaper operations, None where there are none."""
    if exponent == 0:
        return like(x, 1)
    if float(exponent).is_integer() and 0 < exponent <= 8:  # noqa: PLR2004 - three products at most
        return _product(x, int(exponent))
    if not is_float(x.dtype):
        return None
    if exponent == 0.5:  # noqa: PLR2004
        return apply("sqrt", x)
    if exponent == -0.5:  # noqa: PLR2004
        return apply("rsqrt", x)
    if float(exponent).is_integer() and -8 <= exponent < 0:  # noqa: PLR2004
        return apply("div", like(x, 1), _product(x, -int(exponent)))
    return None


def _product(x: Value, times: int) -> Value:
    if times == 1:
        return x
    half = _product(x, times // 2)
    square = apply("mul", half, half)
    return apply("mul", square, x) if times % 2 else square
