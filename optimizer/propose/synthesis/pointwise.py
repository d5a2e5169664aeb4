"""ATen operations on single elements, each as a value of its operands' elements."""

import math
from collections.abc import Callable, Mapping
from typing import Protocol

from optimizer.propose.synthesis.arithmetic import (
    apply,
    cast,
    gelu,
    is_one,
    like,
    number,
    power,
    rounded,
    sigmoid,
    silu,
)
from optimizer.propose.synthesis.dtypes import RegionError, is_float, promoted
from optimizer.propose.synthesis.graph import Node
from optimizer.propose.synthesis.value import Constant, Scalar, Value


class Operands(Protocol):
    """The arguments of a node at one place."""

    node: Node

    @property
    def dtype(self) -> str:
        """The dtype in which the node is computed."""
        ...

    def value(self, position: int) -> Value:
        """Return an operand in the node's dtype."""
        ...

    def plain(self, position: int) -> Value:
        """Return an operand in its own dtype."""
        ...

    def given(self, position: int, name: str = "") -> bool:
        """Return whether the node has such an argument and it is not None."""
        ...

    def scalar(self, position: int, name: str, default: Scalar) -> Scalar:
        """Return an argument that is the same number in every call."""
        ...

    def named(self, name: str, default: Scalar) -> Value:
        """Return a keyword argument in the node's dtype."""
        ...


Rule = Callable[[Operands], Value]


def _unary(op: str) -> Rule:
    return lambda o: apply(op, o.value(0))


def _binary(op: str) -> Rule:
    return lambda o: apply(op, o.value(0), o.value(1))


def _sum(op: str) -> Rule:
    """``a + alpha * b`` and ``a - alpha * b``."""

    def rule(o: Operands) -> Value:
        factor = o.named("alpha", 1)
        right = o.value(1) if is_one(factor) else apply("mul", o.value(1), factor)
        return apply(op, o.value(0), right)

    return rule


def _reverse_sub(o: Operands) -> Value:
    return apply("sub", o.value(1), o.value(0))


def _div(o: Operands) -> Value:
    mode = o.node.kwargs.get("rounding_mode")
    if mode is None:
        return apply("div", o.value(0), o.value(1))
    if is_float(o.dtype):
        return apply(str(mode), apply("div", o.value(0), o.value(1)))
    return apply("floordiv" if mode == "floor" else "truncdiv", o.value(0), o.value(1))


def _floor_divide(o: Operands) -> Value:
    if is_float(o.dtype):
        return apply("floor", apply("div", o.value(0), o.value(1)))
    return apply("floordiv", o.value(0), o.value(1))


def _remainder(o: Operands) -> Value:
    a, b = o.value(0), o.value(1)
    if not is_float(o.dtype):
        return apply("mod", a, b)
    return apply("sub", a, apply("mul", apply("floor", apply("div", a, b)), b))


def _compare(op: str) -> Rule:
    def rule(o: Operands) -> Value:
        a, b = o.plain(0), o.plain(1)
        dtype = _met(a, b)
        return apply(op, cast(a, dtype), cast(b, dtype), dtype="bool")

    return rule


def _met(a: Value, b: Value) -> str:
    """Return the dtype in which two operands are compared; a number yields to a tensor."""
    if isinstance(b, Constant) and (is_float(a.dtype) or not is_float(b.dtype)):
        return a.dtype if a.dtype != "bool" else b.dtype
    return promoted([a.dtype, b.dtype])


def _logical(op: str) -> Rule:
    return lambda o: apply(op, cast(o.plain(0), "bool"), cast(o.plain(1), "bool"), dtype="bool")


def _logical_not(o: Operands) -> Value:
    return apply("not", cast(o.plain(0), "bool"), dtype="bool")


def _bitwise(op: str) -> Rule:
    """On booleans these are the logical operations."""
    return lambda o: apply(op if o.dtype == "bool" else f"bit{op}", o.value(0), o.value(1))


def _bitwise_not(o: Operands) -> Value:
    return apply("not" if o.dtype == "bool" else "bitnot", o.value(0))


def _clamp(o: Operands) -> Value:
    value = o.value(0)
    if o.given(1, "min"):
        value = apply("max", value, o.value(1) if o.given(1) else o.named("min", 0))
    if o.given(2, "max"):
        value = apply("min", value, o.value(2) if o.given(2) else o.named("max", 0))
    return value


def _where(o: Operands) -> Value:
    return apply("select", cast(o.plain(0), "bool"), o.value(1), o.value(2), dtype=o.dtype)


def _masked_fill(o: Operands) -> Value:
    return apply("select", cast(o.plain(1), "bool"), o.value(2), o.value(0), dtype=o.dtype)


def _pow(o: Operands) -> Value:
    exponent = o.plain(1)
    if isinstance(exponent, Constant) and (found := power(o.value(0), exponent.value)):
        return found
    if not is_float(o.dtype):
        msg = f"no region for {o.node.op} with integers and this exponent"
        raise RegionError(msg)
    return apply("pow", o.value(0), o.value(1))


def _to_copy(o: Operands) -> Value:
    value = cast(o.plain(0), o.dtype)
    stored = o.node.kind.dtype
    narrower = stored != o.dtype and is_float(o.dtype)
    return rounded(value, stored) if narrower else value


def _relu(o: Operands) -> Value:
    return apply("max", o.value(0), number(0, o.dtype))


def _leaky_relu(o: Operands) -> Value:
    x = o.value(0)
    falling = apply("mul", x, like(x, o.scalar(1, "negative_slope", 0.01)))
    return apply("select", _above_zero(x), x, falling, dtype=o.dtype)


def _elu(o: Operands) -> Value:
    x = o.value(0)
    alpha, scale, inner = (
        like(x, o.scalar(i, name, 1))
        for i, name in ((1, "alpha"), (2, "scale"), (3, "input_scale"))
    )
    low = apply("mul", apply("expm1", apply("mul", x, inner)), apply("mul", alpha, scale))
    return apply("select", _above_zero(x), apply("mul", x, scale), low, dtype=o.dtype)


def _softplus(o: Operands) -> Value:
    x = o.value(0)
    beta, threshold = o.scalar(1, "beta", 1), o.scalar(2, "threshold", 20)
    bent = apply("mul", x, like(x, beta))
    soft = apply("div", apply("log1p", apply("exp", bent)), like(x, beta))
    straight = apply("gt", bent, like(x, threshold), dtype="bool")
    return apply("select", straight, x, soft, dtype=o.dtype)


def _hardtanh(o: Operands) -> Value:
    x = o.value(0)
    low, high = like(x, o.scalar(1, "min_val", -1)), like(x, o.scalar(2, "max_val", 1))
    return apply("min", apply("max", x, low), high)


def _addcmul(op: str) -> Rule:
    def rule(o: Operands) -> Value:
        scaled = apply(op, apply("mul", o.value(1), o.named("value", 1)), o.value(2))
        return apply("add", o.value(0), scaled)

    return rule


def _lerp(o: Operands) -> Value:
    step = apply("sub", o.value(1), o.value(0))
    return apply("add", o.value(0), apply("mul", o.value(2), step))


def _above_zero(x: Value) -> Value:
    return apply("gt", x, like(x, 0), dtype="bool")


def _sign(o: Operands) -> Value:
    x = o.value(0)
    below = apply("lt", x, like(x, 0), dtype="bool")
    return apply("sub", cast(_above_zero(x), o.dtype), cast(below, o.dtype))


def _log_base(base: float) -> Rule:
    return lambda o: apply("mul", apply("log", o.value(0)), number(1 / math.log(base), o.dtype))


RULES: Mapping[str, Rule] = {
    **{f"aten.{op}": _unary(op) for op in (
        "neg", "abs", "exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "sin", "cos", "tanh",
        "erf", "floor", "ceil", "round", "trunc",
    )},
    **{f"aten.{op}": _compare(op) for op in ("eq", "ne", "lt", "le", "gt", "ge")},
    **{f"aten.logical_{op}": _logical(op) for op in ("and", "or", "xor")},
    **{f"aten.bitwise_{op}": _bitwise(op) for op in ("and", "or", "xor")},
    **{f"aten.{op}": _to_copy for op in (
        "_to_copy", "clone", "alias", "detach", "lift_fresh_copy",
    )},
    "aten.add": _sum("add"),
    "aten.sub": _sum("sub"),
    "aten.rsub": _reverse_sub,
    "aten.mul": _binary("mul"),
    "aten.div": _div,
    "aten.floor_divide": _floor_divide,
    "aten.remainder": _remainder,
    "aten.maximum": _binary("max"),
    "aten.minimum": _binary("min"),
    "aten.square": lambda o: apply("mul", o.value(0), o.value(0)),
    "aten.reciprocal": lambda o: apply("div", number(1, o.dtype), o.value(0)),
    "aten.exp2": lambda o: apply("exp", apply("mul", o.value(0), number(math.log(2), o.dtype))),
    "aten.log2": _log_base(2),
    "aten.log10": _log_base(10),
    "aten.sigmoid": lambda o: sigmoid(o.value(0)),
    "aten.silu": lambda o: silu(o.value(0)),
    "aten.gelu": lambda o: gelu(o.value(0), tanh=o.node.kwargs.get("approximate") == "tanh"),
    "aten.relu": _relu,
    "aten.leaky_relu": _leaky_relu,
    "aten.elu": _elu,
    "aten.softplus": _softplus,
    "aten.hardtanh": _hardtanh,
    "aten.clamp": _clamp,
    "aten.clamp_min": lambda o: apply("max", o.value(0), o.value(1)),
    "aten.clamp_max": lambda o: apply("min", o.value(0), o.value(1)),
    "aten.where": _where,
    "aten.masked_fill": _masked_fill,
    "aten.logical_not": _logical_not,
    "aten.bitwise_not": _bitwise_not,
    "aten.pow": _pow,
    "aten.sign": _sign,
    "aten.sgn": _sign,
    "aten.isnan": lambda o: apply("ne", o.plain(0), o.plain(0), dtype="bool"),
    "aten.addcmul": _addcmul("mul"),
    "aten.addcdiv": _addcmul("div"),
    "aten.lerp": _lerp,
}  # fmt: skip
"""By the operation's family; overloads differ only in which operands are numbers."""
