"""The throughput bench on this machine's own processor."""

from pathlib import Path

import pytest

from operator_registry.hardware import HardwareSpec
from optimizer.bench_throughput import bench_throughput
from optimizer.job import ThroughputRequest, ThroughputResult
from optimizer.throughput_table import ThroughputTable

pytestmark = pytest.mark.drill  # the peers of its operator are compiled first


@pytest.fixture(scope="module")
def result(
    tmp_path_factory: pytest.TempPathFactory, state: Path, host: HardwareSpec
) -> ThroughputResult:
    request = ThroughputRequest(
        hardware=host,
        folder=tmp_path_factory.mktemp("throughput"),
        state_folder=state,
        seconds=0.01,
        batch=2,
        commit="abc",
        command="kernelevolve bench throughput",
    )
    return bench_throughput(request, tell=lambda event: None, stopped=lambda: False)


def test_the_last_batch_is_tried_to_its_end(result: ThroughputResult) -> None:
    table = ThroughputTable.from_json(result.file.read_text())

    assert [(row.number, row.outcome) for row in table.rows] == [(1, "passed"), (2, "passed")]
    assert table.rows[0].device_ms
    assert table.summary == result.summary


def test_the_phases_of_a_real_sweep_are_told(result: ThroughputResult) -> None:
    spent = result.summary.seconds_per_trial

    assert all(spent[phase] > 0 for phase in ("cases", "build", "start", "load", "check", "time"))
    assert 0 < result.summary.leased_idle_s_per_trial < result.summary.leased_s_per_trial
    assert "| build |" in result.file.with_suffix(".md").read_text()
