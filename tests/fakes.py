"""Stand-ins that remember: for the world's sake, never for our own decisions."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from daemon.forge import ForgeRefusedError, PullRequest, PullRequestDraft
from knowledge.evaluation import Environment, Evaluation
from knowledge.evidence import Evidence
from knowledge.outcome import Outcome
from optimizer.candidate import Candidate
from tests.makers import ENVIRONMENT, make_evaluation, make_evidence, make_passed

AT = "2026-11-30T12:00:00+00:00"


@dataclass
class FakeForge:
    """A code host in memory. A branch's content stands for its commit."""

    branches: dict[str, str] = field(default_factory=lambda: {"main": "first"})
    merged: set[str] = field(default_factory=set)
    known: list[PullRequest] = field(default_factory=list)
    before: Callable[[str], None] = lambda _: None
    """Called with the name of each method first: where a test lets the host fail."""
    writes: list[str] = field(default_factory=list)

    def pull_requests(self, *, head: str | None = None) -> tuple[PullRequest, ...]:
        self.before("pull_requests")
        self.known = [self._seen(p) for p in self.known]
        return tuple(p for p in reversed(self.known) if head in (None, p.head))

    def open_pull_request(self, draft: PullRequestDraft) -> PullRequest:
        self.before("open_pull_request")
        if draft.head not in self.branches:
            msg = f"there is no branch {draft.head}"
            raise ForgeRefusedError(msg)
        if self.branches[draft.head] in self.merged:
            msg = "there is nothing to merge"
            raise ForgeRefusedError(msg)
        if any(p.state == "open" for p in self.pull_requests(head=draft.head)):
            msg = f"{draft.head} has an open pull request already"
            raise ForgeRefusedError(msg)
        made = PullRequest(
            number=len(self.known) + 1,
            state="open",
            head_sha=self.branches[draft.head],
            created_at=AT,
            updated_at=AT,
            **draft.model_dump(),
        )
        self.known.append(made)
        self.writes.append(f"open #{made.number}")
        return made

    def update_pull_request(self, number: int, draft: PullRequestDraft) -> PullRequest:
        self.before("update_pull_request")
        old = self._find(number)
        if old.state != "open":
            msg = f"pull request #{number} is {old.state}"
            raise ForgeRefusedError(msg)
        wanted = {name: getattr(draft, name) for name in ("title", "body", "labels", "draft")}
        return self._changed(old, **wanted)

    def close_pull_request(self, number: int) -> PullRequest:
        self.before("close_pull_request")
        old = self._find(number)
        return self._changed(old, state="closed") if old.state == "open" else old

    def _find(self, number: int) -> PullRequest:
        for known in self.pull_requests():
            if known.number == number:
                return known
        msg = f"there is no pull request #{number}"
        raise ForgeRefusedError(msg)

    def _changed(self, old: PullRequest, **changes: object) -> PullRequest:
        new = old.model_copy(update=changes)
        if new != old:
            self.known[old.number - 1] = new
            self.writes.append(f"{'close' if 'state' in changes else 'update'} #{old.number}")
        return new

    def _seen(self, known: PullRequest) -> PullRequest:
        if known.state != "open":
            return known
        sha = self.branches.get(known.head, known.head_sha)
        state = "merged" if sha in self.merged else "open"
        if known.head not in self.branches and state == "open":
            state = "closed"
        return known.model_copy(update={"state": state, "head_sha": sha})


@dataclass
class FakeClock:
    """Seconds that pass only when a test or a fake says so."""

    now_s: float = 0.0

    def __call__(self) -> float:
        return self.now_s


@dataclass
class FakeRunner:
    """A device that says what it is told to say; a trial takes one second of the clock."""

    try_one: Callable[[Candidate], Outcome] = lambda _: make_passed(0.5)
    confirm_one: Callable[[Candidate], Evidence | Outcome] = make_evidence
    clock: FakeClock = field(default_factory=FakeClock)
    builds_ahead: bool = False
    ran: list[str] = field(default_factory=list)
    built_ahead: list[list[str]] = field(default_factory=list)
    """For each call, the candidates to be built meanwhile."""
    confirmed: list[tuple[str, float, Collection[str]]] = field(default_factory=list)
    """Candidate, level and dispatch of each confirming run."""
    pooled: list[tuple[Evidence, ...]] = field(default_factory=list)
    """For each confirming run, the evidence whose samples count as well."""

    @property
    def environment(self) -> Environment:
        return ENVIRONMENT

    def evaluate(
        self,
        candidates: Sequence[Candidate],
        *,
        ahead: Sequence[Candidate] = (),
        on_done: Callable[[Evaluation], None] = lambda _: None,
    ) -> Sequence[Evaluation]:
        self.built_ahead += [[candidate.id for candidate in ahead]]
        done = []
        for candidate in candidates:
            self.clock.now_s += 1
            self.ran.append(candidate.id)
            done.append(make_evaluation(candidate, self.try_one(candidate)))
            on_done(done[-1])
        return done

    def confirm(
        self,
        candidate: Candidate,
        *,
        deadline_s: float,
        alpha: float,
        handed_back: Collection[str],
        earlier: Sequence[Evidence] = (),
    ) -> Evidence | Outcome:
        self.clock.now_s += 10
        self.pooled.append(tuple(earlier))
        self.confirmed.append((candidate.id, alpha, handed_back))
        return self.confirm_one(candidate)
