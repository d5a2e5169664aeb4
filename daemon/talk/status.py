"""What the status comment of an issue or a pull request shows now: read from the store alone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from daemon.agenda import in_order
from daemon.planner import Work
from daemon.talk.asking import job_name
from daemon.talk.scene import Scene, goals_here
from daemon.talk.sticky import JobRow, Row, render_status
from daemon.talk.wishes import find_wish, is_held
from optimizer.store import Store, StoredGoal

_MOST_COMMANDS = 50
_MOST_JOBS = 20


@dataclass(frozen=True)
class StatusComments:
    """Renders status comments."""

    store: Store
    look: Callable[[int], Scene]
    clock: Callable[[], float]

    def render(self, number: int) -> str:
        """Return the text of one.

        Raises:
            ForgeError: The code host can't be asked now what the number is.
        """
        scene = self.look(number)
        commands = self.store.commands(number=number, limit=_MOST_COMMANDS)
        rows = [Row(c.received_at, c.author, c.text, c.state, c.told) for c in commands]
        jobs = describe_jobs(scene, self.store, now=self.clock())
        return render_status(
            rows, jobs, notices=self._notices(scene), is_request=scene.pair is not None
        )

    def _notices(self, scene: Scene) -> Sequence[str]:
        notices = [self.store.recall(f"notice/{scene.number}") or ""]
        if scene.branch is not None and is_held(self.store, scene.branch):
            notices.append(
                "on hold: nothing is searched or changed here until somebody says unhold"
            )
        return notices


def describe_jobs(scene: Scene, store: Store, *, now: float) -> tuple[JobRow, ...]:
    """Return what waits or runs for a scene, with its place in the queue and what is before it."""
    queue = in_order(store.pending_goals(), kernels=(), budget_s=1.0)
    here = {goal.key for goal in goals_here(scene, store)}
    rows: list[JobRow] = []
    ahead_s = 0.0
    for place, goal in enumerate(queue):
        if goal.key in here:
            what = f"{goal.operator} on {goal.hardware}"
            rows.append(
                JobRow(job_name(goal.key), what, _state(goal, store, place, ahead_s, now=now))
            )
        ahead_s += _budget_s(goal)
    if scene.branch is not None and find_wish(store, "verify", scene.branch) is not None:
        rows.append(JobRow("verify", "the kernel at the head, again", "wanted"))
    return tuple(rows[:_MOST_JOBS])


def _state(goal: StoredGoal, store: Store, place: int, ahead_s: float, *, now: float) -> str:
    if goal.holder is not None and (goal.held_until or 0.0) > now:
        return f"running, {sum(store.outcome_counts(goal.key).values())} trials so far"
    wait = f", {ahead_s / 60:.0f} minutes of searching before it" if ahead_s >= 60 else ""  # noqa: PLR2004 - less is no wait
    return f"number {place + 1} in the queue{wait}"


def _budget_s(goal: StoredGoal) -> float:
    try:
        return Work.from_json(goal.payload).budget_s
    except ValidationError:
        return 0.0
