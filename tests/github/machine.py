"""Bad days: whatever people, the network, the code host and the machine do, in any order.

Checked after each step: no two pull requests for a goal, no two effects of a command, nothing of a
person's undone. At the end, when all is well again: nothing is lost.
"""

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from daemon.talk.wishes import is_held
from daemon.web.webhooks import find_delivery, open_envelope
from optimizer.store import Delivery, Store
from tests.github.accounts import find_doubled, find_lost, find_undone, is_quiet
from tests.github.quirks import Fault, FaultKind
from tests.github.stage import BRANCH, OWNER, STRANGER, WRITER, Stage

_CONFIG = """\
version: 1
limits: {commands_per_hour: 1000, commits_per_hour: 1000, pull_requests_per_hour: 1000}
"""
_LINES = (
    "/optimize", "/optimize budget=30s", "/retry", "/benchmark", "/verify", "/stop", "/explain",
    "/status", "/rebase", "/reopen", "/hold", "/unhold", "/help", "/optimise", "well done",
)  # fmt: skip
_KINDS: tuple[FaultKind, ...] = (
    "502 after", "hangs up after", "502 after", "502 before", "hangs up before", "500", "503",
    "401", "404", "403 secondary", "429", "403 primary", "html",
)  # fmt: skip
_PATHS = ("", "^/repos", "/pulls", "/comments", "/reactions", "/labels", "receive-pack", "git-up")
Trouble = Fault | int | None
"""A bad answer of the host's, or after how many steps the process ends."""
_FAULT = st.builds(
    Fault,
    kind=st.sampled_from(_KINDS),
    method=st.sampled_from(("", "POST", "POST", "PATCH|PUT")),
    path=st.sampled_from(_PATHS),
    times=st.sampled_from((1, 1, 3)),
    retry_after_s=st.sampled_from((None, None, 5, 90)),
)
_TROUBLE = st.none() | st.integers(0, 160) | _FAULT
_SUMMARY = st.sampled_from(("better 2.0", "better 3.0", "better 4.0", "none", "refuse"))
_LINE = st.sampled_from(_LINES)
_BY = st.sampled_from((WRITER, WRITER, STRANGER))
_MOST_ROUNDS = 60


@dataclass
class Tally:
    """What all runs together came to."""

    runs: int = 0
    events: int = 0
    crashes: int = 0
    requests: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)


@cache
def empty_store() -> Path:
    """Return a database without rows: to make one takes longer than a run."""
    path = Path(tempfile.mkdtemp(prefix="kernelevolve-")) / "store.sqlite"
    with Store(f"sqlite:///{path}") as store:
        store.migrate()
    return path


class BadDays(RuleBasedStateMachine):
    """See the module."""

    tally: ClassVar[Tally] = Tally()

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="kernelevolve-"))
        self.stage = Stage(self.folder, config=_CONFIG, empty_store=empty_store())
        self.stage.__enter__()
        self.version = 0
        self.restarts = 0
        self.skewed = False
        self.theirs: list[str] = []
        """Commits of people's on the daemon's branch."""
        self.asked_again: set[int] = set()
        """Numbers below which a writer said ``/reopen``."""

    @initialize()
    def begin(self) -> None:
        self.stage.push_operator("better 2.0")
        titles = ("Faster, please", "Slow again")
        self.issues = [self.stage.github.open_issue(OWNER, title) for title in titles]
        self.stage.round()
        self.stage.turn()

    @rule(summary=_SUMMARY, anew=st.sampled_from((True, True, False)), trouble=_TROUBLE)
    def push(self, summary: str, trouble: "Trouble", *, anew: bool) -> None:
        self.version += anew
        self.stage.push_operator(summary, version=self.version)
        self._do(self.stage.turn, trouble)

    @rule(line=_LINE, place=st.integers(0, 3), by=_BY, trouble=_TROUBLE, rounds=st.integers(0, 2))
    def say(self, line: str, place: int, by: str, trouble: "Trouble", rounds: int) -> None:
        pulls = self.stage.own_pulls()
        number = pulls[-1].number if place < 2 and pulls else self.issues[place % 2]
        self.stage.github.comment(number, by, line)
        if line == "/reopen" and by == WRITER:
            self.asked_again.add(number)
        self._do(lambda: self.stage.rounds(rounds), trouble)

    @rule(deed=st.sampled_from(("merge", "close", "push", "drop", "take back")), trouble=_TROUBLE)
    def decide(self, deed: str, trouble: "Trouble") -> None:
        """Decide something about the last pull request, while a search for it is asked for."""
        github, pulls = self.stage.github, self.stage.own_pulls()
        heads = github.git.heads()
        if pulls:
            github.comment(pulls[-1].number, WRITER, "/optimize")
            self.stage.rounds(2)
        if deed == "take back":
            self._take_back()
        elif deed == "merge" and self._is_open() and self._merges(heads):
            github.merge(pulls[-1].number, WRITER)
        elif deed == "close" and pulls:
            github.close(pulls[-1].number, WRITER)
        elif deed == "push" and BRANCH in heads:
            self.theirs.append(github.push(BRANCH, {"notes.md": f"{len(self.theirs)}"}, WRITER))
        elif deed == "drop" and BRANCH in heads:
            github.delete_branch(BRANCH, WRITER)
            self.theirs.clear()
        self._do(self.stage.turn, trouble)

    def _take_back(self) -> None:
        """Delete the last comment of a person's."""
        bot = self.stage.github.bot.id
        theirs = [c for c in self.stage.github.world.comments.values() if c.user.id != bot]
        if theirs:
            self.stage.github.delete_comment(theirs[-1].id)

    def _merges(self, heads: dict[str, str]) -> bool:
        return BRANCH in heads and self.stage.github.git.merges(heads["main"], heads[BRANCH])

    def _do(self, act: Callable[[], None], trouble: "Trouble") -> None:
        """Have the daemon do something while something goes wrong."""
        if isinstance(trouble, int):
            if self.stage.crash(trouble, act):
                self.restarts += 1
                self.tally.crashes += 1
            return
        if trouble is not None:
            self.stage.github.quirks.faults.append(replace(trouble))
        act()

    @rule(hidden=st.integers(0, 3), stale=st.integers(0, 2), looks=st.integers(0, 2))
    def lag(self, hidden: int, stale: int, looks: int) -> None:
        """Let the host know later of what it was told."""
        quirks = self.stage.github.quirks
        quirks.hidden_looks, quirks.stale_lists = hidden, stale
        quirks.mergeable_after_looks = looks
        quirks.most_per_page = 2 if stale == 0 else 100

    @rule(which=st.lists(st.integers(0, 10_000), max_size=6))
    def deliver(self, which: list[int]) -> None:
        """Deliver some of what happened, in any order, some of it twice; the rest never."""
        sent = self.stage.github.deliveries
        for number in which if sent else ():
            one = sent[number % len(sent)]
            headers = [(n.lower().encode(), v.encode()) for n, v in one.headers.items()]
            envelope = open_envelope(headers)
            now = self.stage.clock.time()
            found = find_delivery(envelope, one.body, self.stage.reception.addressee, now=now)  # type: ignore[arg-type] # of the host's own headers
            if isinstance(found, Delivery):
                self.stage.store.receive(found)

    @rule(seconds=st.sampled_from((1, 20, 70, 700, 4000)))
    def wait(self, seconds: float) -> None:
        self.stage.clock.now_s += seconds

    @rule(seconds=st.sampled_from((-20.0, 0.0, 20.0)))
    def set_clock(self, seconds: float) -> None:
        self.stage.clock.ahead_s = seconds
        self.skewed |= seconds != 0

    @rule()
    def expire(self) -> None:
        self.stage.github.expire_tokens()

    @rule()
    def restart(self) -> None:
        self.stage.restart()
        self.restarts += 1

    @rule(trouble=_TROUBLE, count=st.integers(1, 3))
    def go_on(self, trouble: "Trouble", count: int) -> None:
        self._do(lambda: self.stage.rounds(count), trouble)
        self._do(self.stage.turn, None)

    @invariant()
    def nothing_is_doubled(self) -> None:
        self.tally.events += 1
        github = self.stage.github
        found = [*find_doubled(github, self.asked_again), *find_undone(github, self.theirs)]
        self.tally.doubled += found
        assert not found

    def _is_open(self) -> bool:
        return any(p.state == "open" for p in self.stage.own_pulls())

    def teardown(self) -> None:
        try:
            self._settle()
            lost = list(find_lost(self.stage.github, self.stage.store))
            self.tally.lost += lost
            assert not lost
            self.nothing_is_doubled()
            impatient = self.stage.github.impatient
            if not self.skewed and len(impatient) > 2 * (1 + self.restarts):
                self.tally.violations.append(f"{len(impatient)} requests while told to wait")
                raise AssertionError(impatient[-1])
        finally:
            self.tally.runs += 1
            self.tally.requests += len(self.stage.github.requests)
            self.tally.violations += self.stage.github.front.violations
            self.stage.__exit__(None, None, None)
            shutil.rmtree(self.folder, ignore_errors=True)

    def _settle(self) -> None:
        """Let all be well, and the daemon work until it has nothing more to do."""
        quirks = self.stage.github.quirks
        quirks.faults.clear()
        quirks.hidden_looks = quirks.stale_lists = quirks.mergeable_after_looks = 0
        self.stage.clock.ahead_s = 0.0
        self.stage.restart()
        self.restarts += 1
        self.stage.clock.now_s += 3700  # the longest that any limit asks for
        for number in range(_MOST_ROUNDS):
            self.stage.turn()
            self.stage.rounds(2, pass_s=20.0)
            if is_held(self.stage.store, BRANCH) and number % 10 == 0 and self.stage.own_pulls():
                self.stage.github.comment(self.stage.own_pulls()[-1].number, WRITER, "/unhold")
            elif is_quiet(self.stage.store):
                return
            elif number > 5:
                self.stage.clock.now_s += 900
