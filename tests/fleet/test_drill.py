"""Ray with eight logical devices, workers and the scheduler killed: nothing lost, nothing twice."""

from pathlib import Path

import pytest

from daemon.fleet.drill import DEVICES, TRIALS, Stage
from daemon.fleet.drill_report import make_table, write_table
from daemon.fleet.fleet_table import MOST_OVERHEAD_MS, FleetTable
from optimizer.store import Store

GOALS = 100
LEAST_EFFICIENCY = 0.7
"""`kernelevolve bench fleet` asks for 0.85 of a quiet machine; this one may be busy, and then
processes take seconds to start."""


@pytest.mark.drill
def test_a_fleet_whose_workers_and_scheduler_are_killed_loses_nothing(tmp_path: Path) -> None:
    stage = Stage(tmp_path, GOALS)

    killed = stage.play(within_s=500)
    with Store(stage.settings.store_url) as store:
        table = make_table(store, killed, command="drill", commit="")
        devices = store.devices()
    found = table.summary

    assert killed.workers
    assert len(killed.scheduler) == len(killed.took_over) == 1
    assert (found.goals, found.trials) == (GOALS, GOALS * TRIALS)
    assert (found.lost, found.doubled) == (0, 0)
    assert all(row.verdict for row in table.rows)
    assert found.overhead_ms_per_trial < MOST_OVERHEAD_MS
    assert found.efficiency > LEAST_EFFICIENCY
    slots = [device for device in devices if device.hardware == "simulated"]
    assert len(slots) == DEVICES
    assert {device.holder for device in devices} == {None}
    file = write_table(table, tmp_path / "out")
    assert FleetTable.from_json(file.read_text(encoding="utf-8")) == table
