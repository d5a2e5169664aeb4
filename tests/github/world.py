"""The state of the fake of GitHub, and all that can happen to it, whoever does it."""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tests.github.hooks import make_delivery
from tests.github.quirks import Quirks
from tests.github.repository import Repository
from tests.github.shapes import node_id, repository_json, user_json
from tests.github.shapes_tickets import comment_json, issue_json, push_json, whole_pull_json
from tests.github.state import (
    Artifact,
    CheckRun,
    Comment,
    CommitStatus,
    Delivery,
    Json,
    Label,
    Pull,
    Reaction,
    Role,
    Run,
    Ticket,
    User,
    iso,
)

LONGEST_BODY = 65536
_STATE = "state"
EVENTS = ("issue_comment", "pull_request", "push", "issues", "check_run", "workflow_run")


class RefusedError(Exception):
    """What an API call does not let happen; `errors` as in a 422's body."""

    def __init__(self, status: int, message: str, errors: list[Json] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.errors = errors


@dataclass
class World:
    """One repository with people, and an App installed on it. Its users lock it."""

    folder: Path
    clock: Callable[[], float]
    quirks: Quirks
    name: str
    owner: User
    bot: User
    app_id: int
    installation_id: int
    permissions: dict[str, str]
    """What the App may do here, by name: ``read`` or ``write``."""
    hook_secret: str
    private: bool = False
    hook_url: str | None = None
    base: str = "http://127.0.0.1"
    """The server's address, without a slash at its end."""
    deliver: Callable[[Delivery], None] = lambda _: None
    git: Repository = field(init=False)
    born: float = field(init=False)
    users: dict[str, User] = field(default_factory=dict)
    """By login in lower case, as GitHub compares them."""
    teams: set[str] = field(default_factory=set)
    protected: set[str] = field(default_factory=set)
    """Branches that only administrators may push to."""
    tickets: dict[int, Ticket] = field(default_factory=dict)
    comments: dict[int, Comment] = field(default_factory=dict)
    labels: dict[str, Label] = field(default_factory=dict)
    checks: dict[int, CheckRun] = field(default_factory=dict)
    statuses: list[CommitStatus] = field(default_factory=list)
    runs: dict[int, Run] = field(default_factory=dict)
    artifacts: dict[int, Artifact] = field(default_factory=dict)
    deliveries: list[Delivery] = field(default_factory=list)
    new_id: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1001))

    def __post_init__(self) -> None:
        """Make the repository."""
        self.git = Repository(self.folder / self.owner.login / f"{self.name}.git")
        self.born = self.clock()
        self.users = {user.login.lower(): user for user in (self.owner, self.bot)}

    @property
    def web(self) -> str:
        return "https://github.com" if self.quirks.foreign_urls else self.base

    @property
    def api(self) -> str:
        return "https://api.github.com" if self.quirks.foreign_urls else f"{self.base}/api/v3"

    @property
    def full_name(self) -> str:
        return f"{self.owner.login}/{self.name}"

    @property
    def repo_url(self) -> str:
        return f"{self.api}/repos/{self.full_name}"

    @property
    def page(self) -> str:
        return f"{self.web}/{self.full_name}"

    def app_json(self) -> Json:
        slug = self.bot.login.removesuffix("[bot]")
        return {
            "id": self.app_id,
            "slug": slug,
            "node_id": node_id("App", self.app_id),
            "client_id": f"Iv1.{self.app_id}",
            "owner": user_json(self, self.owner),
            "name": slug,
            "description": None,
            "external_url": f"{self.web}/{slug}",
            "html_url": f"{self.web}/apps/{slug}",
            "created_at": iso(self.born),
            "updated_at": iso(self.born),
            "permissions": dict(self.permissions),
            "events": list(EVENTS),
        }

    def user(self, login: str) -> User:
        """Return somebody, who joins where nobody has that name."""
        if login.lower() not in self.users:
            kind: Literal["User", "Bot"] = "Bot" if login.endswith("[bot]") else "User"
            self.users[login.lower()] = User(next(self.new_id), login, kind)
        return self.users[login.lower()]

    def role(self, user: User) -> Role:
        """Return what somebody may do: anybody reads a public repository."""
        return "read" if user.role == "none" and not self.private else user.role

    def label(self, name: str) -> Label:
        """Return a label, made where there is none."""
        if name.lower() not in self.labels:
            self.labels[name.lower()] = Label(next(self.new_id), name)
        return self.labels[name.lower()]

    def announce(self, event: str, action: str | None, by: User, payload: Json) -> None:
        """Make a webhook delivery and hand it on."""
        whole = payload | {"repository": repository_json(self), "sender": user_json(self, by)}
        if action is not None:
            whole = {"action": action} | whole
        whole["installation"] = {
            "id": self.installation_id,
            "node_id": node_id("Installation", self.installation_id),
        }
        number, now = next(self.new_id), self.clock()
        made = make_delivery(number, event, action, whole, secret=self.hook_secret, at=now)
        made.headers["X-GitHub-Hook-Installation-Target-ID"] = str(self.app_id)
        self.deliveries.append(made)
        self.deliver(made)

    def open_issue(
        self, user: User, title: str, body: str | None, *, labels: list[str], via_app: bool = False
    ) -> Ticket:
        ticket = self._add_ticket(user, title, body, via_app=via_app)
        ticket.labels = [self.label(name).name for name in labels]
        self.announce("issues", "opened", user, {"issue": issue_json(self, ticket)})
        return ticket

    def open_pull(  # noqa: PLR0913 - as many as the host's call has
        self,
        user: User,
        title: str,
        body: str | None,
        *,
        head: str,
        base: str,
        draft: bool = False,
        fork: User | None = None,
        via_app: bool = False,
    ) -> Ticket:
        """Open a pull request.

        Raises:
            RefusedError: As GitHub refuses it.
        """
        heads = self.git.heads()
        ref = f"refs/forks/{fork.login}/{head}" if fork else f"refs/heads/{head}"
        head_sha = self.git.find(ref)
        if base not in heads or head_sha is None:
            field_ = "base" if base not in heads else "head"
            error = {"resource": "PullRequest", "field": field_, "code": "invalid"}
            raise RefusedError(422, "Validation Failed", [error])
        owner = fork or self.owner
        if self.git.holds(heads[base], head_sha):
            raise _refusal(None, f"No commits between {base} and {owner.login}:{head}")
        if any(t.state == "open" and (p.head, p.base, p.fork) == (head, base, fork)
               for t in self.tickets.values() if (p := t.pull)):  # fmt: skip
            raise _refusal(None, f"A pull request already exists for {owner.login}:{head}.")
        base_sha = self.git.merge_base(heads[base], head_sha) or heads[base]
        ticket = self._add_ticket(user, title, body, via_app=via_app)
        ticket.pull = Pull(next(self.new_id), head, base, head_sha, base_sha, draft, fork)
        self.git.point(f"refs/pull/{ticket.number}/head", head_sha)
        self.announce_pull("opened", user, ticket)
        return ticket

    def announce_pull(self, action: str, by: User, ticket: Ticket, **more: object) -> None:
        assert ticket.pull
        whole = whole_pull_json(self, ticket, ticket.pull)
        payload = {"number": ticket.number, "pull_request": whole, **more}
        self.announce("pull_request", action, by, payload)

    def change_state(self, ticket: Ticket, state: Literal["open", "closed"], by: User) -> None:
        """Close or reopen.

        Raises:
            RefusedError: A merged one, or one whose branch is gone or moved back, stays closed.
        """
        if ticket.state == state:
            return
        if state == "open" and ticket.pull:
            self._check_reopening(ticket.pull)
        ticket.state = state
        ticket.closed_at = self.clock() if state == "closed" else None
        ticket.closed_by = by if state == "closed" else None
        self.touch(ticket)
        action = "closed" if state == "closed" else "reopened"
        if ticket.pull:
            self.announce_pull(action, by, ticket)
        else:
            self.announce("issues", action, by, {"issue": issue_json(self, ticket)})

    def _check_reopening(self, pull: Pull) -> None:
        if pull.merged_at is not None:
            raise _refusal(_STATE, "Pull Request is already merged")
        sha = self.git.heads().get(pull.head) if pull.fork is None else pull.head_sha
        if sha is None:
            raise _refusal(_STATE, f"The {pull.head} branch has been deleted.")
        if sha != pull.head_sha and not self.git.holds(sha, pull.head_sha):
            words = f"The {pull.head} branch was force-pushed or recreated."
            raise _refusal(_STATE, words)
        pull.head_sha = sha

    def add_comment(self, number: int, user: User, body: str, *, via_app: bool = False) -> Comment:
        now = self.clock()
        comment = Comment(next(self.new_id), number, user, body, now, now, via_app)
        self.comments[comment.id] = comment
        self.touch(self.tickets[number])
        self.announce_comment("created", user, comment)
        return comment

    def announce_comment(self, action: str, by: User, comment: Comment, **more: object) -> None:
        issue = issue_json(self, self.tickets[comment.number])
        payload = {"issue": issue, "comment": comment_json(self, comment), **more}
        self.announce("issue_comment", action, by, payload)

    def react(self, to: Comment | Ticket, user: User, content: str) -> tuple[Reaction, bool]:
        """Add a reaction; return it and whether it is new: the second of a kind is the first."""
        for known in to.reactions:
            if known.user.id == user.id and known.content == content:
                return known, False
        made = Reaction(next(self.new_id), user, content, self.clock())
        to.reactions.append(made)
        return made, True

    def touch(self, ticket: Ticket) -> None:
        ticket.updated_at = self.clock()

    def moved(self, before: Mapping[str, str], by: User) -> None:
        """Draw the consequences of a push, or of a merge, from where the branches were before."""
        after = self.git.heads()
        changed = [b for b in before.keys() | after.keys() if before.get(b) != after.get(b)]
        for ticket in self.tickets.values():
            if ticket.pull and ticket.state == "open":
                self._follow(ticket, ticket.pull, after, changed, by)
        for branch in sorted(changed):
            payload = push_json(self, branch, before.get(branch), after.get(branch), by)
            self.announce("push", None, by, payload)

    def _follow(
        self, ticket: Ticket, pull: Pull, heads: Mapping[str, str], changed: list[str], by: User
    ) -> None:
        sha = pull.head_sha if pull.fork else heads.get(pull.head)
        base = heads.get(pull.base)
        if pull.base in changed:
            pull.looks = 0
        if sha is not None and sha != pull.head_sha:
            old, pull.head_sha, pull.looks = pull.head_sha, sha, 0
            self.git.point(f"refs/pull/{ticket.number}/head", sha)
            self.touch(ticket)
            self.announce_pull("synchronize", by, ticket, before=old, after=sha)
        if base is not None and self.git.holds(base, pull.head_sha):
            self.note_merge(ticket, pull, base, by)
        elif sha is None or base is None:
            self.change_state(ticket, "closed", by)
        elif base is not None:
            pull.base_sha = self.git.merge_base(base, pull.head_sha) or pull.base_sha

    def note_merge(self, ticket: Ticket, pull: Pull, merge_sha: str, by: User) -> None:
        pull.merged_at, pull.merged_by, pull.merge_sha = self.clock(), by, merge_sha
        self.change_state(ticket, "closed", by)

    def _add_ticket(self, user: User, title: str, body: str | None, *, via_app: bool) -> Ticket:
        if len(body or "") > LONGEST_BODY:
            words = f"body is too long (maximum is {LONGEST_BODY} characters)"
            error = {"resource": "Issue", "code": "custom", "field": "body", "message": words}
            raise RefusedError(422, "Validation Failed", [error])
        now = self.clock()
        number = max(self.tickets, default=0) + 1
        made = Ticket(next(self.new_id), number, user, title, body, now, now, via_app=via_app)
        self.tickets[number] = made
        return made


def _refusal(field: str | None, words: str) -> RefusedError:
    error: Json = {"resource": "PullRequest", "code": "custom", "message": words}
    return RefusedError(422, "Validation Failed", [error | ({"field": field} if field else {})])
