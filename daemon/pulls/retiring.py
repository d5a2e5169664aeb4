"""Closes pull requests that nobody needs any more, slowly and with the reason."""

from dataclasses import dataclass

from daemon.forge import CodeHost, PullRequest, PullRequestDraft
from daemon.logs import find_log
from daemon.markdown import plain
from daemon.outbox import post_comment
from daemon.pulls.branches import Branches, retired_mark
from daemon.pulls.obsolete import closing_title
from daemon.pulls.pull_request import add_notice, remark
from optimizer.store import Store

log = find_log(__name__)
PATIENCE_S = 300.0
"""Between the first look that found a reason and the one that closes."""
_CLOSING, _CLOSED = "closing", "closed"


@dataclass(frozen=True)
class Retiring:
    """Closes what was found obsolete twice, some minutes apart."""

    host: CodeHost
    branches: Branches
    store: Store

    def consider(self, shown: PullRequest, sha: str, reason: str | None) -> bool:
        """Return whether the open pull request was closed.

        What a person has opened again after that stays open.

        Raises:
            ForgeError: The code host can't be asked now.
            WorkspaceError: The origin can't be reached now.
        """
        state = self._state_of(shown)
        if state == _CLOSED:
            return False
        if state != _CLOSING and not self._is_certain(shown.number, reason):
            return False
        self._close(shown, sha, reason or "nobody needs it any more")
        return True

    def has_closed(self, number: int) -> bool:
        """Return whether it was the bot that closed a pull request, or is about to."""
        return self.store.recall(retired_mark(number)) is not None

    def finish(self, request: PullRequest, sha: str | None) -> None:
        """Do what a closing leaves to be done, where a kill came between; `sha` is the branch's.

        Raises:
            WorkspaceError: The origin can't be reached now.
        """
        if request.state != "closed" or self._state_of(request) != _CLOSING:
            return
        if sha is not None and sha == request.head_sha:
            self.branches.repository.delete(request.head, expected=sha)
        self.store.mark(retired_mark(request.number), _CLOSED)

    def _state_of(self, request: PullRequest) -> str | None:
        return self.store.recall(retired_mark(request.number))

    def _is_certain(self, number: int, reason: str | None) -> bool:
        """Return whether the same was found at an earlier look, long enough ago."""
        mark, now = f"obsolete/{number}", self.branches.clock()
        since, _, known = (self.store.recall(mark) or "").partition(" ")
        if reason is None:
            if known:
                self.store.mark(mark, "")
            return False
        if known != reason:
            self.store.mark(mark, f"{now:.3f} {reason}")
            return False
        return now - float(since) >= PATIENCE_S

    def _close(self, shown: PullRequest, sha: str, reason: str) -> None:
        # First, so that a kill from here on can't make the closing somebody's no.
        self.store.mark(retired_mark(shown.number), _CLOSING)
        self.host.update_pull_request(shown.number, self._last_words(shown, reason))
        text = (
            f"Closed by kernelevolve itself: {plain(reason)}. That is nobody's no: once there is a "
            "faster kernel again, it comes in a pull request of its own."
        )
        key, now = f"retired/{shown.number}", self.branches.clock()
        post_comment(self.store, shown.number, text, key=key, now=now)
        self.finish(self.host.close_pull_request(shown.number), sha)
        log.info("pull request closed as obsolete", number=shown.number, reason=reason)

    def _last_words(self, shown: PullRequest, reason: str) -> PullRequestDraft:
        marker = self.branches.marker_of(shown)
        if marker is not None:
            told = remark(shown, marker.model_copy(update={"retired": True}))
            shown = shown.model_copy(update={"body": told.body})
        noted = add_notice(shown, f"closed by the bot: {plain(reason)}.")
        return noted.model_copy(update={"title": closing_title(shown)})
