"""Goals worked on side by side: begun in agenda order as devices get free, ended as jobs end."""

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from daemon.fleet.pool import Pool
from operator_registry.hardware import HardwareSpec
from optimizer.store import StoredGoal

_LOOK_S = 0.25
_TRIES = 3
"""A goal whose job died, or whose device was drained, is begun so often in one shift."""


@dataclass
class Shift:
    """One turn's work on several devices. All is done by the thread that calls `run`."""

    pool: Pool
    begin: Callable[[StoredGoal], bool]
    """Begins a goal's search, or takes up its end; returns whether the goal has ended."""
    find_obstacle: Callable[[StoredGoal], str | None]
    hand_back: Callable[[StoredGoal], None]
    """Gives a goal's claim back."""
    keep_going: Callable[[], bool]
    is_late: Callable[[], bool] = lambda: False
    """Whether the turn should end, whatever runs on: the next one takes it up."""
    before: Callable[[], None] = lambda: None
    """Called before a goal is begun: what else needs a device."""
    held: list[tuple[StoredGoal, str]] = field(default_factory=list, init=False)
    """Goals that can't be begun now, and why."""
    _going: list[StoredGoal] = field(default_factory=list, init=False)
    _waiting: dict[str, deque[StoredGoal]] = field(default_factory=dict, init=False)
    _tries: Counter[str] = field(default_factory=Counter, init=False)

    def run(
        self, goals: Sequence[StoredGoal], hardware: Callable[[StoredGoal], HardwareSpec]
    ) -> None:
        """Work on some goals, the first ones first; return once none is under way any more.

        Args:
            goals: In agenda order.
            hardware: Says for which hardware a goal is.
        """
        self._place = {goal.key: place for place, goal in enumerate(goals)}
        self._hardware = hardware
        for goal in goals:
            if self.pool.is_going(goal.key):
                self._going.append(goal)
            else:
                self._waiting.setdefault(goal.hardware, deque()).append(goal)
        while self.keep_going() and not self.is_late():
            # A device is free before its job's end is taken up, which may wait for a code host.
            if self._begin_one() or self._take_up_one():
                continue
            if not self._going:
                return
            self.pool.wait(_LOOK_S)
        if not self.keep_going():
            self._end()

    def _take_up_one(self) -> bool:
        """Take up the end of a job, if there is one; return whether there was.

        A goal that has not ended is begun again, after the others.
        """
        goal = next((goal for goal in self._going if self.pool.is_done(goal.key)), None)
        if goal is None:
            return False
        self._going.remove(goal)
        if not self.begin(goal) and self._tries[goal.key] < _TRIES:
            self._waiting.setdefault(goal.hardware, deque()).append(goal)
        return True

    def _begin_one(self) -> bool:
        """Begin the first goal for which there is a device; return whether there was any."""
        queues = sorted(filter(None, self._waiting.values()), key=lambda q: self._place[q[0].key])
        if not any(self.pool.has_room(self._hardware(queue[0])) for queue in queues):
            return False
        self.before()  # it may take the very device
        for queue in queues:
            if not self.pool.has_room(self._hardware(queue[0])):
                continue
            goal = queue.popleft()
            self._tries[goal.key] += 1
            if obstacle := self.find_obstacle(goal):
                self.held.append((goal, obstacle))
            else:
                self.begin(goal)
                if self.pool.is_going(goal.key):
                    self._going.append(goal)
            return True
        return False

    def _end(self) -> None:
        """Let what runs end, which it soon does, and give the goals back."""
        while any(not self.pool.is_done(goal.key) for goal in self._going):
            self.pool.wait(_LOOK_S)
        for goal in self._going:
            self.hand_back(goal)
