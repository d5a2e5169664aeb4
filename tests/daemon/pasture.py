"""Pull requests of the bot's on the fake of GitHub, and those who look after them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from daemon.config.file import BotConfig
from daemon.config.watch import ConfigWatch
from daemon.forge import Check, PullRequest
from daemon.gate import Gate
from daemon.github.forge import GitHubForge
from daemon.jobs import Progress, Task
from daemon.outbox import Outbox
from daemon.pulls.branches import Branches
from daemon.pulls.publish import Publication, Publisher
from daemon.pulls.pull_request import Proposal, Site, branch_name
from daemon.pulls.reverify import Reverifier
from daemon.pulls.shepherd import Shepherd
from daemon.pulls.verify_check import NAME
from daemon.workspace import Workspace
from operator_registry.record import Record
from operator_registry.registry import Operator, Registry, RegistryConfig
from optimizer.job import Finding, Reproduced, Result, Verification, VerifyRequest, VerifyResult
from optimizer.kernel import make_kernel
from optimizer.kernel_page import kernel_files
from optimizer.store import Store
from tests.daemon.crashing import READS, Crashing, Steps
from tests.fakes import FakeClock
from tests.github.fake import FakeGitHub
from tests.github.hosts import make_clock, open_forge
from tests.makers import HARDWARE, OPERATOR, make_candidate, make_evidence

BRANCH = branch_name(OPERATOR.name, HARDWARE.name)
PATH = f"kernels/{OPERATOR.name}/{HARDWARE.name}"
NEW_SPEC = OPERATOR.spec.model_copy(update={"owners": ("@wendy", "kernels@example.com")})
OWNED = Operator(spec=NEW_SPEC, source=OPERATOR.source)


@lru_cache
def make_files(name: str, ratio: float) -> dict[str, bytes]:
    candidate = make_candidate(name)
    evidence = make_evidence(candidate, ratio)
    kernel = make_kernel(OWNED, HARDWARE, candidate=candidate, evidence=evidence)
    return {name: text.encode() for name, text in kernel_files(kernel).items()}


@dataclass
class FakeJobs:
    """Replays nothing, and says what a test wants to hear."""

    finding: Finding = field(default_factory=Reproduced)
    asked: list[VerifyRequest] = field(default_factory=list)
    meanwhile: Callable[[], None] = lambda: None

    def run(
        self,
        task: Task,
        request: Record,
        *,
        on_progress: Callable[[Progress], None] = lambda _: None,
        keep_going: Callable[[], bool] = lambda: True,
    ) -> Result | None:
        assert isinstance(request, VerifyRequest)
        assert (request.kernel_folder / "hardware.json").exists()
        self.asked.append(request)
        self.meanwhile()
        if not keep_going():
            return None
        seen = Verification(
            variant="cpp-1", candidate="c", finding=self.finding, ratio=1.9, published_ratio=2.0,
            checked_sizes=21, seed=7, at="2026-12-01T12:00:00Z",
        )  # fmt: skip
        return VerifyResult(verifications=(seen,))


@dataclass
class Pasture:
    """A registry on the fake of GitHub, and the bot's parts that touch its pull requests."""

    github: FakeGitHub
    forge: GitHubForge
    store: Store
    clock: FakeClock
    folder: Path
    config: BotConfig = field(default_factory=BotConfig)
    registry: Registry | None = None
    jobs: FakeJobs = field(default_factory=FakeJobs)
    obstacle: str | None = None
    steps: Steps = field(default_factory=Steps)

    def __post_init__(self) -> None:
        """Begin with a registry that asks for what is proposed here."""
        self.registry = Registry(
            RegistryConfig(hardware=(HARDWARE.name,)),
            operators={OPERATOR.name: OWNED},
            hardware={HARDWARE.name: HARDWARE},
        )
        client, url = self.forge.client, self.github.git_url
        self.workspace = Workspace(
            url, self.folder / "clone.git", lambda: client.git_configuration(url)
        )
        self.restart()

    def restart(self) -> None:
        """Begin a process of the bot's."""
        self.steps = Steps()
        parts = (self.workspace, self.store, self.forge)
        workspace, store, host = (self._behind(part) for part in parts)
        self.branches = Branches(
            workspace, store, "bot", "bot@localhost",
            me=lambda: self.forge.me, clock=self.clock,
        )  # fmt: skip
        self.shepherd = Shepherd(
            host, self.branches, store,
            find_registry=lambda: self.registry, config=lambda: self.config,
        )  # fmt: skip
        watch = ConfigWatch(self.workspace, self.store)
        watch.run()
        self.reverifier = Reverifier(
            self.branches, self.store, self.jobs,
            find_obstacle=lambda _: self.obstacle,
            gate=Gate(watch, self.store, self.clock),
            state=self.folder / "state",
            keep_going=lambda: True,
        )  # fmt: skip

    def _behind(self, part: object) -> Any:  # noqa: ANN401 - as the part
        return Crashing(part, self.steps, READS)

    def publish(self, ratio: float = 2.0, name: str = "one") -> Publication:
        publisher = Publisher(
            self.branches, self.forge, "main", Site(web="https://github.example/o/r"),
            config=lambda: self.config,
        )  # fmt: skip
        proposal = Proposal(make_evidence(make_candidate(name), ratio), origin="synthesis")
        return publisher.publish(proposal, make_files(name, ratio))

    def look(self, *, after_s: float = 60.0) -> None:
        """Have the shepherd look, and what it asked for be written."""
        self.clock.now_s += after_s
        self.shepherd.run()
        self.clock.now_s += 30
        outbox = Outbox(
            self.forge, self.store, render_status=lambda _: "status",
            is_paused=lambda: False, clock=self.clock,
        )  # fmt: skip
        outbox.run()

    def shown(self, number: int = 1) -> PullRequest:
        return self.forge.pull_request(number)

    def head(self, branch: str = BRANCH) -> str | None:
        return self.workspace.find_heads().branches.get(branch)

    def check(self, sha: str | None = None) -> Check:
        check = self.forge.find_check(sha or self.head() or "", NAME)
        assert check is not None
        return check

    def comments(self, number: int = 1) -> list[str]:
        return [c.body for c in self.forge.comments_on(number)]

    def set_back(self, sha: str) -> None:
        """Move the branch to a commit, as a person does."""
        self.workspace.fetch(BRANCH)
        self.workspace.push(BRANCH, sha, expected=self.head())


@contextmanager
def grazing(folder: Path) -> Iterator[Pasture]:
    with FakeGitHub(folder) as github, Store(f"sqlite:///{folder / 'store.sqlite'}") as store:
        store.migrate()
        clock = make_clock(github)
        github.set_role("wendy", "write")
        yield Pasture(github, open_forge(github, clock=clock), store, clock, folder)
