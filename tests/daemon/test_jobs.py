import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from daemon.jobs import JobDiedError, JobRefusedError, Jobs, Progress
from operator_registry.registry import CATALOG, load_registry
from optimizer.job import OptimizeRequest, OptimizeResult, TrialEvent
from tests.makers import HARDWARE
from tests.processes import is_running

OPERATOR = load_registry(CATALOG).operators["gelu_bias"]
SCRIPTED = (sys.executable, "-m", "tests.daemon.scripted_job")
ROOT = Path(__file__).parents[2]


def make_request(script: str, folder: Path) -> OptimizeRequest:
    spec = OPERATOR.spec.model_copy(update={"summary": script})
    return OptimizeRequest(
        operator=OPERATOR.model_copy(update={"spec": spec}),
        hardware=HARDWARE,
        goal_key="k",
        store_url="sqlite://",
        state_folder=folder,
        out_folder=folder,
    )


def test_events_come_while_the_job_runs_and_the_result_last(tmp_path: Path) -> None:
    seen: list[Progress] = []

    result = Jobs(SCRIPTED).run(
        "optimize", make_request("trial 1; trial 2", tmp_path), on_progress=seen.append
    )

    assert [event.number for event in seen if isinstance(event, TrialEvent)] == [1, 2]
    assert isinstance(result, OptimizeResult)
    assert result.message == "finished"


def test_a_job_learns_no_setting_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELEVOLVE_GITHUB_TOKEN", "ghp_secret")
    file = tmp_path / "names"

    Jobs(SCRIPTED).run("optimize", make_request(f"environment {file}", tmp_path))

    names = file.read_text(encoding="utf-8").split()
    assert "PATH" in names
    assert not [name for name in names if name.startswith("KERNELEVOLVE_")]


def test_noise_on_the_output_harms_nothing(tmp_path: Path) -> None:
    request = make_request("say hello {; trial 1", tmp_path)

    assert Jobs(SCRIPTED).run("optimize", request) is not None


def test_a_job_that_refuses_says_why(tmp_path: Path) -> None:
    with pytest.raises(JobRefusedError, match=r"no graph \(CaptureError\)"):
        Jobs(SCRIPTED).run("optimize", make_request("refuse", tmp_path))


def test_a_job_that_dies_leaves_its_last_words(tmp_path: Path) -> None:
    with pytest.raises(JobDiedError, match=r"exit code 3\): out of memory"):
        Jobs(SCRIPTED).run("optimize", make_request("crash", tmp_path))


def test_a_job_that_is_told_to_stop_hands_over_what_it_has(tmp_path: Path) -> None:
    seen: list[Progress] = []

    result = Jobs(SCRIPTED).run(
        "optimize",
        make_request("trial 1; sleep 60", tmp_path),
        on_progress=seen.append,
        keep_going=lambda: not seen,
    )

    assert isinstance(result, OptimizeResult)
    assert result.message == "stopped"


def test_a_job_that_does_not_listen_is_killed(tmp_path: Path) -> None:
    seen: list[Progress] = []

    result = Jobs(SCRIPTED, grace_s=0.3).run(
        "optimize",
        make_request("deaf", tmp_path),
        on_progress=seen.append,
        keep_going=lambda: not seen,
    )

    assert result is None


def test_a_killed_job_takes_its_sandboxes_along(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    seen: list[Progress] = []

    Jobs(SCRIPTED, grace_s=0.3).run(
        "optimize",
        make_request(f"child {pids}; deaf", tmp_path),
        on_progress=seen.append,
        keep_going=lambda: not seen,
    )

    assert not alive(pids)


@pytest.mark.parametrize("end", ["better 2.0", "crash"])
def test_a_job_that_ends_by_itself_leaves_nothing_running(tmp_path: Path, end: str) -> None:
    pids = tmp_path / "pids"

    with contextlib.suppress(JobDiedError):
        Jobs(SCRIPTED).run("optimize", make_request(f"child {pids}; {end}", tmp_path))

    assert not alive(pids)


def test_a_job_dies_with_the_daemon(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    request = tmp_path / "request.json"
    request.write_text(make_request(f"child {pids}; sleep 60", tmp_path).to_json())
    program = (
        "import sys; from daemon.jobs import Jobs; from optimizer.job import OptimizeRequest; "
        f"Jobs({SCRIPTED!r}).run('optimize', OptimizeRequest.from_json(sys.stdin.read()))"
    )
    with request.open() as stdin:
        daemon = subprocess.Popen([sys.executable, "-c", program], stdin=stdin, cwd=ROOT)
    wait_until(pids.exists)
    wait_until(lambda: bool(pids.read_text()))
    job = int(pids.read_text().split()[0])

    os.kill(daemon.pid, signal.SIGKILL)
    daemon.wait()

    wait_until(lambda: not is_running(job))
    os.kill(int(pids.read_text().split()[1]), signal.SIGKILL)


def alive(pids: Path) -> list[int]:
    return [pid for pid in map(int, pids.read_text().split()) if is_running(pid)]


def wait_until(condition: object) -> None:
    assert callable(condition)
    for _ in range(500):
        if condition():
            return
        time.sleep(0.02)
    pytest.fail("it never came to be")
