"""Goals that people ask for: a search, or a failed one once more. Each has a key of its own."""

from collections.abc import Callable
from dataclasses import dataclass

from pydantic import ValidationError

from daemon.config.file import Configured
from daemon.endings import describe_end
from daemon.planner import Work, queued
from daemon.pulls.pull_request import branch_name
from daemon.report import End
from daemon.talk.commands import Optimize
from daemon.talk.deeds import Deed, done, failed, refused, under_way
from daemon.talk.permissions import Permissions
from daemon.talk.scene import Scene, last_ends
from daemon.talk.wishes import find_stop, is_held
from operator_registry.diff import Goal
from operator_registry.fault import name_one_of
from operator_registry.record import digest
from operator_registry.registry import Registry
from optimizer.store import QueuedGoal, Store, StoredCommand, StoredGoal

MOST_RETRIES = 3
_RETRY = ":retry:"
_RUNS = ", runs"
FindRegistry = Callable[[], tuple[str, Registry] | None]
"""The revision whose goals were queued last, and the registry there; None before the first look."""


@dataclass(frozen=True)
class Asking:
    """Queues what people ask for."""

    store: Store
    config: Configured
    permissions: Permissions
    find_registry: FindRegistry
    clock: Callable[[], float]

    def optimize(self, asked: Optimize, command: StoredCommand, scene: Scene, login: str) -> Deed:
        """Queue a search.

        Raises:
            ForgeError: Nobody can say now what the person may do.
        """
        found = self.find_registry()
        if found is None:
            return refused("the registry was not read yet; ask again in some minutes")
        revision, registry = found
        pair = _pick(asked, scene, registry)
        if isinstance(pair, Deed):
            return pair
        if is_held(self.store, branch_name(*pair)):
            return refused("it is on hold; say unhold first")
        budget_s = asked.budget or registry.config.budget_s
        if obstacle := self._find_obstacle(budget_s, pair[1], login):
            return refused(obstacle)
        reasons = (f"asked for by {login} in #{command.number}",)
        goal = Goal(operator=pair[0], hardware=pair[1], reasons=reasons, share_of_time=0.0)
        made = queued(goal, registry, revision=revision)
        work = Work.from_json(made.payload).model_copy(update={"budget_s": budget_s})
        key = digest("command", str(command.comment_id), str(command.line))
        return self._queue(made.model_copy(update={"key": key, "payload": work.to_json()}), command)

    def retry(self, command: StoredCommand, scene: Scene, login: str) -> Deed:
        """Queue the last job that failed here once more."""
        last = next(iter(last_ends(scene, self.store)), None)
        if command.goal_key is not None:  # a kill came between the queue and the note of it
            key = command.goal_key
            if known := self.store.find_goal(key):
                return under_way(_told(known), goal_key=key)
        if last is None or last[1].verdict != "failed":
            return refused("nothing failed here last; optimize asks for a search")
        goal = last[0]
        if self._has_changed(goal):
            return refused("the operator has changed since; optimize asks for a search of it")
        root, _, count = goal.key.partition(_RETRY)
        if int(count or 0) >= MOST_RETRIES:
            return refused(f"it was tried {MOST_RETRIES} times more already: {last[1].why}")
        again = QueuedGoal(
            key=f"{root}{_RETRY}{int(count or 0) + 1}",
            operator=goal.operator,
            hardware=goal.hardware,
            operator_digest=goal.operator_digest,
            reasons=(*goal.reasons, f"tried again for {login}"),
            share_of_time=goal.share_of_time,
            payload=goal.payload,
        )
        return self._queue(again, command)

    def follow(self, command: StoredCommand) -> Deed | None:
        """Return what has become of a goal; None where nothing new has."""
        goal = self.store.find_goal(command.goal_key or "")
        if goal is None:
            return failed("its job is gone")
        if goal.finished_at is not None:
            return _deed_of(End.from_json(goal.result or ""))
        if goal.holder is not None and not command.told.endswith(_RUNS):
            return Deed("running", f"{command.told}{_RUNS}", "rocket")
        return None

    def _has_changed(self, goal: StoredGoal) -> bool:
        _, registry = self.find_registry() or ("", None)
        operator = registry.operators.get(goal.operator) if registry else None
        return operator is None or operator.digest != goal.operator_digest

    def _find_obstacle(self, budget_s: float, hardware: str, login: str) -> str | None:
        config = self.config()
        if not config.selects(hardware):
            return f"the configuration selects no hardware {hardware}"
        most_s = config.limits.search_minutes * 60
        if budget_s > most_s and not self.permissions.allow(login, "maintain"):
            return f"more than {most_s:g} seconds need the permission maintain"
        return None

    def _queue(self, goal: QueuedGoal, command: StoredCommand) -> Deed:
        """Queue a goal, or join the one that waits already and would do the same."""
        waiting = self.store.pending_goals()
        for other in waiting:
            same = (other.operator, other.hardware, other.operator_digest)
            if find_stop(self.store, other.key) is not None:
                continue  # it ends
            if same[:2] == (goal.operator, goal.hardware) and same[2] != goal.operator_digest:
                # The registry moves just now: the later goal would take the newer one's place.
                return refused("a search of another version of it waits; ask again later")
            if same == (goal.operator, goal.hardware, goal.operator_digest) and (
                other.key == goal.key or _budget_s(other) == _budget_s(goal)
            ):
                return under_way(_told(other), goal_key=other.key)
        # First whose it is: a kill after the next line then finds it again.
        self.store.change_command(
            command.id, state="received", told="", now=self.clock(), goal_key=goal.key
        )
        self.store.enqueue(goal, now=self.clock())
        return under_way(_told(goal), goal_key=goal.key)


def _deed_of(end: End) -> Deed:
    told = describe_end(end)
    match end.verdict:
        case "failed":
            return failed(told)
        case "better":
            return Deed("done", told, "hooray")
        case "stopped" | "superseded" | "obsolete" | "declined":
            return Deed("done", told, "-1")
        case _:
            return done(told)


def job_name(key: str) -> str:
    """Return the name by which people speak of a goal's job."""
    return digest(key)[:8] if _RETRY in key else key[:8]


def _told(goal: QueuedGoal) -> str:
    return f"{goal.operator} on {goal.hardware}, job {job_name(goal.key)}"


def _budget_s(goal: QueuedGoal | StoredGoal) -> float | None:
    try:
        return Work.from_json(goal.payload).budget_s
    except ValidationError:
        return None


def _pick(asked: Optimize, scene: Scene, registry: Registry) -> tuple[str, str] | Deed:
    """Return operator and hardware, or why there are none."""
    operator, hardware = scene.pair or (None, None)
    operator, hardware = asked.op or operator, asked.hw or hardware
    searched = registry.config.hardware
    if operator is None:
        return refused("which operator? write for example op=rms_norm")
    if hardware is None and len(searched) == 1:
        hardware = searched[0]
    if hardware is None:
        return refused(f"which hardware? write hw= and one of {', '.join(searched)}")
    if operator not in registry.operators:
        known = name_one_of(operator, registry.operators)
        return refused(f"the registry has no operator {operator}; {known}")
    if hardware not in searched:
        return refused(f"the registry searches no {hardware}; {name_one_of(hardware, searched)}")
    target = registry.hardware[hardware].target
    if not registry.operators[operator].spec.workloads_on(target):
        return refused(f"{operator} has no workload for {hardware}")
    return operator, hardware
