"""What people, and Actions' runners, do at the fake of GitHub."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.github.routes_actions import announce_run, end_run
from tests.github.routes_checks import check_json
from tests.github.routes_pulls import merge
from tests.github.shapes import label_json
from tests.github.shapes_tickets import issue_json
from tests.github.state import Role, Ticket
from tests.github.world import World

Files = Mapping[str, str | bytes | None]


@dataclass(repr=False)
class People:
    """All of it happens at once, as if by the website."""

    world: World
    lock: threading.RLock = field(default_factory=threading.RLock)

    def set_role(self, login: str, role: Role) -> None:
        """Give somebody rights in the repository; ``none`` takes them."""
        with self.lock:
            self.world.user(login).role = role

    def rename(self, login: str, new: str) -> None:
        """Give somebody another login; the number stays."""
        with self.lock:
            user = self.world.users.pop(login.lower())
            user.login = new
            self.world.users[new.lower()] = user

    def comment(self, number: int, login: str, body: str) -> int:
        """Write a comment and return its id."""
        with self.lock:
            return self.world.add_comment(number, self.world.user(login), body).id

    def edit_comment(self, comment_id: int, body: str, login: str | None = None) -> None:
        with self.lock:
            comment = self.world.comments[comment_id]
            by = comment.user if login is None else self.world.user(login)
            changes = {"body": {"from": comment.body}}
            comment.body, comment.updated_at = body, self.world.clock()
            self.world.announce_comment("edited", by, comment, changes=changes)

    def delete_comment(self, comment_id: int) -> None:
        with self.lock:
            comment = self.world.comments.pop(comment_id)
            self.world.announce_comment("deleted", comment.user, comment)

    def reactions(self, comment_id: int) -> list[tuple[str, str]]:
        """Return who reacted to a comment, and how."""
        with self.lock:
            comment = self.world.comments[comment_id]
            return [(reaction.user.login, reaction.content) for reaction in comment.reactions]

    def pulls(self) -> list[Ticket]:
        with self.lock:
            return [ticket for ticket in self.world.tickets.values() if ticket.pull]

    def issues(self) -> list[Ticket]:
        with self.lock:
            return [ticket for ticket in self.world.tickets.values() if not ticket.pull]

    def close(self, number: int, login: str) -> None:
        """Close an issue, or a pull request without merging it."""
        with self.lock:
            ticket = self.world.tickets[number]
            self.world.change_state(ticket, "closed", self.world.user(login))

    def reopen(self, number: int, login: str) -> None:
        with self.lock:
            ticket = self.world.tickets[number]
            self.world.change_state(ticket, "open", self.world.user(login))

    def merge(self, number: int, login: str) -> str:
        """Merge a pull request with a merge commit and return its hash."""
        with self.lock:
            return merge(self.world, self.world.tickets[number], by=login)

    def open_issue(
        self, login: str, title: str, body: str = "", *, labels: Sequence[str] = ()
    ) -> int:
        with self.lock:
            user = self.world.user(login)
            return self.world.open_issue(user, title, body, labels=list(labels)).number

    def edit_issue(
        self, number: int, login: str, *, title: str | None = None, body: str | None = None
    ) -> None:
        """Change an issue's or a pull request's words: a ticked checkbox is such a change."""
        with self.lock:
            ticket = self.world.tickets[number]
            changes = {}
            if title is not None:
                changes["title"] = {"from": ticket.title}
                ticket.title = title
            if body is not None:
                changes["body"] = {"from": ticket.body or ""}
                ticket.body = body
            self.world.touch(ticket)
            user = self.world.user(login)
            if ticket.pull:
                self.world.announce_pull("edited", user, ticket, changes=changes)
            else:
                payload = {"issue": issue_json(self.world, ticket), "changes": changes}
                self.world.announce("issues", "edited", user, payload)

    def label(self, number: int, name: str, login: str) -> None:
        with self.lock:
            ticket, label = self.world.tickets[number], self.world.label(name)
            ticket.labels.append(label.name)
            self.world.touch(ticket)
            if ticket.pull:
                shown = label_json(self.world, label)
                user = self.world.user(login)
                self.world.announce_pull("labeled", user, ticket, label=shown)

    def delete_label(self, name: str) -> None:
        """Delete a label of the repository, from all that has it as well."""
        with self.lock:
            self.world.labels.pop(name.lower())
            for ticket in self.world.tickets.values():
                ticket.labels = [kept for kept in ticket.labels if kept.lower() != name.lower()]

    def push(  # noqa: PLR0913 - a line of git's has as many
        self,
        branch: str,
        files: Files,
        login: str,
        *,
        base: str = "main",
        message: str = "change",
        force: bool = False,
    ) -> str:
        """Commit to a branch, on `base` where it is new or forced; return the commit."""
        with self.lock:
            before = self.world.git.heads()
            start = before.get(base) if force else before.get(branch, before.get(base))
            parents = () if start is None else (start,)
            sha = self._commit(parents, files, login, message)
            self.world.git.point(f"refs/heads/{branch}", sha)
            self.world.moved(before, self.world.user(login))
            return sha

    def delete_branch(self, branch: str, login: str) -> None:
        with self.lock:
            before = self.world.git.heads()
            self.world.git.point(f"refs/heads/{branch}", None)
            self.world.moved(before, self.world.user(login))

    def open_pull_request(
        self,
        login: str,
        branch: str,
        *,
        title: str = "A change",
        body: str = "",
        base: str = "main",
    ) -> int:
        with self.lock:
            user = self.world.user(login)
            return self.world.open_pull(user, title, body, head=branch, base=base).number

    def open_pull_request_from_fork(  # noqa: PLR0913 - as at the host
        self,
        login: str,
        files: Files,
        *,
        branch: str = "patch-1",
        title: str = "A change",
        body: str = "",
        base: str = "main",
    ) -> int:
        """Commit in somebody's fork and open a pull request of it."""
        with self.lock:
            user = self.world.user(login)
            head = self.world.git.heads()[base]
            sha = self._commit((head,), files, login, title)
            self.world.git.point(f"refs/forks/{login}/{branch}", sha)
            ticket = self.world.open_pull(user, title, body, head=branch, base=base, fork=user)
            return ticket.number

    def push_to_fork(self, number: int, files: Files) -> str:
        """Add a commit to the head of a pull request from a fork."""
        with self.lock:
            ticket = self.world.tickets[number]
            pull = ticket.pull
            assert pull
            assert pull.fork
            old, login = pull.head_sha, pull.fork.login
            pull.head_sha = self._commit((old,), files, login, "more")
            pull.looks = 0
            self.world.git.point(f"refs/forks/{login}/{pull.head}", pull.head_sha)
            self.world.git.point(f"refs/pull/{number}/head", pull.head_sha)
            self.world.touch(ticket)
            more = {"before": old, "after": pull.head_sha}
            self.world.announce_pull("synchronize", pull.fork, ticket, **more)
            return pull.head_sha

    def start_run(self, run_id: int) -> None:
        """Let a runner take up a workflow's run."""
        with self.lock:
            run = self.world.runs[run_id]
            run.status, run.updated_at = "in_progress", self.world.clock()
            announce_run(self.world, "in_progress", run)

    def end_run(
        self,
        run_id: int,
        conclusion: str = "success",
        artifacts: Mapping[str, Mapping[str, bytes]] | None = None,
    ) -> None:
        """End a workflow's run; each artefact of it holds files by name."""
        with self.lock:
            end_run(self.world, self.world.runs[run_id], conclusion, artifacts or {})

    def rerequest_check(self, check_id: int, login: str) -> None:
        """Press the button that runs a check again: no more than a webhook to its App."""
        with self.lock:
            shown = check_json(self.world, self.world.checks[check_id])
            user = self.world.user(login)
            self.world.announce("check_run", "rerequested", user, {"check_run": shown})

    def _commit(self, parents: tuple[str, ...], files: Files, login: str, message: str) -> str:
        at = self.world.clock()
        return self.world.git.commit(parents, files, by=login, message=message, at=at)
