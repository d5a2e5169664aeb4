"""The whole red team against the real judge."""

from pathlib import Path

import pytest

from operator_registry.hardware import HardwareSpec
from operator_registry.registry import CATALOG, load_registry
from optimizer.errors import RunnerError
from optimizer.job import RedteamRequest
from optimizer.redteam.report import Report
from optimizer.redteam.run import redteam
from optimizer.stop import StoppedError
from optimizer.targets import host_cpu_arch


@pytest.fixture
def host() -> HardwareSpec:
    return load_registry(CATALOG).hardware[f"cpu-{host_cpu_arch()}"]


def run(hardware: HardwareSpec, folder: Path, only: str = "") -> Report:
    request = RedteamRequest(
        hardware=hardware, only=only, folder=folder, commit="c", command="kernelevolve redteam"
    )
    result = redteam(request, tell=lambda _: None, stopped=lambda: False)
    assert result.file is not None
    return Report.from_json(result.file.read_text(encoding="utf-8"))


def test_a_pattern_without_a_kind_is_refused(host: HardwareSpec, tmp_path: Path) -> None:
    with pytest.raises(RunnerError, match="named like 'nothing'"):
        run(host, tmp_path, only="nothing")


@pytest.mark.drill
def test_a_kind_is_tried_unguarded_guarded_and_beside_its_twin(
    host: HardwareSpec, tmp_path: Path
) -> None:
    report = run(host, tmp_path, only="cpu/plan/hard-coded-factor")

    (row,) = report.rows
    assert (row.succeeds, row.caught, row.accepted, row.needed) == (True, True, True, True)
    assert row.guarded.how.startswith("incorrect: y")
    assert "1 kinds of cheats" in (tmp_path / "redteam.md").read_text(encoding="utf-8")


@pytest.mark.drill
def test_a_run_that_was_stopped_goes_on_where_it_was(host: HardwareSpec, tmp_path: Path) -> None:
    told: list[str] = []
    request = RedteamRequest(
        hardware=host,
        only="cpu/plan/hard-coded-factor",
        folder=tmp_path,
        resume=True,
        commit="c",
        command="kernelevolve redteam",
    )

    def stopped() -> bool:
        return len(told) == 1  # after the first attempt

    with pytest.raises(StoppedError):
        redteam(request, tell=told.append, stopped=stopped)
    result = redteam(request, tell=told.append, stopped=lambda: False)

    assert result.faults == ()
    assert len(told) == len({line.partition(": ")[2] for line in told}) == 3
    assert {file.name for file in tmp_path.iterdir()} == {"redteam.json", "redteam.md"}


@pytest.mark.drill
@pytest.mark.timeout(590)
def test_no_cheat_gets_through_and_every_twin_passes(host: HardwareSpec, tmp_path: Path) -> None:
    report = run(host, tmp_path)

    assert report.faults == ()


@pytest.mark.gpu
@pytest.mark.timeout(590)
def test_no_cheat_gets_through_on_a_device(tmp_path: Path) -> None:
    report = run(load_registry(CATALOG).hardware["h200"], tmp_path)

    assert report.faults == ()
