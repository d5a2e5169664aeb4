"""Where a command stands: below which issue or pull request, and about which of our work."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from daemon.agenda import in_order
from daemon.board.onboarding import BRANCH as ONBOARDING
from daemon.forge import CodeHost, NotThereError, PullRequest
from daemon.pulls.pull_request import branch_name, find_pair
from daemon.report import End
from optimizer.store import Store, StoredGoal

_LOOKED_THROUGH = 500


@dataclass(frozen=True)
class Scene:
    """An issue or a pull request."""

    number: int
    request: PullRequest | None = None
    """None for an issue."""
    pair: tuple[str, str] | None = None
    """Operator and hardware, where it is a pull request of the bot's own."""
    asks: bool = False
    """It is the pull request that asks a registry for its configuration."""

    @property
    def branch(self) -> str | None:
        """Return the branch of ours that it shows."""
        return branch_name(*self.pair) if self.pair else None


@dataclass
class Scenes:
    """Looks at issues and pull requests, each once."""

    host: CodeHost
    _seen: dict[int, Scene] = field(default_factory=dict, init=False)

    def look(self, number: int) -> Scene:
        """Return what is there.

        Raises:
            ForgeError: The code host can't be asked now.
        """
        if number not in self._seen:
            self._seen[number] = self._look(number)
        return self._seen[number]

    def _look(self, number: int) -> Scene:
        try:
            request = self.host.pull_request(number)
        except NotThereError:
            return Scene(number)
        # Anybody can name a branch like ours, in a repository of his own too.
        by_us = request.author is not None and request.author.id == self.host.me.id
        if not by_us or request.from_fork:
            return Scene(number, request)
        return Scene(number, request, find_pair(request.head), asks=request.head == ONBOARDING)


def goals_here(scene: Scene, store: Store) -> tuple[StoredGoal, ...]:
    """Return the goals that wait or run for a scene, in the order in which they will be run."""
    asked = asked_here(scene.number, store)
    pending = in_order(store.pending_goals(), kernels=(), budget_s=1.0)
    return tuple(g for g in pending if g.key in asked or (g.operator, g.hardware) == scene.pair)


def asked_here(number: int, store: Store) -> frozenset[str]:
    """Return the keys of goals that were asked for below an issue or a pull request."""
    commands = store.commands(number=number, limit=_LOOKED_THROUGH)
    return frozenset(command.goal_key for command in commands if command.goal_key)


def last_ends(scene: Scene, store: Store) -> Iterable[tuple[StoredGoal, End]]:
    """Yield the goals that ended for a scene, the newest first."""
    asked = asked_here(scene.number, store)
    for goal in store.finished_goals(limit=_LOOKED_THROUGH):
        if goal.key in asked or (goal.operator, goal.hardware) == scene.pair:
            yield goal, End.from_json(goal.result or "{}")
