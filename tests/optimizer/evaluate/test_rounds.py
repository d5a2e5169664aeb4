"""The rounds of a pair; `optimizer/redteam` shows what becomes of those who cheat in them."""

from operator_registry.registry import CATALOG, load_registry
from optimizer.evaluate.rounds import movable


def test_only_independent_floats_may_stand_in_any_order() -> None:
    operators = load_registry(CATALOG).operators

    assert movable(operators["gelu_bias"].spec, {"T": "bfloat16"}) == (0, 1)
    assert movable(operators["map_id"].spec, {}) == ()
