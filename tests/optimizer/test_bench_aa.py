"""The A/A bench: what its table says, and one small run with real processes."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.evidence import Interval
from operator_registry.hardware import HardwareSpec
from operator_registry.registry import CATALOG, load_registry
from optimizer.aa_kernel import STEP, slower_work
from optimizer.aa_table import AaRow, AaTable, find_failures, summarise, table
from optimizer.bench_aa import bench_aa
from optimizer.job import AaRequest, PhaseEvent
from optimizer.targets import host_cpu_arch

pytestmark = pytest.mark.alone


def make_row(
    number: int, gain: float = 1.0, *, verdict: str = "unclear", **others: object
) -> AaRow:
    row = AaRow(
        number=number,
        gain=gain,
        minimum_gain=1.0 if gain == 1 else 1.05,
        run="r",
        pairs=(1, -2, 3),
        ratios=(gain * 1.01, gain, gain * 0.99),
        ratio=Interval(low=0.9 * gain, estimate=gain, high=1.1 * gain),
        verdict=verdict,
        device_s=0.1,
        commit="abc",
    )
    return row.model_copy(update=others)


def rows_of(gain: float, *, better: int, trials: int) -> list[AaRow]:
    return [make_row(n, gain, verdict="better" if n < better else "unclear") for n in range(trials)]


def test_false_wins_are_the_wins_of_a_kernel_over_itself() -> None:
    rows = [*rows_of(1.0, better=2, trials=10), *rows_of(1.1, better=9, trials=10)]

    found = summarise(rows)

    assert (found.comparisons, found.false_wins) == (10, 2)
    assert found.power == {"1.10": 0.9}


def test_a_pair_counts_once_whoever_of_it_played_the_candidate() -> None:
    rows = [make_row(0), make_row(1, pairs=(-1, 2, 4)), make_row(2, run="other")]

    assert summarise(rows).process_pairs == 4 + 3


def test_a_slower_second_process_shows_through_the_coin() -> None:
    """In every pair the second process takes 10 % longer, whoever it plays."""
    rows = [make_row(n, pairs=(1, -2, 3), ratios=(1.1, 1 / 1.1, 1.1)) for n in range(5)]

    found = summarise(rows).first_process

    assert found is not None
    assert found.low == pytest.approx(1.1)


@pytest.mark.parametrize(
    ("gain", "better", "kept"),
    [
        (1.0, 3, True), (1.0, 4, False),
        (1.10, 196, True), (1.10, 195, False),
        (1.07, 180, True), (1.07, 179, False),
        (1.05, 1, True), (1.05, 2, False),
    ],
)  # fmt: skip
def test_what_the_judge_promises_is_held_against_it(
    gain: float, better: int, *, kept: bool
) -> None:
    found = summarise(rows_of(gain, better=better, trials=200))

    assert (not list(find_failures(found))) == kept


def test_a_trial_that_took_more_than_two_seconds_of_the_device_is_told() -> None:
    failures = list(find_failures(summarise([make_row(0, device_s=2.5)])))

    assert failures == ["a trial took 2.50 s of device time"]


def test_comparisons_that_could_not_be_won_are_no_proof_of_honesty() -> None:
    rows = [make_row(n, faulty=n < 3) for n in range(100)]

    (failure,) = find_failures(summarise(rows))

    assert failure == "3 of 100 measurements were not trusted, and so could show no win"


@given(st.floats(1, 2), st.floats(0, 5000))
def test_the_slower_side_takes_its_gain_in_work_and_fixed_cost(gain: float, fixed: float) -> None:
    work = slower_work(24000, gain, fixed=fixed)

    assert work % STEP == 0
    assert (work + fixed) / (24000 + fixed) == pytest.approx(gain, abs=STEP / 24000)


@pytest.fixture
def here() -> HardwareSpec:
    return load_registry(CATALOG).hardware[f"cpu-{host_cpu_arch()}"]


@pytest.mark.drill
def test_comparisons_are_measured_by_real_pairs_and_kept(
    here: HardwareSpec, tmp_path: Path
) -> None:
    request = AaRequest(
        hardware=here,
        folder=tmp_path / "out",
        state_folder=tmp_path / "state",
        comparisons=3,
        trials=2,
        pairs=3,
        per_comparison=2,
        rounds=1,
        trial_rounds=2,
        commit="abc",
        command="kernelevolve bench aa",
        shard=(1, 2),
    )
    (tmp_path / "state").mkdir()
    told: list[object] = []
    bench_aa(request, tell=told.append, stopped=lambda: False)
    first = json.loads((request.folder / "aa.json").read_text(encoding="utf-8"))["rows"]
    other = request.model_copy(update={"shard": (2, 2)})

    result = bench_aa(other, tell=told.append, stopped=lambda: False)

    written = AaTable.from_json(result.file.read_text(encoding="utf-8"))
    assert 0 < len(first) < len(written.rows) == 3 + 3 * 2
    assert [
        row.model_dump(mode="json") for row in written.rows if row.run == first[0]["run"]
    ] == first
    assert result.summary.comparisons == 3
    assert result.summary.trials == {"1.05": 2, "1.07": 2, "1.10": 2}
    assert result.file.with_suffix(".md").read_text(encoding="utf-8") == table(written)
    assert all(isinstance(event, PhaseEvent) for event in told)


def test_nothing_is_measured_twice(here: HardwareSpec, tmp_path: Path) -> None:
    rows = (make_row(0),)
    request = AaRequest(
        hardware=here,
        folder=tmp_path,
        state_folder=tmp_path,
        comparisons=1,
        trials=0,
        commit="abc",
        command="c",
    )
    written = AaTable(
        command="c",
        environment=None,
        alpha=0.00025,
        rounds=1,
        trial_rounds=1,
        per_comparison=2,
        summary=summarise(rows),
        rows=rows,
    )
    (tmp_path / "aa.json").write_text(written.to_json(), encoding="utf-8")

    result = bench_aa(request, tell=lambda _: None, stopped=lambda: False)

    assert result.summary.comparisons == 1
