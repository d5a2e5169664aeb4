import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from daemon.bot import open_store
from daemon.cli import bot as cli_bot
from daemon.cli.main import main
from tests.daemon.origins import HERE, SCRIPTED, Origin
from tests.processes import is_running

ROOT = Path(__file__).parents[2]


@pytest.fixture
def origin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Origin:
    origin = Origin(tmp_path)
    monkeypatch.setenv("KERNELEVOLVE_REGISTRY", str(origin.path))
    monkeypatch.setenv("KERNELEVOLVE_STATE", str(origin.settings.state))
    monkeypatch.setattr(cli_bot, "Jobs", lambda: SCRIPTED)
    return origin


def start(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.daemon.scripted_cli", *words],
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    for _ in range(1000):
        if condition():
            return
        if process.poll() is not None:
            pytest.fail(f"it ended: {process.communicate()}")
        time.sleep(0.02)
    pytest.fail("it never came to be")


def test_a_turn_tells_what_it_did(origin: Origin, capsys: pytest.CaptureFixture[str]) -> None:
    origin.add_operator("better 2.0")

    assert main(["run", "--once"]) == 0

    said = capsys.readouterr().out
    assert f"queued: gelu_bias on {HERE}" in said
    assert f"ended: gelu_bias on {HERE}: better 2.00x, pull request #1 opened" in said


def test_a_turn_with_nothing_to_do_says_so(
    origin: Origin, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "--once"]) == 0
    assert "nothing to do" in capsys.readouterr().out


def test_an_error_in_a_turn_exits_1(origin: Origin, capsys: pytest.CaptureFixture[str]) -> None:
    origin.add_operator("crash")

    assert main(["run", "--once"]) == 1
    assert "out of memory" in capsys.readouterr().err


def test_a_pull_request_is_listed_shown_and_closed(
    origin: Origin, capsys: pytest.CaptureFixture[str]
) -> None:
    origin.add_operator("better 2.0")
    main(["run", "--once"])
    capsys.readouterr()

    assert main(["pr", "list"]) == 0
    assert f"gelu_bias: 2.00x faster on {HERE}" in " ".join(capsys.readouterr().out.split())
    assert main(["pr", "show", "1"]) == 0
    assert "A machine wrote this pull request" in capsys.readouterr().out
    assert main(["pr", "close", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "closed"
    assert main(["pr", "show", "2"]) == 2


def test_the_status_tells_what_the_configuration_holds_up(
    origin: Origin, capsys: pytest.CaptureFixture[str]
) -> None:
    origin.commit(".github", {"kernelevolve.yml": "version: 1\nhardware: [nothing]\n"})
    origin.add_operator("better 2.0")
    main(["run", "--once"])
    assert "selects no hardware" in capsys.readouterr().out

    assert main(["status"]) == 0

    assert "selects no hardware" in capsys.readouterr().out


def test_the_status_shows_what_waits_and_what_ended(
    origin: Origin, capsys: pytest.CaptureFixture[str]
) -> None:
    origin.add_operator("better 2.0")
    main(["run", "--once"])
    capsys.readouterr()

    assert main(["status"]) == 0
    assert f"gelu_bias on {HERE}: better 2.00x" in capsys.readouterr().out
    assert main(["status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ended"][0]["end"]["verdict"] == "better"


def test_while_paused_nothing_is_searched(
    origin: Origin, capsys: pytest.CaptureFixture[str]
) -> None:
    origin.add_operator("better 2.0")

    assert main(["pause", "the", "cooling", "failed"]) == 0
    assert main(["run", "--once"]) == 0
    assert "paused: the cooling failed" in capsys.readouterr().out
    assert main(["status"]) == 0
    assert "paused: the cooling failed" in capsys.readouterr().out
    assert main(["pr", "list"]) == 0
    assert "no pull requests" in capsys.readouterr().out

    assert main(["resume"]) == 0
    assert main(["run", "--once"]) == 0
    said = capsys.readouterr().out
    assert "no longer paused: the cooling failed" in said
    assert "pull request #1 opened" in said


def test_a_pause_needs_no_reason_and_a_resume_no_pause(
    origin: Origin, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pause"]) == 0
    assert "paused: no reason given" in capsys.readouterr().out
    assert main(["resume"]) == 0
    assert main(["resume"]) == 0
    assert "nothing is paused" in capsys.readouterr().out


def test_sigterm_ends_a_turn_that_is_told_as_stopped(origin: Origin, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    origin.add_operator(f"note {notes}; sleep 60; better 2.0")
    process = start("run", "--once")
    wait_until(notes.exists, process)

    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=10)

    assert process.returncode == 0
    assert "what was running is handed back" in out
    with open_store(origin.settings) as store:
        (goal,) = store.pending_goals()
    assert goal.holder is None


def test_the_daemon_sees_commits_until_sigterm(origin: Origin, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    os.environ["KERNELEVOLVE_INTERVAL_S"] = "1"
    process = start("serve")
    del os.environ["KERNELEVOLVE_INTERVAL_S"]
    wait_until((origin.settings.state / "registry.git").exists, process)
    origin.add_operator(f"note {notes}; sleep 60; better 2.0")
    wait_until(notes.exists, process)

    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=10)

    assert process.returncode == 0
    events = [json.loads(line)["event"] for line in err.splitlines()]
    assert events[0] == "daemon started"
    assert events[-1] == "daemon stopped"
    assert "search handed back" in events


def test_a_second_daemon_on_the_same_state_is_refused(origin: Origin, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    origin.add_operator(f"note {notes}; sleep 60")
    first = start("run", "--once")
    wait_until(notes.exists, first)

    second = start("run", "--once")
    _, err = second.communicate(timeout=20)

    assert second.returncode == 1
    assert "another kernelevolve works in" in err
    first.send_signal(signal.SIGTERM)
    first.communicate(timeout=10)


@pytest.mark.drill
def test_after_a_sigkill_the_next_turn_goes_on_at_once(origin: Origin, tmp_path: Path) -> None:
    notes, pids = tmp_path / "notes", tmp_path / "pids"
    origin.add_operator(f"child {pids}; note {notes}; sleep 5; better 2.0")
    process = start("run", "--once")
    wait_until(notes.exists, process)

    process.kill()
    process.communicate()
    job, orphan = map(int, pids.read_text().split())
    os.kill(orphan, signal.SIGKILL)  # a stand-in that, unlike the real sandbox, is not tied
    report = start("run", "--once", "--json")
    out, _ = report.communicate(timeout=60)

    assert report.returncode == 0
    assert json.loads(out)["ends"][0]["publication"] == {"kind": "opened", "number": 1}
    assert len(set(notes.read_text().splitlines())) == 1
    assert not is_running(job)
