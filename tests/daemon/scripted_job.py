"""A job that does what its request tells it to: ``python -m tests.daemon.scripted_job TASK``.

The operator's ``summary`` is the script, its words between semicolons: ``say TEXT``, ``trial N``,
``sleep S``, ``deaf``, ``child FILE``, ``crash``, ``refuse``, ``better RATIO``, ``note FILE``,
``incumbent FILE``, ``environment FILE``, ``cores FILE``.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from knowledge.evidence import Better, Evidence, NotBetter
from optimizer.job import (
    ErrorEvent,
    OptimizeRequest,
    OptimizeResult,
    PhaseEvent,
    ResultEvent,
    TrialEvent,
)
from tests.makers import make_candidate, make_evidence

CANDIDATE = make_candidate()


class Script:
    """Does one word after the other."""

    def __init__(self, request: OptimizeRequest) -> None:
        self.request = request
        self.evidence: Evidence | None = None
        self.stopped = False
        signal.signal(signal.SIGTERM, self._stop)

    def run(self) -> None:
        for line in self.request.operator.spec.summary.split(";"):
            word, _, rest = line.strip().partition(" ")
            if known := getattr(self, f"do_{word}", None):
                known(rest)

    def do_say(self, text: str) -> None:
        say(text)

    def do_trial(self, number: str) -> None:
        tell_trial(int(number))

    def do_note(self, file: str) -> None:
        with Path(file).open("a", encoding="utf-8") as notes:
            notes.write(f"{self.request.operator.name} {self.request.goal_key}\n")

    def do_incumbent(self, file: str) -> None:
        folder = self.request.incumbent_folder
        names = sorted(path.name for path in folder.iterdir()) if folder else []
        Path(file).write_text(" ".join(names), encoding="utf-8")

    def do_environment(self, file: str) -> None:
        Path(file).write_text("\n".join(os.environ), encoding="utf-8")

    def do_cores(self, file: str) -> None:
        Path(file).write_text(" ".join(map(str, os.sched_getaffinity(0))), encoding="utf-8")

    def do_sleep(self, seconds: str) -> None:
        until = time.monotonic() + float(seconds)
        while time.monotonic() < until and not self.stopped:
            time.sleep(0.02)

    def do_deaf(self, _: str) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        say(PhaseEvent(phase="search").to_json())
        time.sleep(60)

    def do_child(self, pids: str) -> None:
        start_child(Path(pids))

    def do_crash(self, _: str) -> None:
        sys.stderr.write("out of memory\n")
        os._exit(3)

    def do_refuse(self, _: str) -> None:
        say(ErrorEvent(error="CaptureError", message="no graph").to_json())
        sys.exit(1)

    def do_better(self, ratio: str) -> None:
        self.evidence = prove(self.request, float(ratio))

    def _stop(self, *_: object) -> None:
        self.stopped = True


def main() -> None:
    script = Script(OptimizeRequest.from_json(sys.stdin.read()))
    script.run()
    result = conclude(script.request, script.evidence, stopped=script.stopped)
    say(ResultEvent(result=result).to_json())


def prove(request: OptimizeRequest, ratio: float) -> Evidence:
    operator = request.operator
    made = make_evidence(CANDIDATE, ratio, operator_digest=operator.digest)
    return made.model_copy(update={"operator": operator.name, "hardware": request.hardware.name})


def conclude(
    request: OptimizeRequest, evidence: Evidence | None, *, stopped: bool
) -> OptimizeResult:
    folder = request.out_folder / request.operator.name / request.hardware.name
    if evidence and not stopped:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "evidence.json").write_text(evidence.to_json(), encoding="utf-8")
        (folder / "operator.json").write_text(request.operator.to_json(), encoding="utf-8")
    verdict = Better() if evidence else NotBetter(reason="nothing was faster")
    return OptimizeResult(
        operator=request.operator.name,
        hardware=request.hardware.name,
        message="stopped" if stopped else "finished",
        verdict=None if stopped else verdict,
        evidence=evidence,
        candidate=CANDIDATE,
        kernel_folder=folder if evidence and not stopped else None,
    )


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
