"""A job that says what its request tells it to: ``python scripted_job.py TASK < request.json``.

The operator's ``summary`` is the script, its words between semicolons:
``say TEXT``, ``trial N``, ``sleep S``, ``deaf``, ``child FILE``, ``crash``, ``refuse``.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from optimizer.job import (
    ErrorEvent,
    OptimizeRequest,
    OptimizeResult,
    PhaseEvent,
    ResultEvent,
    TrialEvent,
)


def main() -> None:
    request = OptimizeRequest.from_json(sys.stdin.read())
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(1))
    for line in request.operator.spec.summary.split(";"):
        word, _, rest = line.strip().partition(" ")
        if word == "say":
            say(rest)
        elif word == "trial":
            tell_trial(int(rest))
        elif word == "sleep":
            until = time.monotonic() + float(rest)
            while time.monotonic() < until and not stopped:
                time.sleep(0.02)
        elif word == "deaf":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            say(PhaseEvent(phase="search").to_json())
            time.sleep(60)
        elif word == "child":
            start_child(Path(rest))
        elif word == "crash":
            sys.stderr.write("out of memory\n")
            os._exit(3)
        elif word == "refuse":
            say(ErrorEvent(error="CaptureError", message="no graph").to_json())
            return
    result = OptimizeResult(
        operator=request.operator.name,
        hardware=request.hardware.name,
        message="stopped" if stopped else "finished",
        verdict=None,
    )
    say(ResultEvent(result=result).to_json())


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def tell_trial(number: int) -> None:
    event = TrialEvent(
        number=number,
        candidate="c" * 64,
        origin="test",
        outcome="passed",
        fitness=1.5,
        best=1.5,
        seconds_left=1.0,
    )
    say(event.to_json())


def start_child(pids: Path) -> None:
    child = subprocess.Popen(["sleep", "60"], start_new_session=True)
    pids.write_text(f"{os.getpid()} {child.pid}", encoding="utf-8")


if __name__ == "__main__":
    main()
