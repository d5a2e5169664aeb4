"""Where the worker's clock and the judge's disagree, and what went on beside a measurement."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from optimizer.evaluate.conditions import Glance, describe, glance, read_state
from optimizer.evaluate.faults import Clocks, describe_disturbance, find_faults
from optimizer.evaluate.guards import ALL_UP, Guard, Guards, without
from optimizer.evaluate.protocol import CANDIDATE
from optimizer.evaluate.summary import TWIN, Measured, Reading

PEER = "reference/eager"


def reading(
    ms: float, *, faults: int = 0, preemptions: int = 0, late_ms: float = 0.0, dry: int = 0
) -> Reading:
    return Reading(ms, ms, faults, ms + 0.2, late_ms, preemptions, dry=dry)


def faults_of(  # noqa: PLR0913 - what may be at fault
    bursts: Sequence[Mapping[str, float]],
    *,
    host: bool,
    mine: Sequence[Reading] = (),
    theirs: Sequence[Reading] = (),
    impossible_below_ms: float = 0.0,
    guards: Guards = ALL_UP,
) -> list[str]:
    measured = Measured(
        workload="w",
        sizes={},
        dtypes={},
        weight=1.0,
        roofline_ms=None,
        impossible_below_ms=impossible_below_ms,
        handed_back=False,
        error=0.0,
        reference_error=0.0,
    )
    pairs = [{"w": {CANDIDATE: mine or [reading(1.0)] * 3, PEER: theirs or [reading(2.0)] * 3}}] * 2
    clocks = Clocks(host=host, bursts=bursts)
    return list(find_faults(pairs, measured, PEER, clocks=clocks, guards=guards))


def test_calls_that_take_longer_in_a_row_than_alone_hide_work() -> None:
    (fault,) = faults_of([{CANDIDATE: 2.5}] * 2, host=True)

    assert "in a row of calls" in fault
    assert faults_of([{CANDIDATE: 2.5}] * 2, host=True, guards=without({Guard.JUDGE_CLOCK})) == []


def test_calls_that_work_only_where_their_outputs_are_compared_are_not_believed() -> None:
    idle, compared = Reading(0.01, 0.01, 0, 0.1), Reading(0.01, 0.01, 0, 4.0, checked=1)

    (fault,) = faults_of([], host=True, mine=[idle] * 9 + [compared] * 4)

    assert "where its outputs are compared" in fault
    assert faults_of([], host=True, mine=[idle] * 12 + [replace(idle, checked=1)]) == []


def test_a_flush_that_takes_no_time_is_none() -> None:
    soon, late = (Reading(1, 1, 0, 1.2, armed_ms=ms) for ms in (0.1, 9.0))

    (fault,) = faults_of([], host=True, mine=[soon] * 3, theirs=[late] * 3)

    assert "the caches are flushed in 0.1 ms" in fault
    assert faults_of([], host=True, mine=[late] * 3, theirs=[late] * 3) == []


def test_calls_that_are_quicker_in_a_row_are_as_they_should_be() -> None:
    assert faults_of([{CANDIDATE: 0.8, TWIN: 1.9}] * 2, host=True) == []


def test_one_disturbed_row_of_calls_is_no_fault() -> None:
    assert faults_of([{CANDIDATE: 9.0}, {CANDIDATE: 0.8}, {CANDIDATE: 0.9}], host=True) == []


def test_events_that_show_a_gain_where_rows_of_calls_show_a_loss_are_not_believed() -> None:
    bursts = [{CANDIDATE: 1.5, TWIN: 0.4}] * 2

    (fault,) = faults_of(bursts, host=False)

    assert "faster" in fault
    assert faults_of(bursts, host=False, mine=[reading(3.0)] * 3) == []


def test_a_time_below_the_floor_is_not_believed() -> None:
    assert faults_of([], host=True, impossible_below_ms=1.5)
    assert not faults_of([], host=True, impossible_below_ms=1.5, guards=without({Guard.FLOOR}))


def test_the_worst_workload_is_told() -> None:
    calm = {CANDIDATE: [reading(1)] * 2, PEER: [reading(1)] * 2}
    busy = {
        CANDIDATE: [reading(1, faults=9, preemptions=1, late_ms=0.5, dry=1), reading(1, faults=9)],
        PEER: [reading(1), reading(1)],
    }

    found = describe_disturbance([{"a": calm, "b": busy}], {"a": PEER, "b": PEER})

    assert found == {
        "page_faults": (9.0, 0.0),
        "disturbed": (0.5, 0.0),
        "dry": (0.5, 0.0),
        "late_ms": 0.25,
    }


def test_a_device_tells_its_clocks_and_why_it_is_slow() -> None:
    state = read_state("1980, 2619, 41, 0x0000000000000024")

    assert state is not None
    assert (state.sm_mhz, state.memory_mhz, state.celsius) == (1980, 2619, 41)
    assert state.slowed_by == ("power cap", "thermal (software)")


def test_a_device_that_tells_nothing_is_no_fault() -> None:
    assert read_state("[N/A], [N/A], 41, [N/A]") is None
    assert read_state("") is None


def test_a_glance_at_a_processor_is_its_load() -> None:
    seen = describe(glance("cpu"), glance("cpu"))

    assert min(seen.load) >= 0
    assert seen.device == ()
    assert seen.other_processes is None


def test_others_on_the_device_are_told_if_they_were_there_at_either_end() -> None:
    assert describe(Glance(0, None, 2), Glance(0, None, 0)).other_processes == 2
