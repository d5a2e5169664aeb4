"""Commits that the bot did not make on its branches: they are left alone, and it is said so."""

from dataclasses import dataclass

from daemon.forge import CodeHost, PullRequest
from daemon.logs import find_log
from daemon.outbox import post_sticky
from daemon.pulls.branches import Branches
from daemon.pulls.interest import note_interest
from daemon.pulls.pull_request import EDITED_LABEL, add_notice, drop_notice
from daemon.talk.wishes import answer_wish
from optimizer.store import Store

log = find_log(__name__)


@dataclass(frozen=True)
class Strangers:
    """Says once of each such commit that it is respected."""

    host: CodeHost
    branches: Branches
    store: Store

    def respect(self, shown: PullRequest, sha: str) -> PullRequest:
        """Return the pull request with label and note that its branch is left alone.

        Both are put there once for each head: what a person takes away stays away.

        Raises:
            ForgeError: The code host can't be asked now.
        """
        told = "the branch holds commits that the bot did not make"
        answer_wish(self.store, "rebase", shown.head, told, well=False)
        if self.store.recall(_mark(shown)) == sha:
            return shown
        marker = self.branches.marker_of(shown)
        where = marker.head if marker else "where the bot had it"
        notice = (
            "this branch holds commits that the bot did not make, so it no longer touches it; "
            f"to hand it back, set the branch back to {where}."
        )
        if EDITED_LABEL not in shown.labels:  # where it is there, a newer result may be told of
            draft = add_notice(shown, notice, label=EDITED_LABEL)
            shown = self.host.update_pull_request(shown.number, draft)
        self._tell(shown, notice)
        note_interest(self.store, self.branches.clock(), number=shown.number)
        self.store.mark(_mark(shown), sha)
        log.info("branch has commits of somebody else", branch=shown.head, sha=sha)
        return shown

    def forget(self, shown: PullRequest) -> PullRequest:
        """Return the pull request without label and note, since its branch is ours again.

        Raises:
            ForgeError: The code host can't be asked now.
        """
        if not self.store.recall(_mark(shown)):
            return shown
        draft = drop_notice(shown)
        shown = self.host.update_pull_request(shown.number, draft)
        self._tell(shown, "")
        self.store.mark(_mark(shown), "")
        return shown

    def _tell(self, shown: PullRequest, notice: str) -> None:
        self.store.mark(f"notice/{shown.number}", notice)
        post_sticky(self.store, shown.number, now=self.branches.clock())


def _mark(shown: PullRequest) -> str:
    return f"edited/{shown.number}"
