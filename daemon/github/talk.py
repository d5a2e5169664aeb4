"""What people and the bot say to each other on GitHub: comments, reactions, issues, rights."""

import re
from typing import Literal
from urllib.parse import quote

from daemon.forge import (
    Comment,
    ForgeRefusedError,
    Issue,
    NotThereError,
    Permission,
    Reaction,
)
from daemon.github.records import read_comment, read_issue, read_permission, reading
from daemon.github.speaker import Speaker

_LOGIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}(\[bot\])?\Z")


class Talk(Speaker):
    """The part of the forge that talks with people."""

    def comments(self, *, since: str | None = None) -> tuple[Comment, ...]:
        """See `CodeHost.comments`. Reviews are no comments, and not among them."""
        query = {"sort": "updated", "direction": "asc"}
        if since is not None:
            query["since"] = since.replace("+00:00", "Z")
        found = self.client.pages(self._path("/issues/comments"), query=query)
        return tuple(read_comment(json) for json in found)

    def comment(self, comment_id: int) -> Comment:
        """See `CodeHost.comment`."""
        return read_comment(self._ask("GET", f"/issues/comments/{comment_id}"))

    def comments_on(self, number: int) -> tuple[Comment, ...]:
        """See `CodeHost.comments_on`."""
        found = self.client.pages(self._path(f"/issues/{number}/comments"))
        return tuple(read_comment(json) for json in found)

    def add_comment(self, number: int, body: str) -> Comment:
        """See `CodeHost.add_comment`."""
        made = read_comment(self._ask("POST", f"/issues/{number}/comments", {"body": body}))
        self.client.note_made(self._path(f"/issues/comments/{made.id}"))
        return made

    def edit_comment(self, comment_id: int, body: str) -> Comment:
        """See `CodeHost.edit_comment`."""
        old = self.comment(comment_id)
        # GitHub would let an App change anybody's comment.
        if old.author.id != self.me.id:
            msg = f"comment {comment_id} is {old.author.login}'s: it is left as it is"
            raise ForgeRefusedError(msg)
        if old.body == body:
            return old
        return read_comment(self._ask("PATCH", f"/issues/comments/{comment_id}", {"body": body}))

    def react(self, comment_id: int, reaction: Reaction) -> None:
        """See `CodeHost.react`. Eyes go before all else: somebody waits for a sign of life."""
        path = f"/issues/comments/{comment_id}/reactions"
        self._ask("POST", path, {"content": reaction}, urgent=reaction == "eyes")

    def permission(self, login: str) -> Permission:
        """See `CodeHost.permission`; strangers have none."""
        if not _LOGIN.match(login):
            return "none"
        try:
            name = quote(login, safe="")
            return read_permission(self._ask("GET", f"/collaborators/{name}/permission"))
        except NotThereError:
            return "none"

    def issues(self, *, label: str) -> tuple[Issue, ...]:
        """See `CodeHost.issues`."""
        query = {"labels": label, "state": "all", "sort": "created", "direction": "asc"}
        found = self.client.pages(self._path("/issues"), query=query)
        return tuple(read_issue(json) for json in found if "pull_request" not in json)

    def open_issue(self, title: str, body: str, labels: tuple[str, ...]) -> Issue:
        """See `CodeHost.open_issue`. An open one of ours with the same title is taken for it."""
        query = {"creator": self.me.login, "state": "open", "labels": ",".join(labels)}
        for json in self.client.pages(self._path("/issues"), query=query):
            if "pull_request" not in json and read_issue(json).title == title.strip():
                return read_issue(json)
        wanted = {"title": title, "body": body, "labels": list(labels)}
        made = read_issue(self._ask("POST", "/issues", wanted))
        self.client.note_made(self._path(f"/issues/{made.number}"))
        return made

    def update_issue(
        self, number: int, *, title: str, body: str, state: Literal["open", "closed"]
    ) -> Issue:
        """See `CodeHost.update_issue`."""
        json = self._ask("GET", f"/issues/{number}")
        with reading("issue"):
            if "pull_request" in json:
                msg = f"#{number} is a pull request: it is not changed as an issue"
                raise ForgeRefusedError(msg)
        old = read_issue(json)
        wanted = {"title": title, "body": body, "state": state}
        now = {"title": old.title, "body": old.body.replace("\r\n", "\n"), "state": old.state}
        changes = {name: new for name, new in wanted.items() if new != now[name]}
        return read_issue(self._ask("PATCH", f"/issues/{number}", changes)) if changes else old
