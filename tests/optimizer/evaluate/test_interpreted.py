"""Triton candidates where there is no device: checked under the interpreter, never timed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from knowledge.fitness import fitness
from knowledge.outcome import Failed, Incorrect, Passed
from operator_registry.hardware import HardwareSpec
from optimizer.candidate import Candidate
from optimizer.errors import RunnerError
from optimizer.evaluate.building import Builder, Built
from optimizer.evaluate.evaluator import Evaluator
from optimizer.evaluate.sandbox import Limits
from optimizer.plan import Launch, Plan
from optimizer.targets import find_obstacle
from optimizer.targets.target import Build, Instance
from tests.makers import OPERATOR

CODE = """\
import triton
import triton.language as tl


@triton.jit
def scale(x, y, rows, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < rows)
    tl.store(y + at, value * factor, mask=at < rows)
"""
LAUNCH = Launch(
    kernel="scale",
    grid=("cdiv(rows, 1024)",),
    arguments=("x", "y", "rows", "factor"),
    constants={"BLOCK": "1024"},
    when="rows > 0",
)


def make(code: str = CODE) -> Candidate:

    return Candidate(code=code, plan=Plan(language="triton", steps=(LAUNCH,)), origin="test")


@pytest.fixture(scope="module")
def judge(state: Path, h200: HardwareSpec) -> Iterator[Evaluator]:
    if find_obstacle(h200) is None:
        pytest.skip("there is a device, so nothing is interpreted")
    with Evaluator(OPERATOR, h200, folder=state) as judge:
        yield judge


def test_a_right_kernel_passes_without_a_time(judge: Evaluator) -> None:
    (evaluation,) = judge.evaluate([make()])

    assert evaluation.outcome == Passed(times=())
    assert fitness(evaluation.outcome) == 0
    assert "absent" in evaluation.environment.device


def test_a_wrong_kernel_is_incorrect(judge: Evaluator) -> None:
    (evaluation,) = judge.evaluate([make(CODE.replace("value * factor", "value + factor"))])

    assert isinstance(evaluation.outcome, Incorrect)
    assert evaluation.outcome.counterexample is not None


def test_a_kernel_that_does_not_compile_fails_its_build(judge: Evaluator) -> None:
    (evaluation,) = judge.evaluate([make(CODE.replace("tl.load", "tl.lood"))])

    assert isinstance(evaluation.outcome, Failed)
    assert evaluation.outcome.stage == "build"


def test_a_kernel_that_imports_os_never_runs(judge: Evaluator) -> None:
    (evaluation,) = judge.evaluate([make("import os\n" + CODE)])

    assert evaluation.outcome == Failed(stage="screen", log="line 1: imports os")


def test_nothing_is_confirmed_without_a_device(judge: Evaluator) -> None:
    with pytest.raises(RunnerError, match="h200"):
        judge.confirm(make(), deadline_s=1, alpha=0.01, handed_back=())


@pytest.mark.drill
def test_what_is_asked_for_next_is_built_and_its_sizes_drawn_ahead(judge: Evaluator) -> None:
    first, second = make("# first\n" + CODE), make("# second\n" + CODE)

    judge.evaluate([first], ahead=[second])
    drawn_s = judge.ledger.seconds["cases"]
    (evaluation,) = judge.evaluate([second])

    assert evaluation.outcome == Passed(times=())
    assert judge.ledger.seconds["cases"] == drawn_s


@pytest.mark.drill
def test_others_than_those_foreseen_get_sizes_of_their_own(judge: Evaluator) -> None:
    foreseen, other = make("# foreseen\n" + CODE), make("# other\n" + CODE)

    judge.evaluate([foreseen], ahead=[foreseen])
    drawn_s = judge.ledger.seconds["cases"]
    (evaluation,) = judge.evaluate([other])

    assert evaluation.outcome == Passed(times=())
    assert judge.ledger.seconds["cases"] > drawn_s


@pytest.mark.drill
def test_equal_builds_are_made_once_side_by_side(tmp_path: Path, h200: HardwareSpec) -> None:
    builder = Builder(h200, tmp_path, limits=Limits(wall_s=120))
    instance = Instance(
        kernel="scale", types=("*fp32", "*fp32", "i32", "fp32"),
        divisible=(True, True, False, False), constants=(("BLOCK", 1024),),
    )  # fmt: skip

    one, two, other = builder.build(
        [Build(code=code, instances=(instance,)) for code in (CODE, CODE, "# other\n" + CODE)]
    )

    assert isinstance(one, Built)
    assert one == two
    assert isinstance(other, Built)
    assert one.folder != other.folder
    builder.close()
