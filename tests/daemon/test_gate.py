from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.bot import make_workspace, open_store
from daemon.config.file import Thresholds
from daemon.config.watch import ConfigWatch
from daemon.gate import Gate, find_objection
from daemon.pause import pause
from tests.daemon.origins import Origin
from tests.fakes import FakeClock
from tests.makers import make_candidate, make_evidence

NOON = 1_796_040_000.0  # 2026-11-30 12:00 UTC, a Monday


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    return Origin(tmp_path)


@pytest.fixture
def gate(origin: Origin) -> Iterator[Gate]:
    with open_store(origin.settings) as store:
        config = ConfigWatch(make_workspace(origin.settings), store)
        yield Gate(config, store, FakeClock(NOON))


def configure(origin: Origin, gate: Gate, text: str) -> None:
    origin.commit(".github", {"kernelevolve.yml": f"version: 1\n{text}\n"})
    gate.config.run()


def obstacle(gate: Gate, budget_s: float | None = 600.0) -> str | None:
    return gate.find_obstacle("h200", budget_s=budget_s)


def test_nothing_is_in_the_way_by_default(origin: Origin, gate: Gate) -> None:
    configure(origin, gate, "")

    assert obstacle(gate) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("pause: true", ".github/kernelevolve.yml says `pause: true`"),
        ("hardware: [cpu-*]", "the configuration selects no hardware h200"),
        ("windows: [{cron: '* 13 * * *'}]", "outside of the configuration's windows"),
        (
            "limits: {device_hours_per_day: 0.1}",
            "needs 10 minutes of a device; of today's 6, 6 are left",
        ),
    ],
)
def test_the_configuration_may_be_in_the_way(
    origin: Origin, gate: Gate, text: str, why: str
) -> None:
    configure(origin, gate, text)

    assert obstacle(gate) == why


def test_the_hosts_own_pause_comes_first(origin: Origin, gate: Gate) -> None:
    configure(origin, gate, "pause: true")
    pause(gate.memory, "an incident")

    assert obstacle(gate) == "paused: an incident"


def test_what_is_searched_already_may_be_shown_at_any_time_but_in_a_pause(
    origin: Origin, gate: Gate
) -> None:
    configure(origin, gate, "windows: [{cron: '* 13 * * *'}]\nlimits: {device_hours_per_day: 0}")
    assert obstacle(gate, None) is None

    configure(origin, gate, "pause: true")
    assert obstacle(gate, None) is not None


def test_device_time_adds_up_over_a_day_and_begins_anew_with_the_next(
    origin: Origin, gate: Gate
) -> None:
    configure(origin, gate, "limits: {device_hours_per_day: 0.5}")
    clock = gate.clock
    assert isinstance(clock, FakeClock)
    for key in ("one", "two"):
        with gate.counting(key):
            clock.now_s += 700

    assert obstacle(gate) == "needs 10 minutes of a device; of today's 30, 6.67 are left"

    clock.now_s += 12 * 3600
    assert (gate.spent_s(), obstacle(gate)) == (0.0, None)


def test_a_job_that_fails_has_kept_its_device_busy_too(gate: Gate) -> None:
    clock = gate.clock
    assert isinstance(clock, FakeClock)

    def die() -> None:
        with gate.counting("one"):
            clock.now_s += 30
            msg = "it died"
            raise OSError(msg)

    with pytest.raises(OSError, match="it died"):
        die()

    assert gate.spent_s() == 30


def test_what_ran_elsewhere_is_counted_once_it_is_back(gate: Gate) -> None:
    gate.spend("one", 2.0)
    gate.settle("one", 100.0)
    gate.settle("one", 100.0)

    assert gate.spent_s() == 100.0


def test_a_clock_that_is_set_back_gives_nothing_back(gate: Gate) -> None:
    gate.spend("one", 50.0)
    gate.spend("two", -500.0)

    assert gate.spent_s() == 50.0


def test_the_greater_of_the_two_minimum_gains_is_asked_for(origin: Origin, gate: Gate) -> None:
    configure(origin, gate, "thresholds: {minimum_gain: 1.2}")

    assert [gate.minimum_gain(asked) for asked in (1.05, 1.5)] == [1.2, 1.5]


def test_a_kernel_below_the_threshold_is_not_proposed() -> None:
    evidence = make_evidence(make_candidate())
    low = evidence.ratio.low

    assert find_objection(evidence, Thresholds()) is None
    assert "asks for" in str(find_objection(evidence, Thresholds(minimum_gain=low + 0.01)))


def test_nor_is_one_with_a_workload_that_may_be_slower_than_is_wanted() -> None:
    evidence = make_evidence(make_candidate())
    first = evidence.workloads[0]
    slower = first.model_copy(
        update={"ratio": first.ratio.model_copy(update={"low": 0.985}), "served_by": "one"}
    )
    handed_back = slower.model_copy(update={"served_by": first.peers[0].name})
    strict = Thresholds(largest_regression=0.01)

    with_slower = evidence.model_copy(update={"workloads": (slower,)})
    with_peer = evidence.model_copy(update={"workloads": (handed_back,)})

    assert find_objection(with_slower, Thresholds()) is None
    assert "may be down to 0.985" in str(find_objection(with_slower, strict))
    assert find_objection(with_peer, strict) is None
