"""A few points of a space through the real judge, on this machine's own processor."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from knowledge.outcome import Passed
from operator_registry.registry import CATALOG, load_registry
from optimizer.job import LandscapesRequest
from optimizer.landscapes.landscape import load_landscape
from optimizer.landscapes.recording import bench_landscapes
from optimizer.targets import host_cpu_arch

pytestmark = pytest.mark.drill

ROOT = Path(__file__).parents[3]
HOST = load_registry(CATALOG).hardware[f"cpu-{host_cpu_arch()}"]
NAME = "cpu-product-square"


def make_request(folder: Path, state: Path, *, points: int | None) -> LandscapesRequest:
    return LandscapesRequest(
        hardware=HOST, folder=folder, state_folder=state, only=NAME, points=points, commit="abc"
    )


def test_twelve_points_are_checked_and_timed_once(tmp_path: Path, state: Path) -> None:
    request = make_request(tmp_path, state, points=12)

    bench_landscapes(request, tell=lambda event: None, stopped=lambda: False)

    landscape = load_landscape(tmp_path / f"{NAME}.json")
    tried = [place for place in range(landscape.size) if place not in landscape.missing]
    assert len(tried) == 12
    assert all(isinstance(landscape.outcome(place), Passed) for place in tried)
    assert landscape.baseline is not None
    assert re.fullmatch(r"\w+/eager", landscape.baseline.name)


def test_a_job_that_is_told_to_stop_leaves_a_file_that_can_be_gone_on_with(
    tmp_path: Path, state: Path
) -> None:
    request = make_request(tmp_path, state, points=None)
    job = subprocess.Popen(
        [sys.executable, "-m", "optimizer", "landscapes"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert job.stdin is not None
    assert job.stdout is not None
    job.stdin.write(request.to_json())
    job.stdin.close()
    batches = 0
    for line in job.stdout:
        batches += "of 720" in line
        if batches == 2:
            job.send_signal(signal.SIGTERM)
            break
    assert job.wait(timeout=30) in {0, 3}
    job.stdout.close()

    landscape = load_landscape(tmp_path / f"{NAME}.json")
    assert 0 < len(landscape.missing) < landscape.size
