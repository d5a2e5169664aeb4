"""The judge's own processes are killed from outside: no candidate pays for it."""

import gc
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from knowledge.evaluation import Evaluation
from knowledge.outcome import Failed, Passed
from operator_registry.hardware import HardwareSpec
from optimizer.candidate import Candidate
from optimizer.evaluate.building import CHILD, Builder, Built
from optimizer.evaluate.evaluator import Evaluator
from optimizer.evaluate.process import ORACLE, WORKER
from optimizer.evaluate.sandbox import Limits
from tests.makers import OPERATOR, SCALE
from tests.optimizer.evaluate.bad import GOOD, LOOP, RIGHT, make
from tests.optimizer.evaluate.conftest import EFFORT
from tests.optimizer.evaluate.test_building import build_of

pytestmark = pytest.mark.alone


def make_slow(rounds: int) -> Candidate:
    """Return a candidate whose trial lasts for many of the hunter's looks."""
    return make(f"for (volatile long i = 0; i < {rounds}; ++i) {{}} " + LOOP + RIGHT)


SLOW, SLOWER = make_slow(100_000_000), make_slow(400_000_000)
FOREVER = (
    "constexpr int64_t spin(int64_t n) { int64_t s = 0; "
    "for (int64_t i = 0; i < n; ++i) for (int64_t j = 0; j < 250000; ++j) s += j; return s; }\n"
    + "".join(f"constexpr int64_t c{i} = spin(130);\n" for i in range(200))
    + SCALE
)
When = Callable[[psutil.Process], bool]


def find_children(function: str) -> list[psutil.Process]:
    """Return this process's children that answer by a function."""
    found = []
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if function in child.cmdline():
                found.append(child)
    return found


def find_kernels(child: psutil.Process) -> set[str]:
    """Return what a process has loaded of candidates."""
    mapped: set[str] = set()
    with suppress(psutil.Error):
        mapped = {each.path for each in child.memory_maps()}
    return {path for path in mapped if path.endswith("kernels.so")}


def holding_a_new_candidate() -> When:
    """Return when a worker is killed: not for what an earlier test gave it."""
    old = {path for worker in find_children(WORKER) for path in find_kernels(worker)}
    return lambda worker: not find_kernels(worker) <= old


def as_soon_as_it_is_there(function: str) -> When:
    """Return when a process is killed that is none of an earlier test's."""
    old = {child.pid for child in find_children(function)}
    return lambda child: child.pid not in old


@contextmanager
def killing(function: str, *, kills: int = 1, when: When | None = None) -> Iterator[None]:
    """Kill so many children that answer by a function, each as soon as it is time."""
    is_time = when or as_soon_as_it_is_there(function)
    over = threading.Event()
    killed: set[int] = set()

    def hunt() -> None:
        while not over.is_set() and len(killed) < kills:
            for child in find_children(function):
                with suppress(psutil.Error):
                    if child.pid not in killed and len(killed) < kills and is_time(child):
                        child.kill()
                        killed.add(child.pid)
            time.sleep(0.005)

    hunter = threading.Thread(target=hunt)
    hunter.start()
    try:
        yield
    finally:
        over.set()
        hunter.join()
    assert len(killed) == kills


@pytest.fixture(scope="module")
def judge(state: Path, host: HardwareSpec) -> Iterator[Evaluator]:
    with Evaluator(OPERATOR, host, folder=state, effort=EFFORT) as judge:
        judge.evaluate(())
        yield judge


@pytest.mark.drill
def test_a_worker_killed_in_a_trial_is_replaced(judge: Evaluator) -> None:
    with killing(WORKER, when=holding_a_new_candidate()):
        (evaluation,) = judge.evaluate([SLOW])

    assert isinstance(evaluation.outcome, Passed), evaluation.outcome


@pytest.mark.drill
def test_a_candidate_whose_every_worker_is_killed_is_told_so(judge: Evaluator) -> None:
    with killing(WORKER, kills=2, when=holding_a_new_candidate()):
        slow, good = judge.evaluate([SLOWER, GOOD])

    assert isinstance(slow.outcome, Failed)
    assert "SIGKILL" in slow.outcome.log
    assert isinstance(good.outcome, Passed)


@pytest.mark.drill
def test_a_worker_killed_while_it_starts_is_replaced(state: Path, host: HardwareSpec) -> None:
    with Evaluator(OPERATOR, host, folder=state, effort=EFFORT) as judge, killing(WORKER):
        (evaluation,) = judge.evaluate([GOOD])

    assert isinstance(evaluation.outcome, Passed), evaluation.outcome


def test_a_worker_killed_between_two_trials_is_replaced(judge: Evaluator) -> None:
    def kill(evaluation: Evaluation) -> None:
        for worker in find_children(WORKER):
            worker.kill()

    done = judge.evaluate([GOOD, GOOD], on_done=kill)

    assert [evaluation.outcome.kind for evaluation in done] == ["passed", "passed"]


@pytest.mark.drill
def test_an_oracle_that_is_killed_is_replaced(state: Path, host: HardwareSpec) -> None:
    with Evaluator(OPERATOR, host, folder=state, effort=EFFORT) as judge, killing(ORACLE):
        (evaluation,) = judge.evaluate([GOOD])

    assert isinstance(evaluation.outcome, Passed), evaluation.outcome


@pytest.mark.drill
def test_an_oracle_killed_between_two_batches_leaves_nothing_open(judge: Evaluator) -> None:
    for oracle in find_children(ORACLE):
        oracle.kill()

    (evaluation,) = judge.evaluate([GOOD])

    assert isinstance(evaluation.outcome, Passed), evaluation.outcome
    gc.collect()  # what is still open is told of now


def test_a_compiler_that_is_killed_is_replaced(tmp_path: Path, host: HardwareSpec) -> None:
    builder = Builder(host, tmp_path, limits=Limits(wall_s=60))

    with killing(CHILD):
        (built,) = builder.build([build_of(SCALE)])

    assert isinstance(built, Built), built


@pytest.mark.drill
def test_nothing_is_built_any_more_once_builds_are_abandoned(
    tmp_path: Path, host: HardwareSpec
) -> None:
    builder = Builder(host, tmp_path, limits=Limits(wall_s=300))
    builder.start([build_of(FOREVER)])
    while not find_children(CHILD):
        time.sleep(0.01)

    builder.abandon()

    assert find_children(CHILD) == []
    (built,) = builder.build([build_of(SCALE)])
    assert isinstance(built, Built), built
    builder.close()


@pytest.mark.drill
def test_each_evaluation_is_told_before_the_next_trial_begins(judge: Evaluator) -> None:
    told: list[tuple[str, int]] = []
    before = judge.ledger.trials

    def note(evaluation: Evaluation) -> None:
        told.append((evaluation.candidate, judge.ledger.trials))

    judge.evaluate([GOOD, SLOW], on_done=note)

    assert told == [(GOOD.id, before + 1), (SLOW.id, before + 2)]
