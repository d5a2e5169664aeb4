"""A job whose search runs here and whose judge runs on a cluster's host, as the daemon has it."""

import re
import signal
from pathlib import Path

import psutil
import pytest

from daemon.fleet.found import access_of
from daemon.jobs import Jobs, Progress
from operator_registry.registry import CATALOG, load_registry
from optimizer.job import OptimizeRequest, OptimizeResult, TrialEvent
from optimizer.runners.ray import local_cluster
from optimizer.store import Store
from optimizer.targets import host_cpu_arch
from tests.makers import OPERATOR

pytestmark = [pytest.mark.drill, pytest.mark.alone]
_SECRET = re.compile(r"store-of-this-test|KERNELEVOLVE_")


def posts() -> list[psutil.Process]:
    below = psutil.Process().children(recursive=True)
    return [process for process in below if process.name().startswith("ray::Post")]


def test_a_search_on_a_cluster_records_its_trials_here_and_leaves_nothing_there(
    tmp_path: Path,
) -> None:
    hardware = load_registry(CATALOG).hardware[f"cpu-{host_cpu_arch()}"]
    url = f"sqlite:///{tmp_path / 'store-of-this-test.sqlite'}"
    told: list[Progress] = []
    seen: list[str] = []

    def note(event: Progress) -> None:
        told.append(event)
        if not seen:
            seen.extend(" ".join(process.environ().keys()) for process in posts())
            seen.extend(" ".join(process.cmdline()) for process in posts())

    ours = signal.getsignal(signal.SIGTERM)
    with local_cluster({f"{hardware.name}/slot0": 1}) as cluster:
        assert signal.getsignal(signal.SIGTERM) is ours
        (device,) = cluster.devices()
        request = OptimizeRequest(
            operator=OPERATOR,
            hardware=hardware,
            goal_key="goal",
            store_url=url,
            state_folder=tmp_path / "artefacts",
            out_folder=tmp_path / "out",
            budget_s=20,
            device=access_of(device),
        )
        result = Jobs().run("optimize", request, on_progress=note)
        left = posts()

    assert isinstance(result, OptimizeResult)
    trials = [event for event in told if isinstance(event, TrialEvent)]
    assert result.trials == len(trials) > 0
    with Store(url) as store:
        assert sum(store.outcome_counts("goal").values()) == len(trials)
    assert seen
    assert [words for words in seen if _SECRET.search(words)] == []
    assert [process for process in left if process.is_running() and _is_alive(process)] == []


def _is_alive(process: psutil.Process) -> bool:
    try:
        process.wait(20)
    except psutil.TimeoutExpired:
        return True
    return False
