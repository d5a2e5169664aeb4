"""What people ask of a branch of the bot's: hold it, rebase it, open it again, verify its head."""

from collections.abc import Callable
from dataclasses import dataclass

from daemon.board.onboarding import BRANCH as ONBOARDING
from daemon.config.file import Configured
from daemon.talk.commands import Benchmark, Hold, Unhold, Verify
from daemon.talk.deeds import Deed, done, failed, refused, under_way
from daemon.talk.permissions import Permissions
from daemon.talk.scene import Scene
from daemon.talk.wishes import Wish, WishKind, find_answer, find_wish, hold, is_held, unhold, wish
from optimizer.store import Store, StoredCommand

_WISH_S = 2 * 3600.0
"""Whoever should have answered a wish by then will not."""
_NOT_OURS = "this is no pull request of the bot's; say it below one of them"


@dataclass(frozen=True)
class BranchAsking:
    """Marks wishes; the shepherd of pull requests grants them."""

    store: Store
    config: Configured
    permissions: Permissions
    clock: Callable[[], float]

    def hold(self, asked: Hold | Unhold, scene: Scene, login: str) -> Deed:
        """Have a branch left alone, or no longer."""
        if scene.branch is None:
            return refused(_NOT_OURS)
        if isinstance(asked, Hold):
            hold(self.store, scene.branch, login)
            return done("nothing is searched for it, and it is left as it is, until unhold")
        was = is_held(self.store, scene.branch)
        unhold(self.store, scene.branch)
        return done("it goes on" if was else "it was not on hold")

    def verify(
        self, asked: Benchmark | Verify, command: StoredCommand, scene: Scene, login: str
    ) -> Deed:
        """Have the very commit verified that the person saw; never one that came later.

        Raises:
            ForgeError: Nobody can say now what the person may do.
        """
        if scene.request is not None and scene.request.from_fork:
            return refused("nothing of another repository is run here")
        if scene.request is None or scene.branch is None:
            return refused(_NOT_OURS)
        head, most_s = scene.request.head_sha, self.config().limits.search_minutes * 60
        if command.head_sha != head:
            return refused("the head has moved since; look at it, and comment again")
        if asked.sha is not None and not head.startswith(asked.sha):
            return refused(f"the head is {head[:12]}, not {asked.sha}")
        if (asked.budget or 0) > most_s and not self.permissions.allow(login, "maintain"):
            return refused(
                f"more than {most_s:g} seconds are for those with the permission maintain"
            )
        wanted = Wish(
            by=login, at=self.clock(), sha=head, budget_s=asked.budget, command=command.id
        )
        return self._ask("verify", scene.branch, wanted)

    def rebase(self, command: StoredCommand, scene: Scene, login: str) -> Deed:
        """Have a branch put on top of its base."""
        if scene.branch is not None and is_held(self.store, scene.branch):
            return refused("it is on hold; say unhold first")
        return self._change("rebase", command, scene, login, wants="open")

    def reopen(self, command: StoredCommand, scene: Scene, login: str) -> Deed:
        """Take back the no that closing it was."""
        return self._change("reopen", command, scene, login, wants="closed")

    def follow(self, kind: WishKind, command: StoredCommand, scene: Scene) -> Deed | None:
        """Return what came of a wish; None where that is not known yet."""
        branch = ONBOARDING if scene.asks else scene.branch
        if branch is None:
            return failed("the pull request is gone")
        if answer := find_answer(self.store, kind, branch):
            return done(answer.told) if answer.well else failed(answer.told)
        if self.clock() - command.changed_at > _WISH_S:
            return failed("nothing came of it within two hours; ask again")
        return None

    def _change(
        self, kind: WishKind, command: StoredCommand, scene: Scene, login: str, *, wants: str
    ) -> Deed:
        branch = ONBOARDING if scene.asks and kind == "reopen" else scene.branch
        if scene.request is None or branch is None:
            return refused(_NOT_OURS)
        if scene.request.state != wants:
            return refused(f"the pull request is {scene.request.state}")
        return self._ask(kind, branch, Wish(by=login, at=self.clock(), command=command.id))

    def _ask(self, kind: WishKind, branch: str, wanted: Wish) -> Deed:
        known, answer = find_wish(self.store, kind, branch), find_answer(self.store, kind, branch)
        # Killed after the wish was marked, this runs again, when it may be answered already.
        is_answered = answer is not None and answer.command == wanted.command
        if not is_answered and (known is None or known.sha != wanted.sha):
            wish(self.store, kind, branch, wanted)
        return under_way(f"{kind} is under way")
