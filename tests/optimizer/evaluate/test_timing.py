"""One sample of one call: what is asked of a clock, without asserting a time."""

import time
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from optimizer.evaluate.guards import Guard, without
from optimizer.evaluate.memory import Value
from optimizer.evaluate.protocol import Sample
from optimizer.evaluate.timing import (
    MOST_PRIMING_MS,
    Call,
    HostClock,
    flushes_to_hide,
    make_clock,
)
from optimizer.evaluate.worker import Worker

pytestmark = pytest.mark.alone


def test_a_sample_is_one_call() -> None:
    calls = []
    clock = HostClock(1 << 16)

    def call(name: str) -> tuple[torch.Tensor, ...]:
        calls.append(name)
        return (torch.zeros(1),)

    clock.arm()
    clock.warm_up(lambda: call("warm"))
    sample, outputs = clock.fire(lambda: call("timed"), priming=0)

    assert calls == ["warm", "timed"]
    assert sample.device_ms == sample.call_ms > 0
    assert len(outputs) == 1


def test_page_faults_of_the_call_are_counted() -> None:
    clock = HostClock(1 << 16)

    def touch() -> tuple[torch.Tensor, ...]:
        import mmap  # noqa: PLC0415 - new pages, whatever the allocator keeps

        memory = mmap.mmap(-1, 1 << 20)
        memory[::4096] = b"x" * 256
        return (torch.zeros(1),)

    clock.arm()
    sample, _ = clock.fire(touch, priming=0)

    assert sample.faults >= 1


@given(st.floats(0, 100), st.floats(0.001, 1))
def test_flushes_hide_the_host_within_bounds(host_ms: float, flush_ms: float) -> None:
    flushes = flushes_to_hide(host_ms, flush_ms)

    assert flushes >= 1
    assert flushes * flush_ms >= min(host_ms, MOST_PRIMING_MS)
    assert (flushes - 1) * flush_ms <= MOST_PRIMING_MS


@pytest.mark.gpu
def test_the_device_time_of_a_copy_is_far_below_its_call_time() -> None:
    clock = make_clock("cuda", 50_000_000)
    source = torch.ones(1 << 10, device="cuda")

    def call() -> tuple[torch.Tensor, ...]:
        return (source.clone(),)

    priming = clock.calibrate(call)
    clock.arm()
    sample, _ = clock.fire(call, priming=priming)

    assert 0 < sample.device_ms < sample.call_ms


def test_with_the_guard_down_the_caches_stay_warm() -> None:
    cold, warm = HostClock(1 << 16), HostClock(1 << 16, guards=without({Guard.FLUSH}))
    cold.arm()
    warm.arm()

    assert cold._flush.any()  # noqa: SLF001 - nothing else shows what was written
    assert not warm._flush.any()  # noqa: SLF001


def test_many_clocks_may_flush_by_one_file(tmp_path: Path) -> None:
    file = tmp_path / "flush"
    file.write_bytes(bytes(1 << 17))
    clocks = [make_clock("cpu", 1 << 16, flush_file=str(file)) for _ in range(2)]

    for clock in clocks:
        clock.arm()

    assert set(file.read_bytes()) == {2}


@pytest.mark.gpu
def test_work_on_a_side_stream_keeps_the_device_busy_after_the_end_event() -> None:
    clock = make_clock("cuda", 50_000_000)
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call] # torch's
    source = torch.ones(1 << 26, device="cuda")

    def hide() -> tuple[torch.Tensor, ...]:
        with torch.cuda.stream(side):
            return (source.sin().cos().sin(),)

    def stay() -> tuple[torch.Tensor, ...]:
        return (source.sin().cos().sin(),)

    late_ms = {}
    for name, call in (("hide", hide), ("stay", stay)):
        call()
        clock.arm()
        late_ms[name] = [clock.fire(call, priming=1)[0].late_ms for _ in range(5)]

    assert min(late_ms["hide"]) > 0.1
    assert max(late_ms["stay"]) < 0.1


@pytest.mark.gpu
def test_a_call_that_the_device_waited_for_is_told_and_the_next_is_primed_for_it() -> None:
    clock = make_clock("cuda", 50_000_000)
    source = torch.ones(1 << 10, device="cuda")

    def pause() -> tuple[torch.Tensor, ...]:
        time.sleep(2e-3)
        return (source.clone(),)

    pause()
    priming = [1]
    samples = []
    for _ in range(9):
        clock.arm()
        samples.append(clock.fire(pause, priming=priming[-1])[0])
        priming.append(clock.deepen(priming[-1]))

    assert samples[0].dry
    assert samples[0].device_ms > 1
    assert not samples[-1].dry
    assert samples[-1].device_ms < 0.1
    assert priming[-1] == priming[-2]


def test_a_sample_that_was_not_primed_enough_deepens_the_next_of_its_kind() -> None:
    worker = Worker()
    clock = DryClock(enough=4)
    worker._clock, worker._armed = clock, ("case", 0, "reference/eager")  # noqa: SLF001
    worker._calls[worker._armed] = lambda: ()  # noqa: SLF001

    for _ in range(5):
        worker._sample()  # noqa: SLF001

    assert clock.primings == [1, 2, 4, 4, 4]


class DryClock(HostClock):
    """A clock of a device that needs so much priming."""

    def __init__(self, *, enough: int) -> None:
        super().__init__(1 << 10)
        self._enough = enough
        self.primings: list[int] = []

    def deepen(self, priming: int) -> int:
        return 2 * priming

    def fire(self, call: Call, *, priming: int) -> tuple[Sample, tuple[Value, ...]]:
        self.primings.append(priming)
        sample, outputs = super().fire(call, priming=priming)
        return sample.model_copy(update={"dry": priming < self._enough}), outputs
