"""Whatever fails in between, a job ends in its answer, and one run at most is left of it."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from unittest.mock import patch

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from daemon.actions import errand as actions_errand
from daemon.actions.errand import Errand
from daemon.actions.yard import Patience, Yard
from daemon.forge import ForgeBusyError, ForgeUnavailableError, WorkflowRun
from optimizer.job import OptimizeRequest, OptimizeResult, Result
from tests.daemon.runners import Runners, answer_to
from tests.daemon.test_actions_runner import GPU, Memory
from tests.daemon.test_jobs import OPERATOR

Fault = Literal[
    "none", "down", "busy", "effect, then down", "crash", "effect, then crash", "unlisted"
]
FAULTS: tuple[Fault, ...] = (
    "none", "down", "busy", "effect, then down", "crash", "effect, then crash", "unlisted",
)  # fmt: skip
SHY = st.lists(st.sampled_from(FAULTS), max_size=40).filter(lambda f: f.count("unlisted") <= 2)
"""A run may be kept from the list for so long: nobody waits for it any longer."""
REQUEST = OptimizeRequest(
    operator=OPERATOR,
    hardware=GPU,
    goal_key="goal",
    store_url="sqlite://",
    state_folder=Path("/nowhere"),
    out_folder=Path("/nowhere"),
)


class Crash(BaseException):
    """Stands for the end of the process."""


@dataclass
class Faulty(Runners):
    """Each call meets the next fault of a list."""

    left: list[Fault] = field(default_factory=list)
    unlisted: int = 0
    """So often, from now on, no run is listed."""

    def dispatch(self, workflow: str, *, ref: str, inputs: dict[str, str]) -> None:
        fault = self.next_fault()
        self.before(fault)
        super().dispatch(workflow, ref=ref, inputs=inputs)
        self.after(fault)

    def workflow_runs(self, workflow: str) -> tuple[WorkflowRun, ...]:
        if self.unlisted:
            self.unlisted -= 1
            return ()
        fault = self.next_fault()
        self.before(fault)
        runs = super().workflow_runs(workflow)
        self.after(fault)
        if fault == "unlisted":
            self.unlisted = 2
            return ()
        return runs

    def cancel_run(self, run_id: int) -> None:
        fault = self.next_fault()
        self.before(fault)
        super().cancel_run(run_id)
        self.after(fault)

    def artefact(self, run_id: int, name: str) -> bytes | None:
        fault = self.next_fault()
        self.before(fault)
        found = super().artefact(run_id, name)
        self.after(fault)
        return found

    def next_fault(self) -> Fault:
        return self.left.pop(0) if self.left else "none"

    def before(self, fault: Fault) -> None:
        match fault:
            case "down":
                raise ForgeUnavailableError(fault)
            case "busy":
                raise ForgeBusyError(fault, retry_at=0.0)
            case "crash":
                raise Crash
            case _:
                pass

    def after(self, fault: Fault) -> None:
        match fault:
            case "effect, then down":
                raise ForgeUnavailableError(fault)
            case "effect, then crash":
                raise Crash
            case _:
                pass


@dataclass
class World:
    """Processes one after the other, each with the memory of those before."""

    host: Faulty
    patience: Patience = field(default_factory=Patience)
    memory: Memory = field(default_factory=Memory)
    now: float = 0.0
    errand: Errand = field(init=False)

    def __post_init__(self) -> None:
        """Begin the first process."""
        self.start()

    def start(self) -> None:
        yard = Yard(
            self.host, self.memory, "search.yml", lambda: "main", lambda: self.now, self.patience
        )
        self.errand = Errand(yard, REQUEST, GPU, lambda _: None)

    def look(self) -> Result | None:
        self.now += 10
        try:
            return self.errand.look()
        except Crash:
            self.start()
            return None

    def cancel(self) -> bool:
        self.now += 10
        try:
            return self.errand.cancel()
        except Crash:
            self.start()
            return False

    def alive(self) -> list[int]:
        return [run.id for run in self.host.runs.values() if run.status != "completed"]


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(FAULTS), max_size=40), st.integers(0, 30))
def test_it_ends_in_its_answer(faults: list[Fault], ends_after: int) -> None:
    world = World(Faulty(left=list(faults)), Patience(appear_s=15.0))
    result = None

    # Patience is short here, so that dispatches are often repeated although one had its effect.
    with patch.object(actions_errand, "DISPATCHES", 100):
        for number in range(200):
            if result := world.look():
                break
            first = min(world.host.runs, default=None)
            if number >= ends_after and first is not None and first in world.alive():
                world.host.end(first, answer_to(world.host.dispatched[0], REQUEST, None))

    assert isinstance(result, OptimizeResult)
    assert world.alive() == []
    assert len({inputs["tag"] for inputs in world.host.dispatched}) == 1


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SHY, st.integers(0, 20))
@example(["none", "down", "down", "down", "down", "unlisted", "unlisted"], 1)
def test_a_stop_leaves_nothing_running(faults: list[Fault], stops_after: int) -> None:
    world = World(Faulty(left=list(faults)))
    for _ in range(stops_after):
        world.look()

    for _ in range(200):
        if world.cancel() and not world.host.left:
            break

    assert world.alive() == []
    assert not any(world.memory.marks.values())
