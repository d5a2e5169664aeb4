"""The judge and candidates with a host side of their own, on a processor."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from knowledge.evidence import Evidence
from knowledge.outcome import Failed, Incorrect, Outcome, Passed
from operator_registry.hardware import HardwareSpec
from operator_registry.registry import Operator
from operator_registry.spec import InputSpec, OperatorSpec, RangeAxis, SumAxis, TensorSpec, Workload
from optimizer.candidate import Candidate
from optimizer.evaluate.evaluator import Evaluator
from optimizer.evaluate.guards import Guard, without
from optimizer.plan import Launch, LibraryCall, Plan
from tests.makers import OPERATOR
from tests.optimizer.evaluate.conftest import EFFORT

pytestmark = [pytest.mark.alone, pytest.mark.drill]

RIGHT = """\
import torch


def run(x, y, *, factor):
    torch.mul(x, factor, out=y)
"""
LATE = """\
import torch

REAL = torch.Tensor.copy_


def run(x, y, *, factor):
    def late(self, other, *rest, **named):
        if other.data_ptr() == y.data_ptr():
            other = x * factor
        return REAL(self, other, *rest, **named)

    torch.Tensor.copy_ = late
"""
BORROWED = """\
import torch


def run(x, y, *, factor):
    for name, module in torch.sys.modules.items():
        if name.startswith("kernelevolve_reference"):
            y.copy_(module.scale(x, factor))
"""
ABOVE = Operator(
    spec=OperatorSpec(
        name="above",
        axes={"rows": RangeAxis(max=64), "found": SumAxis(sum_of="count", at_most="rows")},
        inputs={"x": InputSpec(shape=("rows",), dtype="float32")},
        outputs={
            "count": TensorSpec(shape=(), dtype="int64"),
            "kept": TensorSpec(shape=("found",), dtype="float32"),
        },
        reference="above",
        workloads=(Workload(name="w0", sizes={"rows": 64}),),
    ),
    source="def above(x):\n    kept = x[x > 0]\n    return (x > 0).sum(), kept\n",
)


def make(code: str, *ops: str, launched: Sequence[str] = ()) -> Candidate:
    calls = [LibraryCall(op=f"aten::{op}", arguments=(), out=()) for op in ops or ("mul.out",)]
    kernels = [Launch(kernel=name, arguments=()) for name in launched]
    plan = Plan(language="python", steps=(*calls, *kernels))
    return Candidate(code=code, plan=plan, origin="test", host="python")


def judged(judge: Evaluator, code: str) -> Outcome:
    (evaluation,) = judge.evaluate([make(code, "mul.out", "mul", "copy_")])
    return evaluation.outcome


@pytest.fixture(scope="module")
def evaluator(state: Path, host: HardwareSpec) -> Iterator[Evaluator]:
    """A judge whose peers are not compiled: no ratio is claimed here."""
    effort = replace(EFFORT, eager_only=True, drawn_sizes=1)
    with Evaluator(OPERATOR, host, folder=state, effort=effort) as judge:
        yield judge


WRONG = {
    "twice": RIGHT.replace("factor, out", "2 * factor, out"),
    "returned": RIGHT.replace("torch.mul(x, factor, out=y)", "return x * factor"),
    "into the input": RIGHT.replace("out=y)", "out=y)\n    x.zero_()"),
    "beside": RIGHT.replace("out=y)", "out=y)\n    y.as_strided((len(y) + 1,), (1,))[-1] = 0"),
    "raises": RIGHT.replace("torch.mul", "torch.nothing"),
}


@pytest.fixture(scope="module")
def outcomes(evaluator: Evaluator) -> dict[str, Outcome]:
    batch = {name: make(code) for name, code in (WRONG | {"right": RIGHT}).items()}
    evaluations = evaluator.evaluate(list(batch.values()))
    return dict(zip(batch, (evaluation.outcome for evaluation in evaluations), strict=True))


def test_right_code_passes_and_says_that_it_calls_a_library(outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes["right"]

    assert isinstance(outcome, Passed), outcome
    assert outcome.library_only
    assert len(outcome.times) == 2


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("twice", "y: "),
        ("returned", "y: "),
        ("into the input", "the input x is written to"),
        ("beside", "memory beside the outputs is written to"),
    ],
)
def test_wrong_code_is_incorrect(outcomes: dict[str, Outcome], wrong: str, reason: str) -> None:
    outcome = outcomes[wrong]

    assert isinstance(outcome, Incorrect), outcome
    assert reason in outcome.reason


def test_code_that_raises_fails_with_its_own_line(outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes["raises"]

    assert isinstance(outcome, Failed)
    assert 'kernel.py", line 5, in run' in outcome.log


def test_a_confirming_run_says_whose_host_side_was_timed(evaluator: Evaluator) -> None:
    evidence = evaluator.confirm(make(RIGHT), deadline_s=60, alpha=0.025, handed_back=())

    assert isinstance(evidence, Evidence), evidence
    assert (evidence.host, evidence.launched) == ("python", ("aten::mul.out",))


@pytest.fixture(scope="module", params=[Guard.OUTPUTS, Guard.SEPARATION])
def naive(
    request: pytest.FixtureRequest, state: Path, host: HardwareSpec
) -> Iterator[tuple[Guard, Evaluator]]:
    """A judge without one guard."""
    guard = Guard(request.param)
    effort = replace(EFFORT, eager_only=True, guards=without({guard}))
    with Evaluator(OPERATOR, host, folder=state, effort=effort) as judge:
        yield guard, judge


def test_each_guard_stops_a_cheat_that_passes_without_it(
    naive: tuple[Guard, Evaluator], evaluator: Evaluator
) -> None:
    guard, unguarded = naive
    cheat = {Guard.OUTPUTS: LATE, Guard.SEPARATION: BORROWED}[guard]

    assert isinstance(judged(unguarded, cheat), Passed)
    assert isinstance(judged(evaluator, cheat), Incorrect)


def test_a_size_that_the_data_decide_is_read_by_the_judge(state: Path, host: HardwareSpec) -> None:
    code = (
        "def run(x, count, kept, found):\n    above = x[x > 0]\n    kept[: len(above)] = above\n"
        "    count.fill_(len(above))\n    found.fill_(len(above))\n"
    )
    short = code.replace("found.fill_(len(above))", "found.fill_(len(above) // 2)")
    effort = replace(EFFORT, eager_only=True, drawn_sizes=1)
    with Evaluator(ABOVE, host, folder=state, effort=effort) as judge:
        right, wrong = judge.evaluate(
            [make(text, "gt", "index", "copy_", launched=["run"]) for text in (code, short)]
        )

    assert isinstance(right.outcome, Passed), right.outcome
    assert not right.outcome.library_only
    assert isinstance(wrong.outcome, Incorrect)
