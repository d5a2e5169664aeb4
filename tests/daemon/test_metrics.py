from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.pause import pause
from daemon.web.health import Health
from daemon.web.metrics import Metrics
from optimizer.errors import StoreError
from optimizer.store import Backlog, Delivery, Effect, Store
from tests.fakes import FakeClock


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as store:
        store.migrate()
        yield store


def lines(metrics: Metrics) -> list[str]:
    return metrics.render()[0].decode().splitlines()


def make_metrics(store: Store, *, now_s: float = 0.0) -> Metrics:
    return Metrics(store, Health(FakeClock(now_s)), clock=FakeClock(now_s))


def test_what_waits_is_told_with_its_age(store: Store) -> None:
    store.receive(Delivery(id="d", event="push", body="{}", received_at=100.0))
    store.post(Effect(key="e", kind="react", payload="{}"), now=130.0)

    found = lines(make_metrics(store, now_s=160.0))

    assert 'kernelevolve_waiting{what="delivery"} 1.0' in found
    assert 'kernelevolve_oldest_waiting_seconds{what="delivery"} 60.0' in found
    assert 'kernelevolve_oldest_waiting_seconds{what="effect"} 30.0' in found


def test_a_pause_is_a_figure(store: Store) -> None:
    metrics = make_metrics(store)
    before = "kernelevolve_paused 0.0" in lines(metrics)
    pause(store, "a hot day")

    assert before
    assert "kernelevolve_paused 1.0" in lines(metrics)


def test_a_loop_that_is_silent_is_a_figure(store: Store) -> None:
    clock = FakeClock()
    health = Health(clock)
    health.expect("work", within_s=10)
    clock.now_s = 7.0

    found = lines(Metrics(store, health, clock=clock))

    assert 'kernelevolve_loop_silent_seconds{loop="work"} 7.0' in found


def test_a_store_that_is_away_is_a_figure_too(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Store) -> Backlog:
        msg = "no database"
        raise StoreError(msg)

    metrics = make_metrics(store)
    monkeypatch.setattr(Store, "backlog", fail)

    found = lines(metrics)

    assert "kernelevolve_store_up 0.0" in found
    assert "kernelevolve_faults 0.0" in found
    assert not [line for line in found if line.startswith("kernelevolve_waiting")]


def test_rounds_ends_and_failures_are_counted(store: Store) -> None:
    metrics = make_metrics(store)
    metrics.note_round("work", 2.0)
    metrics.count_end("better")
    metrics.count_failure("outbox")
    metrics.count_failure("outbox")

    found = lines(metrics)

    assert 'kernelevolve_round_seconds_count{loop="work"} 1.0' in found
    assert 'kernelevolve_round_seconds_bucket{le="1.0",loop="work"} 0.0' in found
    assert 'kernelevolve_round_seconds_bucket{le="5.0",loop="work"} 1.0' in found
    assert 'kernelevolve_goals_ended_total{verdict="better"} 1.0' in found
    assert 'kernelevolve_failures_total{part="outbox"} 2.0' in found


def test_the_process_itself_is_told_of(store: Store) -> None:
    found = "\n".join(lines(make_metrics(store)))

    for name in ("process_open_fds", "process_resident_memory_bytes", "kernelevolve_children"):
        assert f"\n{name} " in found
