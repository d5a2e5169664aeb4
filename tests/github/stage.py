"""The daemon's real parts before the fake of GitHub, in a process that a test can end anywhere.

    with Stage(tmp_path) as stage:
        stage.push_operator("better 2.0")
        stage.turn()            # one turn of the work loop
        stage.round()           # one round of each steward
        stage.restart()         # another process begins where this one ended

Time is `stage.clock`: it passes where the daemon waits, and where a test moves it.
"""

import re
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from unittest.mock import patch

from daemon import bot as bot_module
from daemon.bot import Bot, open_bot
from daemon.duties import make_lanes
from daemon.github.forge import GitHubForge
from daemon.github.setup import make_client
from daemon.jobs import JobRefusedError, Progress, RunsJobs, Task
from daemon.pause import find_pause
from daemon.pulls.pull_request import branch_name
from daemon.serving import WorkLoop, make_reception, make_site
from daemon.settings import Settings
from daemon.steward import Steward
from daemon.web.metrics import Metrics
from daemon.web.server import serving
from daemon.workspace import Workspace
from operator_registry.record import Record
from operator_registry.registry import CATALOG
from optimizer.job import (
    OptimizeRequest,
    Reproduced,
    Result,
    Verification,
    VerifyRequest,
    VerifyResult,
)
from optimizer.store import Store, StoredCommand
from tests.daemon.origins import HERE
from tests.daemon.scripted_job import CANDIDATE, conclude, prove
from tests.github.fake import FakeGitHub
from tests.github.state import Ticket

START = 1_796_040_000.0
"""2026-11-30 12:00 in UTC."""
OPERATOR = "gelu_bias"
BRANCH = branch_name(OPERATOR, HERE)
OWNER, WRITER, STRANGER = "octo", "wendy", "sam"
CONFIG = ".github/kernelevolve.yml"


class Crash(BaseException):
    """Stands for the end of the process."""


@dataclass
class Fuse:
    """Counts the daemon's steps, and ends its process at a chosen one. Nothing runs afterwards."""

    left: int | None = None
    """How many steps may still be made; None for any number."""
    steps: int = 0
    burnt: bool = False

    def step(self) -> None:
        if self.burnt:
            raise Crash
        self.steps += 1
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                self.burnt = True
                raise Crash

    def renew(self) -> None:
        self.left, self.burnt = None, False


@dataclass
class Fused:
    """A part of the daemon's with a step of the fuse before and after each call."""

    real: Any
    fuse: Fuse

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """Be an instance of what the real part is one of."""
        return type(self.real)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as the real part's
        """Return what the real part has, between two steps."""
        found = getattr(self.real, name)
        if not callable(found):
            return found

        def call(*arguments: object, **named: object) -> Any:  # noqa: ANN401 - as the real part's
            self.fuse.step()
            result = found(*arguments, **named)
            self.fuse.step()
            return result

        return call


@dataclass
class StageClock:
    """Seconds since 1970; who waits by it is there at once."""

    now_s: float = START
    ahead_s: float = 0.0
    """How far the daemon's clock is before the code host's."""

    def time(self) -> float:
        return self.now_s + self.ahead_s

    def monotonic(self) -> float:
        return self.now_s

    def host(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += max(0.0, seconds)


@dataclass
class InstantJobs:
    """Jobs that are done at once: an operator's summary says what they find."""

    ran: list[tuple[Task, str]] = field(default_factory=list)
    ratio: float | None = None
    """What they find, whatever the summary says."""

    def run(
        self,
        task: Task,
        request: Record,
        *,
        on_progress: Callable[[Progress], None] = lambda _: None,
        keep_going: Callable[[], bool] = lambda: True,
    ) -> Result | None:
        """See `daemon.jobs.RunsJobs`."""
        if not keep_going():
            return None
        if isinstance(request, VerifyRequest):
            self.ran.append((task, request.kernel_folder.name))
            return VerifyResult(verifications=(_REPRODUCED,))
        assert isinstance(request, OptimizeRequest)
        self.ran.append((task, request.goal_key))
        word, _, ratio = request.operator.spec.summary.partition(" ")
        if word == "refuse":
            raise JobRefusedError(word, "it says so itself")
        found = self.ratio or float(ratio or 0)
        evidence = prove(request, found) if word == "better" else None
        return conclude(request, evidence, stopped=False)


_REPRODUCED = Verification(
    variant="one",
    candidate=CANDIDATE.id,
    finding=Reproduced(),
    ratio=2.0,
    published_ratio=2.0,
    checked_sizes=21,
    at="2026-11-30T12:00:00Z",
)


@dataclass
class Stage:
    """See the module."""

    folder: Path
    jobs: RunsJobs = field(default_factory=InstantJobs)
    config: str = "version: 1\n"
    empty_store: Path | None = None
    """A database without rows, to be copied: to make one takes longer than most tests."""
    clock: StageClock = field(default_factory=StageClock)
    fuse: Fuse = field(default_factory=Fuse)
    github: FakeGitHub = field(init=False)
    bot: Bot = field(init=False)
    stewards: tuple[Steward, ...] = field(init=False)
    work: WorkLoop = field(init=False)
    _process: ExitStack = field(default_factory=ExitStack, init=False)

    def __enter__(self) -> Self:
        """Start the code host and the daemon."""
        self.github = FakeGitHub(self.folder, clock=self.clock.host, files=self._first_files())
        self.github.__enter__()
        for login in (OWNER, WRITER):
            self.github.set_role(login, "admin" if login == OWNER else "write")
        self.key.write_text(self.github.private_key)
        self.key.chmod(0o600)
        self.github.world.hook_secret = "a secret that is long enough"  # noqa: S105 - a fake's
        self.hook_secrets.write_text(self.github.hook_secret)
        if self.empty_store is not None:
            self.settings.state.mkdir(parents=True)
            shutil.copy(self.empty_store, self.settings.state / "store.sqlite")
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop both; requests against GitHub's description fail the test."""
        self.stop()
        self.github.__exit__(kind, error, trace)

    @property
    def key(self) -> Path:
        return self.folder / "app.pem"

    @property
    def hook_secrets(self) -> Path:
        return self.folder / "hook_secrets"

    @property
    def settings(self) -> Settings:
        return Settings(
            state=self.folder / "state",
            forge="github",
            github_repository=self.github.full_name,
            github_api=self.github.api_url,
            github_app_id=self.github.app_id,
            github_private_key=self.key,
            github_installation_id=self.github.installation_id,
            webhook_secrets=self.hook_secrets,
        )

    @property
    def environment(self) -> dict[str, str]:
        """Return the settings as a process of its own takes them."""
        given = self.settings.model_dump(mode="json", exclude_defaults=True)
        return {f"KERNELEVOLVE_{name.upper()}": str(value) for name, value in given.items()}

    @property
    def store(self) -> Store:
        """Return the daemon's store; what a test reads there is no step of the daemon's."""
        store = self.bot.store
        found: Store = store.real if isinstance(store, Fused) else store
        return found

    def start(self) -> None:
        """Begin a process of the daemon's."""
        self.fuse.renew()
        process = ExitStack()
        for name, stand_in in (
            ("open_store", self._open_store),
            ("make_forge", self._make_forge),
            ("make_workspace", self._make_workspace),
        ):
            process.enter_context(patch.object(bot_module, name, stand_in))
        self.bot = process.enter_context(
            open_bot(self.settings, jobs=self.jobs, is_stopped=lambda: False, clock=self.clock.time)
        )
        health = self.bot.health
        metrics = Metrics(self.bot.store, health, clock=self.clock.time)
        self.work = WorkLoop(self.bot.cycle, health, metrics)
        self.stewards = tuple(
            Steward(
                name=name,
                duties=duties,
                is_paused=lambda: find_pause(self.bot.store) is not None,
                is_on_hold=lambda: self.bot.config.find_hold() is not None,
                may_act=self.bot.role.renew,
                clock=self.clock.monotonic,
                health=health,
                metrics=metrics,
            )
            for name, duties in make_lanes(self.bot).items()
        )
        self.reception = make_reception(self.bot, metrics, lambda _: None)
        self._process = process

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Have the code host send its webhooks, and the daemon take them."""
        metrics = Metrics(self.bot.store, self.bot.health, clock=self.clock.time)
        site = make_site(self.bot, metrics, self.reception, threading.Event())
        with serving(site, "127.0.0.1", 0) as port:
            self.github.hook_url = f"http://127.0.0.1:{port}/webhook"
            try:
                yield
            finally:
                self.github.hook_url = None

    def stop(self) -> None:
        """End the process; where it crashed, nothing of it does anything any more."""
        with suppress(Crash):
            self._process.close()

    def restart(self) -> None:
        self.stop()
        self.start()

    def turn(self) -> None:
        """Make a turn of the work loop."""
        self.work.turn()

    def round(self, *, pass_s: float = 3.0) -> None:
        """Make a round of each steward, some seconds after the last."""
        self.clock.now_s += pass_s
        for steward in self.stewards:
            steward.run_round()

    def rounds(self, count: int, *, pass_s: float = 3.0) -> None:
        for _ in range(count):
            self.round(pass_s=pass_s)

    def crash(self, after: int, act: Callable[[], None]) -> bool:
        """Do something with a process that ends after so many steps; say whether it did."""
        self.fuse.left = after
        try:
            act()
        except Crash:
            self.restart()
            return True
        self.fuse.left = None
        return False

    def push_operator(self, summary: str, *, version: int = 0, login: str = OWNER) -> str:
        """Push a version of the operator to main; its summary is what a job finds."""
        return self.github.push("main", operator_files(summary, version=version), login)

    def own_pulls(self) -> list[Ticket]:
        """Return the pull requests that the daemon opened, oldest first."""
        bot = self.github.bot.id
        return [pull for pull in self.github.pulls() if pull.user.id == bot]

    def commands(self) -> tuple[StoredCommand, ...]:
        return self.store.commands()[::-1]

    def reactions(self, comment_id: int) -> list[str]:
        """Return how the daemon reacted to a comment."""
        found = self.github.reactions(comment_id)
        return [content for login, content in found if login == self.github.bot.login]

    def said(self, number: int) -> list[str]:
        """Return the daemon's comments on an issue or pull request."""
        comments = self.github.world.comments.values()
        bot = self.github.bot.id
        return [c.body for c in comments if c.number == number and c.user.id == bot]

    def _first_files(self) -> dict[str, str]:
        hardware = (CATALOG / "hardware" / f"{HERE}.yaml").read_text(encoding="utf-8")
        files = {
            "registry.yaml": f"schema: 1\nhardware: [{HERE}]\nbudget_s: 20\n",
            f"hardware/{HERE}.yaml": hardware,
        }
        return files | ({CONFIG: self.config} if self.config else {})

    @contextmanager
    def _open_store(self, settings: Settings) -> Iterator[Any]:
        settings.state.mkdir(parents=True, exist_ok=True)
        with Store(settings.store_url) as store:
            store.migrate()
            yield Fused(store, self.fuse)

    def _make_forge(self, settings: Settings, workspace: Workspace) -> Any:  # noqa: ANN401 - a stand-in
        client = make_client(settings)
        client.clock, client.sleep = self.clock.time, self.clock.sleep
        client._tokens.clock = self.clock.time  # noqa: SLF001 - made from the clock before
        return Fused(GitHubForge(client), self.fuse)

    def _make_workspace(self, settings: Settings) -> Any:  # noqa: ANN401 - a stand-in
        client = make_client(settings)
        client.clock, client.sleep = self.clock.time, self.clock.sleep
        client._tokens.clock = self.clock.time  # noqa: SLF001 - as above
        folder = settings.state / "registry.git"
        origin = self.github.git_url
        workspace = Workspace(origin, folder, lambda: client.git_configuration(origin))
        return Fused(workspace, self.fuse)


def operator_files(summary: str, *, version: int = 0) -> dict[str, str]:
    """Return the operator's files, as in the catalogue but for its summary and its version."""
    folder = CATALOG / "operators" / OPERATOR
    spec = (folder / "operator.yaml").read_text(encoding="utf-8")
    spec = re.sub(r"(?m)^summary:.*$", f"summary: '{summary}'", spec)
    spec = spec.replace("input_scales: [1.0, 4.0]", f"input_scales: [1.0, {4 + version}.0]")
    source = (folder / "reference.py").read_text(encoding="utf-8")
    return {
        f"operators/{OPERATOR}/operator.yaml": spec,
        f"operators/{OPERATOR}/reference.py": source,
    }
