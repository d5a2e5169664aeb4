"""Commands against the clock: a real daemon, real webhooks, and a job that does not listen."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from optimizer.store import Store
from tests.github.stage import OWNER, WRITER, Stage, operator_files
from tests.processes import is_running

ROOT = Path(__file__).parents[2]
_BURST, _BURST_S = 30, 60.0
pytestmark = pytest.mark.drill


class Real(Stage):
    """The stage's code host and settings; the daemon is a process of its own."""

    def start(self) -> None:
        self.clock.now_s = time.time()
        self.github.clock = time.time
        self.settings.state.mkdir(parents=True, exist_ok=True)

    def stop(self) -> None:
        pass


@contextmanager
def serving(stage: Stage) -> Iterator[Path]:
    """Run ``kernelevolve serve``, and have webhooks sent to it; its log is handed out."""
    log = stage.folder / "serve.log"
    mine = {
        **stage.environment,
        "KERNELEVOLVE_LISTEN": "127.0.0.1:0",
        "KERNELEVOLVE_INTERVAL_S": "1",
        "KERNELEVOLVE_LOG": "json",
    }
    command = [sys.executable, "-m", "tests.daemon.scripted_cli", "serve"]
    with log.open("wb") as out:
        process = subprocess.Popen(command, cwd=ROOT, env=os.environ | mine, stdout=out, stderr=out)
    try:
        wait(lambda: '"port"' in log.read_text(), log)
        (port,) = re.findall(r'"port": (\d+)', log.read_text())
        stage.github.hook_url = f"http://127.0.0.1:{port}/webhook"
        yield log
    finally:
        process.kill()
        process.wait()


def wait(condition: Callable[[], bool], log: Path, *, most_s: float = 60.0) -> float:
    """Wait for something, and return how long that took, in seconds."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < most_s, log.read_text()[-6000:]
        time.sleep(0.02)
    return time.monotonic() - began


@pytest.mark.parametrize("manner", ["sleep 120", "deaf"])
def test_it_is_seen_in_five_seconds_and_the_process_is_gone_in_ten(
    tmp_path: Path, manner: str
) -> None:
    pids = tmp_path / "pids"
    with Real(tmp_path) as stage, serving(stage) as log:
        script = f"child {pids}; {manner}; better 2.0"
        stage.github.push("main", operator_files(script), OWNER, base="main")
        issue = stage.github.open_issue(OWNER, "which are slow?")
        wait(lambda: pids.exists() and len(pids.read_text().split()) == 2, log)
        processes = [int(pid) for pid in pids.read_text().split()]
        with Store(stage.settings.store_url) as store:
            (goal,) = store.pending_goals()
            for number in range(15):  # what others want is not done before it
                stage.github.comment(issue, WRITER, f"/status\n{number}")
            began = time.monotonic()
            comment = stage.github.comment(issue, WRITER, f"/stop {goal.key[:8]}")

            wait(lambda: bool(stage.reactions(comment)), log)
            seen_s = time.monotonic() - began
            wait(lambda: not any(map(is_running, processes)), log)
            gone_s = time.monotonic() - began
            (stop,) = (c for c in store.commands(number=issue) if c.comment_id == comment)
            wait(lambda: any(c.id == stop.id for c in store.commands(states=("done",))), log)
            ended = store.find_goal(goal.key)

    sys.stdout.write(f"{manner}: seen after {seen_s:.1f} s, gone after {gone_s:.1f} s\n")
    assert (seen_s < 5, gone_s < 10) == (True, True)
    assert ended is not None
    assert ended.verdict == "stopped"


def test_thirty_commands_of_a_minute_are_each_seen_in_five_seconds(tmp_path: Path) -> None:
    config = "version: 1\nlimits: {commands_per_hour: 100}\n"
    with Real(tmp_path, config=config) as stage, serving(stage) as log:
        issue = stage.github.open_issue(OWNER, "which are slow?")
        wait(lambda: b'"registry read"' in log.read_bytes(), log)
        began = time.monotonic()
        said: dict[int, float] = {}
        seen: dict[int, float] = {}
        while len(seen) < _BURST:
            assert time.monotonic() - began < 2 * _BURST_S, log.read_text()[-6000:]
            if len(said) < _BURST and time.monotonic() - began >= len(said) * _BURST_S / _BURST:
                said[stage.github.comment(issue, WRITER, "/status")] = time.monotonic()
            for comment in said.keys() - seen.keys():
                if stage.reactions(comment):
                    seen[comment] = time.monotonic()
            time.sleep(0.05)

        waits_s = sorted(seen[comment] - said[comment] for comment in said)
        sys.stdout.write(f"seen after {waits_s[0]:.1f} to {waits_s[-1]:.1f} s\n")
        assert waits_s[-1] < 5
        assert stage.github.impatient == []
