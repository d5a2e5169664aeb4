"""Ends what waits or runs because a person wants it to: always heard, whatever is used up."""

from collections.abc import Callable
from dataclasses import dataclass

from daemon.report import End
from daemon.talk.asking import job_name
from daemon.talk.commands import Stop
from daemon.talk.deeds import Deed, done, refused, under_way
from daemon.talk.scene import Scene, goals_here
from daemon.talk.wishes import answer_wish, find_wish, stop_job
from optimizer.store import Store, StoredCommand, StoredGoal

VERIFYING = "verify/"
"""How the key of a branch's re-verification begins."""
_NOTHING = "nothing waits or runs here"


@dataclass(frozen=True)
class Stopping:
    """Stops jobs."""

    store: Store
    clock: Callable[[], float]

    def targets(self, asked: Stop, scene: Scene) -> tuple[StoredGoal, ...]:
        """Return the goals that a command would end, in the order of the queue."""
        if asked.job is None:
            return goals_here(scene, self.store)
        return tuple(g for g in self.store.pending_goals() if _is_named(g, asked.job))

    def is_by_starter(self, goals: tuple[StoredGoal, ...], author_id: int) -> bool:
        """Return whether a person has asked for each of the goals himself, and nobody else has."""
        asked = [self.store.commands(goal_key=goal.key) for goal in goals]
        return bool(asked) and all(
            commands and all(command.author_id == author_id for command in commands)
            for commands in asked
        )

    def stop(self, asked: Stop, command: StoredCommand, scene: Scene, login: str) -> Deed:
        """End the goals; those that run are gone some seconds later."""
        keys = self._keys(command)  # where a kill came between the next lines and the note of it
        if not keys:
            keys = [goal.key for goal in self.targets(asked, scene)]
            if asked.job is None and self._verifies(scene):
                keys.append(VERIFYING)
            if not keys:
                return refused(f"there is no job {asked.job}") if asked.job else done(_NOTHING)
            self.store.mark(_mark(command), " ".join(keys))
        for key in keys:
            self._stop_job(key, scene, login)
        return self.follow(command) or under_way(f"{self._names(command)} is being stopped")

    def follow(self, command: StoredCommand) -> Deed | None:
        """Return the end of a command whose goals have all ended; None where one still runs."""
        keys = self._keys(command)
        goals = [goal for key in keys if (goal := self.store.find_goal(key)) is not None]
        if any(goal.finished_at is None for goal in goals):
            return None
        return done(f"{self._names(command)} is stopped")

    def _verifies(self, scene: Scene) -> bool:
        branch = scene.branch
        return branch is not None and find_wish(self.store, "verify", branch) is not None

    def _stop_job(self, key: str, scene: Scene, login: str) -> None:
        if key == VERIFYING:
            if self._verifies(scene):
                stop_job(self.store, f"{VERIFYING}{scene.branch}", login)
                told = f"{login} said stop"
                answer_wish(self.store, "verify", scene.branch or "", told, well=False)
            return
        goal = self.store.find_goal(key)
        if goal is None or goal.finished_at is not None:
            return
        stop_job(self.store, key, login)
        if goal.holder is None:
            end = End.of(goal, "stopped", f"{login} said stop").to_json()
            self.store.finish(key, verdict="stopped", result=end, now=self.clock())

    def _keys(self, command: StoredCommand) -> list[str]:
        return (self.store.recall(_mark(command)) or "").split()

    def _names(self, command: StoredCommand) -> str:
        names = [
            "the verification" if key == VERIFYING else f"job {job_name(key)}"
            for key in self._keys(command)
        ]
        return ", ".join(names)


def _mark(command: StoredCommand) -> str:
    return f"stopping/{command.id}"


def _is_named(goal: StoredGoal, name: str) -> bool:
    return job_name(goal.key).startswith(name) or goal.key.startswith(name)
