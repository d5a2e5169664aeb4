"""Who does a job; and a search on a runner of GitHub's, by the workflows of this repository."""

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from unittest.mock import patch

import pytest

from daemon import routing
from daemon.actions.runner import Away
from daemon.actions.yard import Patience, Yard
from daemon.bot import Bot, open_bot
from daemon.cycle import Cycle
from daemon.host import Host
from daemon.jobs import Progress, Task
from daemon.local_forge import LocalForge
from daemon.pulls.pull_request import branch_name
from daemon.routing import Routes, make_away
from daemon.settings import Settings, SettingsError
from daemon.talk.wishes import stop_job
from operator_registry.hardware import HardwareSpec, RunnerSpec
from operator_registry.record import Record
from operator_registry.registry import CATALOG, load_registry
from optimizer.job import DoctorRequest, OptimizeRequest, Result, VerifyRequest
from tests.daemon.origins import SCRIPTED
from tests.daemon.test_cli_job import start_step
from tests.daemon.test_jobs import OPERATOR
from tests.daemon.test_parcel import KERNELS
from tests.github.fake import FakeGitHub

ROOT = Path(__file__).parents[2]
HARDWARE = load_registry(CATALOG).hardware
H200, CPU = HARDWARE["h200"], HARDWARE["cpu-x86-64-v3"]
THIS = Host(cpu_arch="x86-64-v3", has_runners=True)
QUICK = Patience(tick_s=0.02, look_s=0.1, appear_s=20.0)
WORKFLOWS = (".github/workflows/search.yml", ".github/workflows/job.yml")


@dataclass
class Noted:
    """Does no job, but notes who asked."""

    asked: list[Record] = field(default_factory=list)

    def run(
        self,
        task: Task,
        request: Record,
        *,
        on_progress: Callable[[Progress], None] = lambda _: None,
        keep_going: Callable[[], bool] = lambda: True,
    ) -> Result | None:
        self.asked.append(request)
        return None


def optimize(hardware: HardwareSpec) -> OptimizeRequest:
    folder = Path("/nowhere")
    return OptimizeRequest(
        operator=OPERATOR,
        hardware=hardware,
        goal_key=f"goal-{hardware.name}",
        store_url="sqlite://",
        state_folder=folder,
        out_folder=folder,
    )


def verify(kernel: Path) -> VerifyRequest:
    return VerifyRequest(kernel_folder=kernel, state_folder=Path("/nowhere"))


def kernel_for(hardware: str) -> Path:
    return next(folder for folder in KERNELS if folder.name == hardware)


@pytest.mark.parametrize(
    ("request_", "is_here"),
    [
        (optimize(CPU), True),
        (optimize(H200), False),
        (verify(kernel_for("h200")), False),
        (verify(ROOT / "kernels"), True),
        (DoctorRequest(), True),
    ],
    ids=["our hardware", "other hardware", "other kernel", "no kernel", "this machine"],
)
def test_a_job_is_done_where_its_hardware_is(request_: Record, *, is_here: bool) -> None:
    here, there = Noted(), Noted()
    routes = Routes(THIS, here, Away(there))

    routes.run("optimize", request_)
    routes.close()

    assert (here.asked, there.asked) == (([request_], []) if is_here else ([], [request_]))


def test_without_runners_every_job_is_done_here() -> None:
    here = Noted()

    Routes(Host(cpu_arch="x86-64-v3"), here).run("optimize", optimize(H200))

    assert len(here.asked) == 1


def test_hardware_that_names_no_runner_is_held_up() -> None:
    nameless = H200.model_copy(update={"runner": RunnerSpec()})

    assert THIS.find_obstacle(H200) is None
    assert THIS.find_obstacle(CPU) is None
    assert "no runner is named for it" in (THIS.find_obstacle(nameless) or "")
    assert Host(cpu_arch="x86-64-v3").find_obstacle(H200) is not None


def test_a_code_host_without_runners_is_misuse(tmp_path: Path) -> None:
    settings = Settings(state=tmp_path, actions_workflow="search.yml")
    forge = LocalForge.__new__(LocalForge)

    with pytest.raises(SettingsError, match="only GitHub has runners"):
        make_away(settings, forge, Marks(), find_ref=lambda: "main", is_ending=lambda: False)


class Marks:
    def mark(self, key: str, value: str) -> None: ...

    def recall(self, key: str) -> str | None:
        return None


def read(path: str) -> str:
    return (CATALOG / path).read_text(encoding="utf-8")


@pytest.fixture
def github(tmp_path: Path) -> Iterator[FakeGitHub]:
    files = {name: (ROOT / name).read_text(encoding="utf-8") for name in WORKFLOWS}
    files |= {
        ".github/kernelevolve.yml": "version: 1\n",
        "operators/gelu_bias/operator.yaml": re.sub(
            r"(?m)^summary:.*$", "summary: better 2.0", read("operators/gelu_bias/operator.yaml")
        ),
        "operators/gelu_bias/reference.py": read("operators/gelu_bias/reference.py"),
        "registry.yaml": "schema: 1\nhardware: [h200]\n",
        "hardware/h200.yaml": read("hardware/h200.yaml"),
    }
    with FakeGitHub(tmp_path, files=files) as github:
        yield github


@pytest.fixture
def settings(github: FakeGitHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("KERNELEVOLVE_STATE", str(tmp_path / "runner"))
    github.set_role("machine", "write")
    return Settings.load(
        {
            "KERNELEVOLVE_STATE": str(tmp_path / "state"),
            "KERNELEVOLVE_FORGE": "github",
            "KERNELEVOLVE_GITHUB_REPOSITORY": github.full_name,
            "KERNELEVOLVE_GITHUB_API": github.api_url,
            "KERNELEVOLVE_GITHUB_TOKEN": github.make_token("machine"),
            "KERNELEVOLVE_ACTIONS_WORKFLOW": "search.yml",
        }
    )


@contextmanager
def a_daemon(settings: Settings) -> Iterator[Bot]:
    """Be the daemon on a machine without a GPU."""
    host = Host(cpu_arch="x86-64-v3", has_runners=True)
    with (
        patch.object(routing, "Yard", partial(Yard, patience=QUICK)),
        patch("daemon.bot.detect_host", return_value=host),
        open_bot(settings, jobs=SCRIPTED, is_stopped=lambda: False) as bot,
    ):
        yield bot


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until, "it never came to be"
        time.sleep(0.05)


def turn_until(cycle: Cycle, condition: Callable[[], bool]) -> None:
    def turn() -> bool:
        cycle.run()
        return condition()

    wait_until(turn)


def do_run(github: FakeGitHub, run_id: int, temp: Path) -> None:
    """Do what a runner does: the workflow's step, and then the artefact."""
    github.start_run(run_id)
    temp.mkdir()
    assert start_step(github.world.runs[run_id].inputs["request"], temp).wait(60) == 0
    answer = (temp / "answer.json").read_bytes()
    github.end_run(run_id, "success", {"answer": {"answer.json": answer}})


@pytest.mark.drill
def test_a_goal_for_a_gpu_becomes_a_pull_request_by_way_of_a_runner(
    github: FakeGitHub, settings: Settings, tmp_path: Path
) -> None:
    with a_daemon(settings) as bot:
        first = bot.cycle.run()
        wait_until(lambda: bool(github.world.runs))
        (run,) = github.world.runs.values()
        do_run(github, run.id, tmp_path / "temp")
        turn_until(bot.cycle, lambda: bool(github.pulls()))
        pending = bot.store.pending_goals()

    (pull,) = github.pulls()
    assert [held.why for held in first.held] == ["a runner of the code host works on it"]
    assert run.title == f"kernelevolve {run.inputs['tag']}"
    assert json.loads(run.inputs["labels"]) == ["self-hosted", "gpu", "h200"]
    head = github.git.heads()[branch_name("gelu_bias", "h200")]
    assert b'"h200"' in (github.git.read(head, "kernels/gelu_bias/h200/hardware.json") or b"")
    assert pull.body
    assert pending == ()


@pytest.mark.drill
def test_a_run_survives_the_daemon(github: FakeGitHub, settings: Settings, tmp_path: Path) -> None:
    with a_daemon(settings) as bot:
        bot.cycle.run()
        wait_until(lambda: bool(github.world.runs))
    (run,) = github.world.runs.values()
    assert run.status == "queued"
    do_run(github, run.id, tmp_path / "temp")

    with a_daemon(settings) as bot:
        turn_until(bot.cycle, lambda: bool(github.pulls()))

    assert len(github.world.runs) == 1


def test_a_stop_cancels_the_run(github: FakeGitHub, settings: Settings) -> None:
    with a_daemon(settings) as bot:
        bot.cycle.run()
        wait_until(lambda: bool(github.world.runs))
        (run,) = github.world.runs.values()
        (goal,) = bot.store.pending_goals()

        said = time.monotonic()
        stop_job(bot.store, goal.key, "wendy")
        wait_until(lambda: run.conclusion == "cancelled")

        assert time.monotonic() - said < 10
        (end,) = bot.cycle.run().ends
    assert end.verdict == "stopped"


def test_a_run_that_a_later_revision_makes_needless_is_cancelled(
    github: FakeGitHub, settings: Settings
) -> None:
    with a_daemon(settings) as bot:
        bot.cycle.run()
        wait_until(lambda: bool(github.world.runs))
        source = read("operators/gelu_bias/reference.py") + "\n\nLATER = 1\n"
        github.push("main", {"operators/gelu_bias/reference.py": source}, "octo")

        (end,) = bot.cycle.run().ends
        wait_until(lambda: len(github.world.runs) == 2)
        first, second = github.world.runs.values()
        wait_until(lambda: first.conclusion == "cancelled")

    assert end.verdict == "superseded"
    assert second.status == "queued"
