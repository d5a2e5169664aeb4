"""Whatever is done to the store in whatever order, it says what a plain model says."""

from collections.abc import Callable

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from optimizer.store import QueuedGoal, Store, Trial
from tests.makers import make_candidate, make_evaluation

KEYS = st.sampled_from(("a", "b", "c"))
HOLDERS = st.sampled_from(("x", "y"))


class StoreMachine(RuleBasedStateMachine):
    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url
        self.store = Store(url)
        self.now = 0.0
        self.goals: dict[str, tuple[str, float] | None] = {}
        self.finished: set[str] = set()
        self.trials: dict[str, list[str]] = {}

    @rule(key=KEYS)
    def enqueue(self, key: str) -> None:
        goal = QueuedGoal(key=key, operator="o", hardware="h", operator_digest="0" * 64, reasons=())
        assert self.store.enqueue(goal, now=self.now) == (key not in self.goals)
        self.goals.setdefault(key, None)

    @rule(key=KEYS, holder=HOLDERS, ttl_s=st.sampled_from((1.0, 5.0)))
    def claim(self, key: str, holder: str, ttl_s: float) -> None:
        held = self.goals.get(key)
        free = held is None or held[0] == holder or held[1] <= self.now
        able = key in self.goals and key not in self.finished and free
        assert self.store.claim(key, holder, ttl_s=ttl_s, now=self.now) == able
        if able:
            self.goals[key] = (holder, self.now + ttl_s)

    @rule(key=KEYS, holder=HOLDERS)
    def release(self, key: str, holder: str) -> None:
        self.store.release(key, holder)
        held = self.goals.get(key)
        if held is not None and held[0] == holder:
            self.goals[key] = None

    @rule(key=KEYS)
    def finish(self, key: str) -> None:
        able = key in self.goals and key not in self.finished
        assert self.store.finish(key, verdict="better", result="{}", now=self.now) == able
        if able:
            self.finished.add(key)
            self.goals[key] = None

    @rule(goal=KEYS, name=st.sampled_from(("p", "q", "r")))
    def record(self, goal: str, name: str) -> None:
        search = self.open(goal)
        candidate = make_candidate(name)
        known = self.trials.setdefault(goal, [])
        trial = Trial(
            number=len(known) + 1,
            candidate=candidate,
            evaluation=make_evaluation(candidate),
            fitness=1.0,
            spent_s=0.0,
        )
        self.store.record(search, trial, now=self.now)
        if candidate.id not in known:
            known.append(candidate.id)

    @rule()
    def wait(self) -> None:
        self.now += 2

    @rule()
    def open_anew(self) -> None:
        self.store.close()
        self.store = Store(self.url)
        self.store.migrate()

    @invariant()
    def the_queue_holds_what_is_not_finished(self) -> None:
        pending = {goal.key: goal.holder for goal in self.store.pending_goals()}
        assert pending == {
            key: None if held is None else held[0]
            for key, held in self.goals.items()
            if key not in self.finished
        }

    @invariant()
    def each_trial_is_there_once_and_in_order(self) -> None:
        for goal, known in self.trials.items():
            trials = self.store.trials(self.open(goal))
            assert [trial.candidate.id for trial in trials] == known

    def open(self, goal: str) -> int:
        return self.store.open_search(
            goal, operator="o", hardware="h", operator_digest="0" * 64, now=self.now
        )

    def teardown(self) -> None:
        self.store.close()


def test_the_store_says_what_a_plain_model_says(make_url: Callable[[], str]) -> None:
    class Machine(StoreMachine):
        def __init__(self) -> None:
            super().__init__(make_url())

    few = settings(
        max_examples=5,
        stateful_step_count=20,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    run_state_machine_as_test(Machine, settings=few)
