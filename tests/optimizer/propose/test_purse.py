"""No question can cost more than is left, and a count without a tokenizer errs on the safe side."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimizer.propose.gauge import Gauge, weigh
from optimizer.propose.model import ModelSettings, Usage
from optimizer.propose.purse import LEAST_REPLY, Hold, Purse
from optimizer.spending import Allowance, Spending

URL: Final = "http://127.0.0.1:1/v1"
TOKENS = st.integers(0, 100_000)
PRICES = st.floats(0, 100)


def make(**settings: object) -> Purse:
    return Purse(ModelSettings.model_validate({"url": URL, "name": "m", **settings}))


@given(
    left=st.integers(0, 50_000),
    cap=st.integers(1, 50_000),
    wishes=st.lists(st.tuples(TOKENS, st.integers(16, 8192)), max_size=8),
)
def test_all_that_is_held_at_once_fits_in_the_tokens_left(
    left: int, cap: int, wishes: list[tuple[int, int]]
) -> None:
    purse = make(search_tokens=cap)
    purse.open(Allowance(tokens=left))

    held = [purse.hold(*wish) for wish in wishes]

    assert sum(hold.usage.tokens for hold in held if hold) <= min(left, cap)


@given(
    left_usd=st.floats(0, 10),
    usd_in=PRICES,
    usd_out=PRICES,
    wishes=st.lists(st.tuples(TOKENS, st.integers(16, 8192)), max_size=8),
)
def test_all_that_is_held_at_once_fits_in_the_money_left(
    left_usd: float, usd_in: float, usd_out: float, wishes: list[tuple[int, int]]
) -> None:
    purse = make(usd_in=usd_in, usd_out=usd_out, search_usd=3.0)
    purse.open(Allowance(money_usd=left_usd))

    held = [purse.hold(*wish) for wish in wishes]

    cost = sum(purse.cost(hold.usage).money_usd for hold in held if hold)
    assert cost <= min(left_usd, 3.0) + 1e-9


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 500)), max_size=20))
def test_a_run_of_exchanges_never_passes_the_cap(usages: list[tuple[int, int]]) -> None:
    """As long as a server keeps to what it is asked, that is."""
    purse = make(search_tokens=5000)
    for prompt, reply in usages:
        if (hold := purse.hold(500, 500)) is None:
            break
        used = Usage(prompt_tokens=prompt, reply_tokens=min(reply, hold.reply_tokens))
        purse.settle(hold, used, source="m")

    assert purse.spent.tokens <= 5000


def test_a_reply_gets_what_is_left() -> None:
    purse = make()
    purse.open(Allowance(tokens=1000))

    assert purse.hold(900, 8192) == Hold(900, 100)
    assert purse.hold(0, 8192) is None


def test_nothing_is_asked_for_a_reply_that_would_hold_nothing() -> None:
    purse = make(search_tokens=100)

    assert purse.hold(100 - LEAST_REPLY + 1, 500) is None
    assert purse.hold(100 - LEAST_REPLY, 500) is not None


def test_what_was_spent_before_a_restart_counts() -> None:
    purse = Purse(ModelSettings(url=URL, name="m", search_tokens=1000), spent=Spending(tokens=990))

    assert purse.hold(1, 500) is None


def test_each_source_is_told_its_own_spending_once() -> None:
    purse = make(usd_in=1.0, usd_out=10.0)
    for source, reply in (("a", 100), ("b", 200), ("a", 300)):
        hold = purse.hold(1000, reply)
        assert hold is not None
        purse.settle(hold, hold.usage, source=source)

    assert purse.take("a") == Spending(tokens=2400, money_usd=0.006)
    assert purse.take("a") == Spending()
    assert purse.take("b") == Spending(tokens=1200, money_usd=0.003)


def test_what_the_ledger_does_not_know_yet_is_not_granted_again() -> None:
    made = ModelSettings(url=URL, name="m")
    purse = Purse(made, spent=Spending(tokens=900), owed={"m": Spending(tokens=600)})

    # The ledger knows of 300 of the 900, so that of an allowance of 1000 it says 700 are left.
    purse.open(Allowance(tokens=700))

    assert purse.left_tokens == 100
    assert purse.take("m") == Spending(tokens=600)


def test_free_models_are_not_held_back_by_money() -> None:
    purse = make()
    purse.open(Allowance(money_usd=0.0))

    assert purse.hold(100, 500) == Hold(100, 500)


@given(st.text(), st.floats(0, 1e5), st.integers(0, 10_000))
def test_a_bound_is_never_below_an_estimate_or_beyond_a_token_a_byte(
    text: str, seen_weight: float, seen_tokens: int
) -> None:
    gauge = Gauge().after(seen_weight, seen_tokens)
    size_bytes = len(text.encode())

    assert gauge.bound(size_bytes, weigh(text)) <= size_bytes + 256
    assert gauge.bound(size_bytes, weigh(text)) >= min(size_bytes, gauge.estimate(weigh(text)))
    assert Gauge().bound(size_bytes, weigh(text)) == size_bytes + 256


@given(st.text(), st.text())
def test_weights_add_up(one: str, other: str) -> None:
    assert weigh(one + other) == pytest.approx(weigh(one) + weigh(other))


def test_a_digit_weighs_more_than_a_letter() -> None:
    assert weigh("1234") > 5 * weigh("word")


def test_a_count_that_comes_back_corrects_the_next_estimate() -> None:
    gauge = Gauge().after(1000, 800)

    assert Gauge().estimate(1000) == 1150
    assert gauge.estimate(1000) == 920
    assert gauge.after(1000, 10).estimate(1000) == 920


def test_a_server_that_counts_next_to_nothing_is_not_believed() -> None:
    assert Gauge().after(100_000, 1).estimate(1000) == 345
