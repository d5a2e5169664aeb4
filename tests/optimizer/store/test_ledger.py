"""What was spent is told in full, by search, source and day."""

from datetime import date
from uuid import uuid4

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from optimizer.spending import Spending
from optimizer.store import Cost, Store
from tests.makers import OPERATOR

DAY_S = 86_400
# Quarters: sums of them are exact, in whatever order a database adds.
SECONDS = st.integers(0, 4000).map(lambda quarters: quarters / 4)
SPENDINGS = st.builds(
    Spending, device_s=SECONDS, cpu_s=SECONDS, tokens=st.integers(0, 2**40), money_usd=SECONDS
)
ROWS = st.lists(
    st.tuples(
        st.sampled_from(("g", "h")), st.sampled_from(("trial", "llm")), SPENDINGS, st.integers(0, 3)
    )
)


def open_search(store: Store, goal_key: str = "g", *, operator: str = "scale") -> int:
    digest = OPERATOR.digest
    return store.open_search(
        goal_key, operator=operator, hardware="cpu", operator_digest=digest, now=0
    )


def total(spendings: list[Spending]) -> Spending:
    return sum(spendings, start=Spending())


@given(rows=ROWS)
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_the_ledger_adds_up(store: Store, rows: list[tuple[str, str, Spending, int]]) -> None:
    searches = {key: open_search(store, f"{key} {uuid4()}") for key in ("g", "h")}
    for key, source, spent, day in rows:
        store.spend(searches[key], spent, source=source, now=day * DAY_S)

    costs = [cost for cost in store.costs() if cost.search in searches.values()]

    for key, search in searches.items():
        of_search = total([spent for k, _, spent, _ in rows if k == key])
        assert store.spent(search) == of_search
        assert total([cost.spent for cost in costs if cost.search == search]) == of_search
    for day in range(4):
        of_day = [spent for _, _, spent, d in rows if d == day]
        told = [cost.spent for cost in costs if cost.day == date(1970, 1, 1 + day)]
        assert total(told) == total(of_day)


def test_costs_are_told_by_day_search_and_source(store: Store) -> None:
    search = open_search(store)
    seconds, tokens = Spending(device_s=2, cpu_s=3), Spending(tokens=7, money_usd=0.5)
    store.spend(search, seconds, source="trial", now=DAY_S - 1)
    store.spend(search, seconds, source="trial", now=DAY_S)
    store.spend(search, seconds, source="trial", now=DAY_S + 1)
    store.spend(search, tokens, source="a model", now=DAY_S + 2)

    first = Cost(
        operator="scale",
        hardware="cpu",
        search=search,
        day=date(1970, 1, 1),
        source="trial",
        spent=seconds,
    )
    second = first.model_copy(update={"day": date(1970, 1, 2), "spent": seconds + seconds})
    model = second.model_copy(update={"source": "a model", "spent": tokens})
    assert store.costs() == (first, model, second)
    assert store.costs(since=DAY_S) == (model, second)
