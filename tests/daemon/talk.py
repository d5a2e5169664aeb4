"""People who talk to the bot on the fake of GitHub, and the bot's parts that answer."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from daemon.config.file import BotConfig
from daemon.forge import ForgeError, PullRequestDraft
from daemon.github.forge import GitHubForge
from daemon.outbox import Outbox
from daemon.planner import queued
from daemon.pulls.pull_request import branch_name
from daemon.talk.intake import Intake
from daemon.talk.permissions import Permissions
from daemon.talk.runner import CommandRunner
from daemon.talk.scene import Scenes
from daemon.talk.status import StatusComments
from operator_registry.diff import Goal
from operator_registry.registry import CATALOG, Registry, load_registry
from optimizer.store import Store, StoredCommand, StoredGoal
from tests.fakes import FakeClock
from tests.github.fake import FakeGitHub
from tests.github.hosts import make_clock, open_forge

OPERATOR, HARDWARE = "gelu_bias", "cpu-x86-64-v3"
BRANCH = branch_name(OPERATOR, HARDWARE)
REVISION = "f" * 40
WRITER, READER, STRANGER = "wendy", "rob", "sam"


@lru_cache
def catalogue() -> Registry:
    return load_registry(CATALOG)


@dataclass
class Talk:
    """A pull request of the bot's, an issue of somebody's, and the bot's parts."""

    github: FakeGitHub
    forge: GitHubForge
    store: Store
    clock: FakeClock
    config: BotConfig = field(default_factory=BotConfig)
    paused: bool = False
    request: int = 0
    issue: int = 0
    intake: Intake = field(init=False)
    stops: CommandRunner = field(init=False)
    acknowledgements: Outbox = field(init=False)
    commands: CommandRunner = field(init=False)
    outbox: Outbox = field(init=False)

    def __post_init__(self) -> None:
        """Begin a process of the bot's."""
        self.restart()

    def restart(self) -> None:
        self.intake = Intake(self.forge, self.store, self._config, self.clock)
        self.stops, self.commands = (self._make_runner(stops=stops) for stops in (True, False))
        self.acknowledgements, self.outbox = (
            self._make_outbox(urgent=urgent) for urgent in (True, False)
        )

    def _make_runner(self, *, stops: bool) -> CommandRunner:
        return CommandRunner(
            host=self.forge,
            store=self.store,
            config=self._config,
            permissions=Permissions(self.forge, self.clock),
            find_registry=lambda: (REVISION, catalogue()),
            is_paused=lambda: self.paused,
            clock=self.clock,
            stops=stops,
        )

    def _make_outbox(self, *, urgent: bool) -> Outbox:
        def render(number: int) -> str:
            look = Scenes(self.forge).look
            return StatusComments(self.store, look, self.clock).render(number)

        return Outbox(
            self.forge, self.store, render, lambda: self.paused, self.clock, urgent=urgent
        )

    def _config(self) -> BotConfig:
        return self.config

    def say(self, body: str, *, by: str = WRITER, on: int | None = None) -> int:
        """Write a comment, below the pull request where nothing else is said."""
        return self.github.comment(on or self.request, by, body)

    def round(self, *, pass_s: float = 5.0) -> None:
        """Have each part run once, as a steward does, and some seconds pass."""
        for part in (self.intake, self.stops, self.acknowledgements, self.commands, self.outbox):
            with suppress(ForgeError):
                part.run()
        self.clock.now_s += pass_s

    def settle(self, rounds: int = 5) -> None:
        for _ in range(rounds):
            self.round()

    def ask(self, body: str, *, by: str = WRITER, on: int | None = None) -> StoredCommand:
        """Write a comment with one command, and return what has become of it."""
        comment = self.say(body, by=by, on=on)
        self.settle()
        (command,) = (c for c in self.store.commands() if c.comment_id == comment)
        return command

    def reactions(self, comment_id: int) -> list[str]:
        me = self.github.bot.login
        return [content for who, content in self.github.reactions(comment_id) if who == me]

    def said(self, number: int | None = None) -> list[str]:
        """Return the bot's comments, the status comment first if there is one."""
        at = number or self.request
        bodies = [
            c.body
            for c in self.github.world.comments.values()
            if c.number == at and c.user.id == self.github.bot.id
        ]
        return sorted(bodies, key=lambda body: not body.startswith("<!-- kernelevolve status"))

    def goals(self) -> tuple[StoredGoal, ...]:
        return self.store.pending_goals()

    def queue(self, operator: str = OPERATOR, *, revision: str = REVISION) -> str:
        """Queue a goal as a change of the registry does, and return its key."""
        goal = Goal(operator=operator, hardware=HARDWARE, reasons=("added",), share_of_time=0.0)
        made = queued(goal, catalogue(), revision=revision)
        self.store.enqueue(made, now=self.clock())
        return made.key


@contextmanager
def talking(folder: Path) -> Iterator[Talk]:
    with FakeGitHub(folder) as github, Store(f"sqlite:///{folder / 'store.sqlite'}") as store:
        store.migrate()
        clock = make_clock(github)
        for login, role in ((WRITER, "write"), (READER, "read"), ("mia", "maintain")):
            github.set_role(login, role)  # type: ignore[arg-type] # one of its roles each
        talk = Talk(github, open_forge(github, clock=clock), store, clock)
        github.push(BRANCH, {"kernels/x": "x"}, github.bot.login)
        draft = PullRequestDraft(title="faster", body="b", head=BRANCH, base="main")
        talk.request = talk.forge.open_pull_request(draft).number
        talk.issue = github.open_issue("octo", "a question")
        talk.round()
        yield talk
