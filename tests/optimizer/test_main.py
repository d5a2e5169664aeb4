"""Jobs as the daemon starts them: a process, a request on its input, events on its output."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from operator_registry.registry import CATALOG, load_registry
from optimizer.__main__ import main
from optimizer.job import (
    DoctorRequest,
    DoctorResult,
    ErrorEvent,
    OptimizeRequest,
    OptimizeResult,
    PhaseEvent,
    ResultEvent,
    load_event,
)
from optimizer.targets import host_cpu_arch
from tests.makers import OPERATOR

ROOT = Path(__file__).parents[2]
HOST = load_registry(CATALOG).hardware[f"cpu-{host_cpu_arch()}"]
STOP_S = 8.0


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "optimizer", *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ask(task: str, request: str) -> tuple[int, list[object]]:
    """Return a job's exit code and its events."""
    process = start(task)
    out, _ = process.communicate(request)
    return process.returncode, [load_event(line) for line in out.splitlines()]


def test_an_unknown_task_is_misuse_and_says_what_there_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["paint"]) == 2

    assert re.search(r"optimizer (\w+\|)+\w+ <", capsys.readouterr().err)


def test_a_request_that_is_none_is_misuse_and_says_why() -> None:
    code, (event,) = ask("optimize", '{"operator": 1}')

    assert code == 2
    assert isinstance(event, ErrorEvent)
    assert "hardware" in event.message


@pytest.mark.drill
def test_the_doctor_answers() -> None:
    code, (event,) = ask("doctor", DoctorRequest().to_json())

    assert code == 0
    assert isinstance(event, ResultEvent)
    assert isinstance(event.result, DoctorResult)


def test_a_database_that_is_away_is_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    request = make_request(tmp_path).model_copy(
        update={"store_url": f"sqlite:///{tmp_path}/taken/store.db"}
    )

    code, events = ask("optimize", request.to_json())

    assert code == 1
    assert isinstance(events[-1], ErrorEvent)


@pytest.mark.alone
def test_a_job_that_is_asked_to_stop_does_so_in_time_and_can_go_on(tmp_path: Path) -> None:
    process = start("optimize")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(make_request(tmp_path).to_json())
    process.stdin.close()
    assert isinstance(load_event(process.stdout.readline()), PhaseEvent)
    asked_s = time.monotonic()

    process.send_signal(signal.SIGTERM)
    events = [load_event(line) for line in process.stdout]
    process.wait()

    assert time.monotonic() - asked_s < STOP_S
    last = events[-1]
    assert isinstance(last, ResultEvent)
    assert isinstance(last.result, OptimizeResult)
    assert last.result.message == "stopped"
    process.stdout.close()
    if process.stderr is not None:
        process.stderr.close()


def make_request(folder: Path) -> OptimizeRequest:
    return OptimizeRequest(
        operator=OPERATOR,
        hardware=HOST,
        goal_key="g",
        store_url=f"sqlite:///{folder}/store.db",
        state_folder=folder / "state",
        out_folder=folder / "out",
        budget_s=60,
    )
