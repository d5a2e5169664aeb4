"""Triton candidates where there is no device: checked under the interpreter, never timed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from knowledge.fitness import fitness
from knowledge.outcome import Failed, Incorrect, Passed
from operator_registry.hardware import HardwareSpec
from optimizer.candidate import Candidate
from optimizer.errors import RunnerError
from optimizer.evaluate.evaluator import Evaluator
from optimizer.plan import Launch, Plan
from optimizer.targets import find_obstacle
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
