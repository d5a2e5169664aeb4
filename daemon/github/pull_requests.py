"""Pull requests on GitHub."""

from daemon.forge import (
    ForgeBusyError,
    ForgeRefusedError,
    ForgeUnavailableError,
    NotThereError,
    PullRequest,
    PullRequestDraft,
)
from daemon.github.answers import GitHubRefusedError, Request
from daemon.github.records import Json, read_pull_request, reading
from daemon.github.speaker import Speaker

_TO_DRAFT = "convertPullRequestToDraft"
_TO_REVIEW = "markPullRequestReadyForReview"


class PullRequests(Speaker):
    """The part of the forge that keeps pull requests."""

    def pull_requests(self, *, head: str | None = None) -> tuple[PullRequest, ...]:
        """See `Forge.pull_requests`. Those of a branch are only the repository's own."""
        query = {"state": "all", "sort": "created", "direction": "desc"}
        if head is not None:
            # Without the owner before it GitHub takes no notice of the branch.
            query["head"] = f"{self.client.repository.split('/')[0]}:{head}"
        found = (self._read(json) for json in self.client.pages(self._path("/pulls"), query=query))
        own = [p for p in found if head is None or (p.head == head and not p.from_fork)]
        return tuple(sorted(own, key=lambda p: -p.number))

    def pull_request(self, number: int) -> PullRequest:
        """See `CodeHost.pull_request`."""
        return read_pull_request(self._find(number), self.client.repository)

    def open_pull_request(self, draft: PullRequestDraft) -> PullRequest:
        """See `Forge.open_pull_request`. One like it that is there already is taken for it."""
        try:
            number = self._create(draft, as_draft=draft.draft)
        except ForgeBusyError:
            raise
        except ForgeUnavailableError:
            # It may be there: the host broke down after it, or the answer was lost.
            found = self._find_equal(draft)
            if found is None:
                raise
            number = found
        self.client.note_made(self._path(f"/pulls/{number}"))
        self.client.note_made(self._path(f"/issues/{number}"))
        self._label(number, (), draft.labels)
        return self._read(self._find(number))

    def update_pull_request(self, number: int, draft: PullRequestDraft) -> PullRequest:
        """See `Forge.update_pull_request`. It becomes a draft, or ready, as well."""
        json = self._find(number)
        old = self._read(json)
        if old.state != "open":
            msg = f"pull request #{number} is {old.state}: it can't be changed"
            raise ForgeRefusedError(msg)
        changes = {
            name: new
            for name, was, new in (
                ("title", old.title, draft.title),
                ("body", old.body, draft.body),
            )
            # A browser that has saved it writes other ends of lines.
            if was.replace("\r\n", "\n").strip() != new.strip()
        }
        if changes:
            self._ask("PATCH", f"/pulls/{number}", changes)
        labelled = self._label(number, old.labels, draft.labels)
        drafted = self._set_draft(json, old, wanted=draft.draft)
        return self._read(self._find(number)) if changes or labelled or drafted else old

    def close_pull_request(self, number: int) -> PullRequest:
        """See `Forge.close_pull_request`."""
        old = self._read(self._find(number))
        if old.state != "open":
            return old
        return self._read(self._ask("PATCH", f"/pulls/{number}", {"state": "closed"}))

    def reopen_pull_request(self, number: int) -> PullRequest:
        """See `CodeHost.reopen_pull_request`."""
        old = self._read(self._find(number))
        if old.state == "open":
            return old
        if old.state == "merged":
            msg = f"pull request #{number} is merged: it can't be opened again"
            raise ForgeRefusedError(msg)
        return self._read(self._ask("PATCH", f"/pulls/{number}", {"state": "open"}))

    def ask_for_review(self, number: int, people: tuple[str, ...]) -> None:
        """See `CodeHost.ask_for_review`. Who is asked already is not asked again."""
        path = f"/pulls/{number}/requested_reviewers"
        now = self._ask("GET", path)
        with reading("list of reviewers"):
            asked = {user["login"].lower() for user in now["users"]}
            asked |= {f"/{team['slug']}" for team in now["teams"]}
        wanted = [p for p in people if p.lower() not in asked and _team(p.lower()) not in asked]
        if not wanted:
            return
        try:
            self._ask("POST", path, _reviewers(wanted))
        except NotThereError:
            raise
        except ForgeRefusedError:
            # One that may not review refuses them all: each is asked alone then.
            for one in wanted if len(wanted) > 1 else ():
                self._try_reviewer(path, one)

    def _try_reviewer(self, path: str, one: str) -> None:
        try:
            self._ask("POST", path, _reviewers([one]))
        except NotThereError:
            raise
        except ForgeRefusedError:
            return

    def _find(self, number: int) -> Json:
        try:
            return self._ask("GET", f"/pulls/{number}")
        except NotThereError as error:
            msg = f"there is no pull request #{number}"
            raise NotThereError(msg) from error

    def _read(self, json: Json) -> PullRequest:
        """Return one as lists show it: they don't tell whether it can be merged."""
        found = read_pull_request(json, self.client.repository)
        return found.model_copy(update={"mergeable": None})

    def _create(self, draft: PullRequestDraft, *, as_draft: bool) -> int:
        wanted = {name: getattr(draft, name) for name in ("title", "body", "head", "base")}
        try:
            made = self._ask("POST", "/pulls", wanted | {"draft": as_draft})
        except GitHubRefusedError as error:
            if as_draft and "draft pull requests are not supported" in error.told:
                self._knows_drafts = False
                return self._create(draft, as_draft=False)
            if "already exists" in error.told:
                found = self._find_equal(draft)
                if found is not None:
                    return found
            raise _explained(error, draft) from error
        with reading("pull request"):
            return int(made["number"])

    def _find_equal(self, draft: PullRequestDraft) -> int | None:
        wanted = (draft.title.strip(), draft.body.strip(), draft.base)
        for found in self.pull_requests(head=draft.head):
            mine = found.author is not None and found.author.id == self.me.id
            there = (found.title, found.body.replace("\r\n", "\n").strip(), found.base)
            if found.state == "open" and mine and there == wanted:
                return found.number
        return None

    def _label(self, number: int, old: tuple[str, ...], new: tuple[str, ...]) -> bool:
        if {name.lower() for name in old} == {name.lower() for name in new}:
            return False
        self._ask("PUT", f"/issues/{number}/labels", {"labels": list(new)})
        return True

    def _set_draft(
        self,
        json: Json,
        old: PullRequest,
        *,
        wanted: bool,
    ) -> bool:
        if old.draft == wanted or not self._knows_drafts:
            return False
        name = _TO_DRAFT if wanted else _TO_REVIEW
        query = (
            f"mutation($input: {name[0].upper()}{name[1:]}Input!) "
            f"{{ {name}(input: $input) {{ pullRequest {{ isDraft }} }} }}"
        )
        with reading("pull request"):
            asked = {"query": query, "variables": {"input": {"pullRequestId": json["node_id"]}}}
        answer = self.client.ask(Request("POST", self.client.graphql, body=asked)).json
        with reading("pull request"):
            errors = [(e.get("type"), str(e.get("message"))) for e in answer.get("errors") or ()]
        if not errors:
            return True
        # Here errors come with status 200. Without drafts it stays as it is; the rest is for later.
        told = "; ".join(message for _, message in errors)
        if "not supported" in told or any(kind == "FORBIDDEN" for kind, _ in errors):
            self._knows_drafts = False
            return False
        msg = f"pull request #{old.number}: GitHub makes it no draft, or no longer: {told}"
        raise ForgeUnavailableError(msg)


def _reviewers(people: list[str]) -> dict[str, list[str]]:
    return {
        "reviewers": [one for one in people if "/" not in one],
        "team_reviewers": [one.split("/", 1)[1] for one in people if "/" in one],
    }


def _team(name: str) -> str:
    return f"/{name.split('/', 1)[1]}" if "/" in name else name


def _explained(error: GitHubRefusedError, draft: PullRequestDraft) -> ForgeRefusedError:
    """Return GitHub's refusal of a new pull request in the words that all forges use."""
    if "already exists" in error.told:
        return ForgeRefusedError(f"{draft.head} has an open pull request already")
    if "no commits between" in error.told:
        told = f"{draft.base} holds all of {draft.head} already: there is nothing to merge"
        return ForgeRefusedError(told)
    for field_name, branch in (("head", draft.head), ("base", draft.base)):
        if f"{field_name} invalid" in error.told:
            return ForgeRefusedError(f"there is no branch {branch}")
    return error
