import json
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.bot import open_store
from daemon.cli.main import main
from daemon.costs import sum_up
from daemon.settings import Settings
from optimizer.spending import Spending
from optimizer.store import Cost

# Quarters: sums of them are exact, in whatever order.
AMOUNTS = st.integers(0, 4000).map(lambda quarters: quarters / 4)
COSTS = st.lists(
    st.builds(
        Cost,
        operator=st.sampled_from(("softmax", "gelu")),
        hardware=st.sampled_from(("cpu", "h200")),
        search=st.integers(1, 5),
        day=st.dates(date(2026, 1, 8), date(2026, 1, 11)),
        source=st.sampled_from(("trial", "confirm", "a model")),
        spent=st.builds(
            Spending,
            device_s=AMOUNTS,
            cpu_s=AMOUNTS,
            tokens=st.integers(0, 10**9),
            money_usd=AMOUNTS,
        ),
    ),
    max_size=30,
)


@given(COSTS)
def test_every_way_of_summing_up_gives_the_total(costs: list[Cost]) -> None:
    summed = sum_up(costs)

    total = sum((cost.spent for cost in costs), start=Spending())
    assert summed.total == total
    for parts in (summed.searches, summed.operators, summed.days, summed.sources):
        assert sum((part.spent for part in parts), start=Spending()) == total
    assert list(summed.days) == sorted(summed.days, key=lambda cost: cost.day)


@pytest.fixture
def spent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELEVOLVE_STATE", str(tmp_path))
    with open_store(Settings.load()) as store:
        search = store.open_search(
            "g", operator="softmax", hardware="cpu", operator_digest="0" * 64, now=0
        )
        trial, model = Spending(device_s=2.5, cpu_s=4), Spending(tokens=1200, money_usd=0.25)
        store.spend(search, trial, source="trial", now=0)
        store.spend(search, model, source="a model", now=86_400)


@pytest.mark.usefixtures("spent")
def test_costs_are_shown_by_search_source_and_day(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--costs"]) == 0

    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    figures = ["2.5", "s", "4.0", "s", "1,200", "$0.2500"]
    assert ["softmax", "on", "cpu,", "search", "1", *figures] in lines
    assert ["by", "day:", "1970-01-02", "0.0", "s", "0.0", "s", "1,200", "$0.2500"] in lines
    assert ["in", "all", *figures] in lines


@pytest.mark.usefixtures("spent")
def test_scripts_read_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--costs", "--json"]) == 0

    told = json.loads(capsys.readouterr().out)
    assert told["total"] == {"device_s": 2.5, "cpu_s": 4.0, "tokens": 1200, "money_usd": 0.25}
    assert [cost["source"] for cost in told["sources"]] == ["a model", "trial"]


def test_nothing_was_spent_in_a_new_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KERNELEVOLVE_STATE", str(tmp_path))

    assert main(["status", "--costs"]) == 0

    assert capsys.readouterr().out == "nothing was spent yet\n"
