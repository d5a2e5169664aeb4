"""Work outside a call: seen by the wait behind it, by a profiler, by a count of threads."""

import os
import subprocess
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimizer.evaluate.census import Census, take_census
from optimizer.evaluate.conduct import busy_us, find_late, find_lingering, find_unseen
from optimizer.evaluate.guards import ALL_UP, Guard, without
from optimizer.evaluate.summary import Reading
from optimizer.profilers.trace import Activity, Trace

CALM, ONE_MORE = (Census(1, 4), Census(1, 4)), (Census(1, 4), Census(1, 5))


def reading(*, device_ms: float = 1.0, late_ms: float = 0.0) -> Reading:
    return Reading(device_ms, device_ms, 0, device_ms, late_ms=late_ms)


def make_trace(*spans: tuple[float, float], window: tuple[float, float] = (0, 1000)) -> Trace:
    activities = tuple(
        Activity(name=f"k{n}", stream=n, begin_us=begin, took_us=end - begin)
        for n, (begin, end) in enumerate(spans)
    )
    return Trace(activities=activities, window_us=window)


def test_a_device_that_goes_on_after_the_end_event_is_a_cheat_of_a_side_stream() -> None:
    late = [reading(late_ms=0.5)] * 4 + [reading()] * 3

    found = find_late(late, ALL_UP)

    assert found is not None
    assert found.guard == Guard.SYNC
    assert find_late(late, without({Guard.SYNC})) is None


def test_a_late_wait_now_and_then_is_none() -> None:
    assert find_late([reading(late_ms=5.0)] * 3 + [reading()] * 4, ALL_UP) is None


def test_a_profiled_call_that_takes_far_longer_than_its_events_hides_work() -> None:
    trace = make_trace((0, 100), (50, 400))

    found = find_unseen(trace, 0.1, ALL_UP)

    assert found is not None
    assert found.guard == Guard.SPAN
    assert find_unseen(trace, 0.4, ALL_UP) is None
    assert find_unseen(trace, 0.1, without({Guard.SPAN})) is None


def test_work_behind_the_window_of_a_call_is_outside_it() -> None:
    found = find_unseen(make_trace((900, 1200)), 1.0, ALL_UP)

    assert found is not None
    assert "outside" in found.detail


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=8))
def test_time_on_several_streams_counts_once(pairs: list[tuple[int, int]]) -> None:
    spans = [(min(pair), max(pair)) for pair in pairs]
    covered = {us for begin, end in spans for us in range(begin, end)}

    assert busy_us(make_trace(*((float(b), float(e)) for b, e in spans))) == len(covered)


def test_threads_that_outlive_most_calls_are_a_cheat() -> None:
    found = find_lingering([ONE_MORE] * 4 + [CALM] * 5, ALL_UP)

    assert found is not None
    assert found.guard == Guard.THREADS
    assert find_lingering([ONE_MORE] * 9, without({Guard.THREADS})) is None


def test_a_thread_that_is_seen_ending_now_and_then_is_none() -> None:
    assert find_lingering([ONE_MORE] * 3 + [CALM] * 6, ALL_UP) is None
    assert find_lingering([], ALL_UP) is None


def test_a_census_counts_threads_and_all_processes_below() -> None:
    before, done = take_census(os.getpid()), threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    during = take_census(os.getpid())
    done.set()
    thread.join()
    child.communicate(b"\n")

    assert during.processes == before.processes + 1
    assert during.excess(before) >= 2


@pytest.mark.parametrize("pid", [2**22 + 1])
def test_a_process_that_has_gone_counts_nothing(pid: int) -> None:
    assert take_census(pid) == Census(0, 0)
