"""Cheaper forms of a region's values, equal up to the last place."""

from dataclasses import replace

from optimizer.propose.synthesis.arithmetic import apply, like
from optimizer.propose.synthesis.dtypes import is_float
from optimizer.propose.synthesis.emission import Depth, depth_of
from optimizer.propose.synthesis.regions import LoopRegion
from optimizer.propose.synthesis.value import Apply, Value, rewrite, walk

_STEPS = frozenset({"floor", "ceil", "trunc", "round", "lt", "le", "gt", "ge", "eq", "ne"})
"""Operations whose result can jump where an operand moves by one unit in its last place."""


def simplify(region: LoopRegion) -> LoopRegion:
    """Return the region with divisions by what is one number a row made products.

    Left alone where the region compares or rounds: there a last place can decide.
    """
    values = walk(*(store.value for store in region.stores))
    if any(isinstance(v, Apply) and (v.op in _STEPS or _to_whole(v)) for v in values):
        return region
    known: dict[Value, Value] = {}
    stores = tuple(
        replace(store, value=rewrite(store.value, _multiplied, known=known))
        for store in region.stores
    )
    return replace(region, stores=stores)


def _to_whole(value: Apply) -> bool:
    return value.op == "cast" and not is_float(value.dtype) and is_float(value.args[0].dtype)


def _multiplied(value: Value) -> Value:
    if not (isinstance(value, Apply) and value.op == "div" and is_float(value.dtype)):
        return value
    above, below = value.args
    if depth_of(above) != Depth.ELEMENT or depth_of(below) == Depth.ELEMENT:
        return value
    return apply("mul", above, apply("div", like(below, 1), below), hint=value.hint)
