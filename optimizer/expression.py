"""Integer and scalar expressions of a launch plan: sizes, tunables and a few functions."""

import ast
import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import CodeType

Size = int | tuple[int, ...]
"""One size, or one for each member of a list of tensors."""


class ExpressionError(ValueError):
    """The text is no expression of this language, or it names something unknown."""


def cdiv(a: int, b: int) -> int:
    """Return a / b rounded up."""
    return -(-a // b)


def next_power_of_2(a: int) -> int:
    """Return the least power of two that is at least a (and at least 1)."""
    return 1 << max(0, a - 1).bit_length()


def total(sizes: Size) -> int:
    """Return the sum over the members of a list axis."""
    return sizes if isinstance(sizes, int) else sum(sizes)


def largest(sizes: Size) -> int:
    """Return the greatest size among the members of a list axis; 0 for none."""
    return sizes if isinstance(sizes, int) else max(sizes, default=0)


FUNCTIONS: Mapping[str, Callable[..., object]] = {
    "cdiv": cdiv,
    "next_power_of_2": next_power_of_2,
    "min": min,
    "max": max,
    "total": total,
    "largest": largest,
    "log2": lambda a: max(0, math.ceil(math.log2(a))) if a > 0 else 0,
}
_LONGEST = 4000
"""Characters of an expression."""
_LARGEST = 2**63
"""No size is larger. A plan is foreign: squares of squares must not fill the judge's memory."""
_ALLOWED = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.IfExp, ast.Compare, ast.Call, ast.Name, ast.Load,
    ast.Constant, ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.USub,
    ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq,
)  # fmt: skip


def evaluate(text: str, names: Mapping[str, object]) -> object:
    """Return the value of an expression; a bare name returns whatever the name stands for.

    Raises:
        ExpressionError: Not of this language, or an unknown name.
    """
    code, used = _compiled(text)
    if unknown := sorted(used - names.keys()):
        msg = f"{text!r} names {', '.join(unknown)}; known are {', '.join(sorted(names))}"
        raise ExpressionError(msg)
    try:
        # Only whitelisted syntax reaches this point: no attribute, no subscript, no builtin.
        value = eval(code, {"__builtins__": {}, **FUNCTIONS}, dict(names))  # noqa: S307
    except (ArithmeticError, TypeError) as error:
        msg = f"{text!r} has no value here: {error}"
        raise ExpressionError(msg) from error
    if isinstance(value, int) and not -_LARGEST <= value < _LARGEST:
        msg = f"{text!r} does not fit in 64 bits"
        raise ExpressionError(msg)
    return value


def integer(text: str, names: Mapping[str, object]) -> int:
    """Return the value of an expression that must be an integer.

    Raises:
        ExpressionError: Not an integer.
    """
    value = evaluate(text, names)
    if isinstance(value, bool) or not isinstance(value, int):
        msg = f"{text!r} is {value!r}, not an integer"
        raise ExpressionError(msg)
    return value


def names_in(text: str) -> frozenset[str]:
    """Return the names (not functions) that an expression uses.

    Raises:
        ExpressionError: Not of this language.
    """
    return _compiled(text)[1]


@lru_cache(maxsize=4096)
def _compiled(text: str) -> tuple[CodeType, frozenset[str]]:
    if len(text) > _LONGEST:
        msg = f"an expression has {len(text)} characters, at most {_LONGEST} are read"
        raise ExpressionError(msg)
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        msg = f"{text!r} is no expression"
        raise ExpressionError(msg) from error
    called = set()
    for node in ast.walk(tree):
        if not isinstance(node, _ALLOWED):
            msg = f"{text!r}: {type(node).__name__} is not allowed; use + - * // % and functions"
            raise ExpressionError(msg)
        if isinstance(node, ast.Call):
            if (
                not isinstance(node.func, ast.Name)
                or node.func.id not in FUNCTIONS
                or node.keywords
            ):
                msg = f"{text!r}: callable are only {', '.join(FUNCTIONS)}"
                raise ExpressionError(msg)
            called.add(node.func)
        if isinstance(node, ast.Constant) and type(node.value) not in (int, float, bool):
            msg = f"{text!r}: {node.value!r} is no number"
            raise ExpressionError(msg)
    names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and n not in called}
    return compile(tree, "<plan>", "eval"), frozenset(names)
