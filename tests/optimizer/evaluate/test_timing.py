"""One sample of one call: what is asked of a clock, without asserting a time."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from optimizer.evaluate.timing import MOST_PRIMING_MS, HostClock, flushes_to_hide, make_clock


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
