import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import pytest

from daemon.forge import ForgeBusyError, ForgeUnavailableError
from daemon.steward import Duty, Steward
from daemon.web.health import Health
from daemon.web.metrics import Metrics
from optimizer.store import Store
from tests.fakes import FakeClock


@dataclass
class Noted:
    """A part that notes when it ran, and then does as it is told."""

    clock: FakeClock
    act: Callable[[], None] = lambda: None
    ran_at: list[float] = field(default_factory=list)

    def run(self) -> None:
        self.ran_at.append(self.clock.now_s)
        self.act()


@dataclass
class Bench:
    store: Store
    clock: FakeClock = field(default_factory=FakeClock)
    paused: bool = False
    on_hold: bool = False
    may_act: Callable[[], bool] = lambda: True

    def __post_init__(self) -> None:
        """Put what every steward needs beside the clock."""
        self.health = Health(self.clock)
        self.metrics = Metrics(self.store, self.health, clock=self.clock)

    def part(self, act: Callable[[], None] = lambda: None) -> Noted:
        return Noted(self.clock, act)

    def steward(self, *duties: Duty) -> Steward:
        return Steward(
            name="mail",
            duties=duties,
            is_paused=lambda: self.paused,
            is_on_hold=lambda: self.on_hold,
            may_act=self.may_act,
            clock=self.clock,
            health=self.health,
            metrics=self.metrics,
        )

    def rounds(self, steward: Steward, seconds: Sequence[float]) -> None:
        for now_s in seconds:
            self.clock.now_s = now_s
            steward.run_round()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as store:
        store.migrate()
        yield Bench(store)


def fail() -> None:
    msg = "no network"
    raise ForgeUnavailableError(msg)


def wait() -> None:
    msg = "sixty writes this minute"
    raise ForgeBusyError(msg, retry_at=100.0)


def test_duties_are_done_in_order_each_round(bench: Bench) -> None:
    order: list[str] = []
    duties = [Duty(n, bench.part(lambda n=n: order.append(n))) for n in ("intake", "outbox")]  # type: ignore[misc]

    bench.rounds(bench.steward(*duties), [0, 3])

    assert order == ["intake", "outbox"] * 2


def test_a_duty_is_not_done_before_its_time(bench: Bench) -> None:
    part = bench.part()

    bench.rounds(bench.steward(Duty("shepherd", part, every_s=60)), range(0, 130, 10))

    assert part.ran_at == [0, 60, 120]


def test_a_duty_that_fails_does_not_keep_the_others(bench: Bench) -> None:
    other = bench.part()

    bench.rounds(bench.steward(Duty("bad", bench.part(fail)), Duty("good", other)), [0, 3])

    assert other.ran_at == [0, 3]
    assert bench.health.report(paused=False).faults == ("bad",)


def test_a_duty_that_fails_is_tried_again_ever_later_but_not_too_late(bench: Bench) -> None:
    part = bench.part(fail)

    bench.rounds(bench.steward(Duty("outbox", part)), range(200))

    assert part.ran_at == [0, 2, 6, 14, 30, 60, 90, 120, 150, 180]


def test_a_duty_that_goes_well_again_is_no_fault_and_as_quick_as_before(bench: Bench) -> None:
    part = bench.part(fail)
    steward = bench.steward(Duty("outbox", part))
    bench.rounds(steward, range(10))
    part.act = lambda: None

    bench.rounds(steward, range(10, 20))

    assert part.ran_at[-3:] == [17, 18, 19]
    assert bench.health.report(paused=False).faults == ()


def test_too_much_to_do_is_no_fault(bench: Bench) -> None:
    part = bench.part(wait)

    bench.rounds(bench.steward(Duty("outbox", part)), range(4))

    assert part.ran_at == [0, 1, 2, 3]
    assert bench.health.report(paused=False).faults == ()


def test_failures_are_counted(bench: Bench) -> None:
    bench.rounds(bench.steward(Duty("outbox", bench.part(fail))), [0, 2])

    text, _ = bench.metrics.render()
    assert b'kernelevolve_failures_total{part="outbox"} 2.0' in text


def test_while_paused_only_some_duties_are_done(bench: Bench) -> None:
    mail, other = bench.part(), bench.part()
    steward = bench.steward(Duty("intake", mail, while_paused=True), Duty("shepherd", other))
    bench.paused = True
    bench.rounds(steward, [0])
    bench.paused = False
    bench.rounds(steward, [3])

    assert (mail.ran_at, other.ran_at) == ([0, 3], [3])


def test_where_the_configuration_wants_nothing_done_only_some_duties_are(bench: Bench) -> None:
    asking, other = bench.part(), bench.part()
    steward = bench.steward(Duty("onboarding", asking, while_on_hold=True), Duty("board", other))
    bench.on_hold = True
    bench.rounds(steward, [0])
    bench.paused = True
    bench.rounds(steward, [3])

    assert (asking.ran_at, other.ran_at) == ([0], [])


def test_who_has_lost_the_role_does_nothing(bench: Bench) -> None:
    part = bench.part()
    bench.may_act = lambda: False

    bench.rounds(bench.steward(Duty("outbox", part, while_paused=True)), [0])

    assert part.ran_at == []


def test_a_store_that_is_away_is_a_fault_of_the_duty(bench: Bench) -> None:
    part = bench.part()

    def may_act() -> bool:
        fail()
        return True

    bench.may_act = may_act

    bench.rounds(bench.steward(Duty("outbox", part)), [0])

    assert part.ran_at == []
    assert bench.health.report(paused=False).faults == ("outbox",)


@dataclass
class Running:
    """A steward on a thread, with the real clock."""

    steward: Steward
    stop: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        """Start it."""
        self.thread = threading.Thread(
            target=self.steward.run, args=(3600.0,), kwargs={"stop": self.stop}
        )
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it, and see that it does."""
        self.stop.set()
        self.thread.join(5)
        assert not self.thread.is_alive()


def real(bench: Bench, *duties: Duty) -> Steward:
    steward = bench.steward(*duties)
    steward.clock = time.monotonic
    return steward


def test_a_round_begins_at_once_where_somebody_wakes_it(bench: Bench) -> None:
    ran = threading.Semaphore(0)
    steward = real(bench, Duty("intake", bench.part(ran.release)))
    with Running(steward):
        assert ran.acquire(timeout=5)
        steward.wake()
        assert ran.acquire(timeout=1)


def test_at_the_end_only_what_must_be_is_done_once_more(bench: Bench) -> None:
    outbox, other, ran = bench.part(), bench.part(), threading.Event()
    last = Duty("last", bench.part(ran.set))
    duties = (Duty("outbox", outbox, at_the_end=True), Duty("shepherd", other), last)
    with Running(real(bench, *duties)):
        assert ran.wait(5)

    assert (len(outbox.ran_at), len(other.ran_at)) == (2, 1)


def test_a_round_that_is_under_way_is_left_at_the_end(bench: Bench) -> None:
    never = bench.part()
    stop = threading.Event()

    bench.steward(Duty("first", bench.part(stop.set)), Duty("second", never)).run_round(stop=stop)

    assert never.ran_at == []
