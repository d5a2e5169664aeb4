"""Fitness: best peer's time over the candidate's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.fitness import fitness, hand_back, pick_figure, ratios
from knowledge.outcome import Failed, Passed, PeerTime, WorkloadTime
from tests.makers import make_passed

times = st.floats(min_value=1e-3, max_value=1e3)


def make_time(device_ms: float, call_ms: float, *peers: tuple[str, float, float]) -> WorkloadTime:
    return WorkloadTime(
        workload="w",
        weight=1,
        device_ms=device_ms,
        call_ms=call_ms,
        peers=tuple(PeerTime(name=n, device_ms=d, call_ms=c) for n, d, c in peers),
    )


def test_fitness_is_the_geometric_mean_over_workloads() -> None:
    assert fitness(make_passed(0.5, 0.125)) == pytest.approx(4.0)


def test_what_did_not_pass_has_no_fitness() -> None:
    assert fitness(Failed(stage="build", log="")) == 0


def test_what_was_only_checked_has_no_fitness() -> None:
    assert fitness(Passed(times=())) == 0


def test_the_best_peer_counts_not_the_eager_one() -> None:
    time = make_time(1, 1, ("reference/eager", 4, 4), ("fused/eager", 2, 2))

    assert ratios((time,), "device_ms") == {"w": 2}


def test_a_launch_bound_operator_is_judged_by_its_call() -> None:
    launch_bound = make_time(1, 1, ("reference/eager", 0.01, 0.05))
    busy = make_time(1, 1, ("reference/eager", 1.0, 1.02))

    assert pick_figure((launch_bound,)) == "call_ms"
    assert pick_figure((busy,)) == "device_ms"


def test_workloads_that_lose_are_handed_back() -> None:
    won = make_time(0.5, 0.5, ("reference/eager", 1, 1))
    lost = won.model_copy(update={"workload": "v", "device_ms": 1.03, "call_ms": 1.03})

    assert hand_back((won, lost)) == {"v"}


@given(times, times, st.floats(min_value=0.01, max_value=100))
def test_fitness_does_not_depend_on_the_unit(mine: float, peer: float, factor: float) -> None:
    assert fitness(make_passed(mine, peer_ms=peer)) == pytest.approx(
        fitness(make_passed(mine * factor, peer_ms=peer * factor))
    )
