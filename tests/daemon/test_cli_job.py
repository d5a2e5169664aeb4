"""What a runner does, from the workflow's own shell lines to the answer."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import yaml

from daemon.actions.acceptance import accept
from daemon.actions.parcel import Answer, fingerprint, make_parcel, pack
from daemon.cli import job as cli_job
from daemon.cli import main as cli
from daemon.cli.job import localize
from daemon.cli.main import main
from daemon.settings import Settings
from optimizer.job import (
    ErrorEvent,
    OptimizeRequest,
    OptimizeResult,
    ResultEvent,
    VerifyRequest,
    VerifyResult,
)
from tests.daemon.origins import SCRIPTED
from tests.daemon.test_jobs import make_request
from tests.daemon.test_parcel import KERNELS

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / ".github" / "workflows" / "job.yml"


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELEVOLVE_STATE", str(tmp_path / "state"))


def run(packed: str, folder: Path) -> tuple[int, Answer]:
    (folder / "request").write_text(packed)
    out = folder / "answer.json"
    with patch.object(cli_job, "Jobs", return_value=SCRIPTED):  # the process boundary
        code = main(["job", str(folder / "request"), "--out", str(out)])
    return code, Answer.from_json(out.read_bytes())


def test_a_search_is_made_and_answered(tmp_path: Path) -> None:
    request = make_request("trial 1; better 2.0", tmp_path / "daemon")
    packed = pack(make_parcel(request))

    code, answer = run(packed, tmp_path)

    assert (code, answer.request) == (0, fingerprint(packed))
    assert isinstance(answer.end, ResultEvent)
    taken = accept(answer.end.result, request)
    assert isinstance(taken, OptimizeResult)
    assert taken.kernel_folder is not None


def test_the_kernel_to_beat_travels_along(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    request = make_request(f"incumbent {seen}", tmp_path / "daemon")

    run(
        pack(make_parcel(request.model_copy(update={"incumbent_folder": KERNELS[0]}))),
        tmp_path,
    )

    assert {"dispatch.json", "hardware.json", "operator.json"} < set(seen.read_text().split())


def test_a_job_that_refuses_is_answered_too(tmp_path: Path) -> None:
    code, answer = run(pack(make_parcel(make_request("refuse", tmp_path))), tmp_path)

    assert code == 1
    assert answer.end == ErrorEvent(error="CaptureError", message="no graph")


def test_a_job_that_dies_is_answered_too(tmp_path: Path) -> None:
    code, answer = run(pack(make_parcel(make_request("crash", tmp_path))), tmp_path)

    assert code == 1
    assert isinstance(answer.end, ErrorEvent)
    assert (answer.end.error, "out of memory" in answer.end.message) == ("JobDiedError", True)


def test_a_request_that_is_none_is_answered_with_why(tmp_path: Path) -> None:
    code, answer = run("$(touch /tmp/x)", tmp_path)

    assert code == 1
    assert isinstance(answer.end, ErrorEvent)
    assert answer.end.error == "ParcelError"


def test_a_request_that_is_not_there_is_misuse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["job", str(tmp_path / "no"), "--out", str(tmp_path / "out")]) == 2
    assert "there is no" in capsys.readouterr().err


def test_the_machines_own_rules_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sandbox and the trusted keys are the runner's affair, whatever is asked."""
    monkeypatch.setenv("KERNELEVOLVE_TRUSTED_KEYS", "a" * 64)
    given = make_request("", tmp_path).model_copy(update={"accept_weak_sandbox": True})
    settings = Settings.load()
    kernel = VerifyRequest(
        kernel_folder=KERNELS[0], state_folder=tmp_path, trusted_keys=("b" * 64,)
    )

    search = localize(make_parcel(given), settings, tmp_path / "one")
    verify = localize(make_parcel(kernel), settings, tmp_path / "two")

    assert isinstance(search, OptimizeRequest)
    assert not search.accept_weak_sandbox
    assert search.store_url == settings.store_url
    assert isinstance(verify, VerifyRequest)
    assert verify.trusted_keys == ("a" * 64,)


def step() -> dict[str, Any]:
    """Return the step of the workflow that runs the program."""
    (job,) = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"].values()
    found: dict[str, Any] = job["steps"][0]
    return found


def start_step(request: str, temp: Path) -> subprocess.Popen[bytes]:
    """Do what a runner does with the step: bash, and the inputs as variables."""
    program = temp / "kernelevolve"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m tests.daemon.scripted_cli "$@"\n')
    program.chmod(0o755)
    values = {"${{ inputs.request }}": request, "${{ inputs.program }}": str(program)}
    script = temp / "step.sh"
    script.write_text(step()["run"])
    return subprocess.Popen(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
        cwd=ROOT,
        env={
            **os.environ,
            **{name: values[value] for name, value in step()["env"].items()},
            "RUNNER_TEMP": str(temp),
        },
    )


def test_the_workflows_step_answers(tmp_path: Path) -> None:
    packed = pack(make_parcel(make_request("better 2.0", tmp_path / "daemon")))

    done = start_step(packed, tmp_path)

    assert done.wait(60) == 0
    answer = Answer.from_json((tmp_path / "answer.json").read_bytes())
    assert isinstance(answer.end, ResultEvent)


@pytest.mark.parametrize("text", ["$(touch pwned)", "`touch pwned`", "'; touch pwned; '", "%s%n\\"])
def test_no_request_reaches_the_shell(text: str, tmp_path: Path) -> None:
    done = start_step(text.replace("pwned", str(tmp_path / "pwned")), tmp_path)

    assert done.wait(60) == 1
    assert not (tmp_path / "pwned").exists()
    assert b"ParcelError" in (tmp_path / "answer.json").read_bytes()


def test_a_cancelled_step_leaves_nothing_running(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    packed = pack(make_parcel(make_request(f"note {notes}; sleep 60", tmp_path / "daemon")))
    running = start_step(packed, tmp_path)
    until = time.monotonic() + 60
    while not notes.exists() and time.monotonic() < until:
        time.sleep(0.05)

    running.send_signal(signal.SIGINT)  # what a runner sends first, to the shell alone

    assert running.wait(10) == 1
    answer = Answer.from_json((tmp_path / "answer.json").read_bytes())
    assert isinstance(answer.end, ErrorEvent)
    assert answer.end.error == "Stopped"


@pytest.mark.drill
def test_a_kernel_is_verified_behind_the_walls(tmp_path: Path) -> None:
    kernel = next(folder for folder in KERNELS if folder.name.startswith("cpu"))
    request = VerifyRequest(kernel_folder=kernel, state_folder=tmp_path, budget_s=20)
    (tmp_path / "request").write_text(pack(make_parcel(request)))

    code = cli.main(["job", str(tmp_path / "request"), "--out", str(tmp_path / "answer.json")])

    answer = Answer.from_json((tmp_path / "answer.json").read_bytes())
    assert code == 0
    assert isinstance(answer.end, ResultEvent)
    assert isinstance(accept(answer.end.result, request), VerifyResult)
