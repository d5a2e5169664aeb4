"""The judge in a search: the right outcome for each candidate, and on to the next one."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from knowledge.evaluation import Evaluation
from knowledge.fitness import fitness
from knowledge.outcome import Failed, Incorrect, Outcome, Passed, TimedOut
from operator_registry.hardware import HardwareSpec
from operator_registry.registry import Operator
from optimizer.errors import RunnerError
from optimizer.evaluate.evaluator import Evaluator
from optimizer.plan import LibraryCall, Plan
from tests.makers import OPERATOR
from tests.optimizer.evaluate.bad import BAD, GOOD, make

pytestmark = pytest.mark.alone

EXPECTED: Mapping[str, tuple[type, type, type]] = {
    "syntax error": (Failed, Failed, Failed),
    "wrong shape": (Incorrect, Incorrect, Failed),
    "wrong dtype": (Incorrect, Incorrect, Incorrect),
    "NaN": (Incorrect, Incorrect, Incorrect),
    "infinite loop": (TimedOut, TimedOut, TimedOut),
    "exit": (Failed, Failed, Failed),
    "segmentation fault": (Failed, Failed, Failed),
}


QUICK: Mapping[str, int] = {
    "syntax error": 1,
    "wrong shape": 0,
    "wrong dtype": 0,
    "NaN": 2,
    "infinite loop": 0,
    "100 GB allocation": 1,
    "exit": 1,
    "segmentation fault": 0,
}
"""One of each kind."""


@pytest.fixture(scope="module")
def evaluations(evaluator: Evaluator) -> dict[str, Evaluation]:
    """One batch of one of each kind: each must harm only itself."""
    batch = {kind: BAD[kind][place] for kind, place in QUICK.items()} | {"good": GOOD}
    return dict(zip(batch, evaluator.evaluate(list(batch.values())), strict=True))


@pytest.mark.parametrize("kind", EXPECTED)
def test_a_bad_candidate_is_an_outcome(kind: str, evaluations: dict[str, Evaluation]) -> None:
    outcome = evaluations[kind].outcome

    assert type(outcome) is EXPECTED[kind][QUICK[kind]], outcome


@pytest.mark.drill
@pytest.mark.parametrize("kind", BAD)
def test_every_bad_candidate_is_an_outcome(kind: str, evaluator: Evaluator) -> None:
    *bad, good = evaluator.evaluate([*BAD[kind], GOOD])

    outcomes = [evaluation.outcome for evaluation in bad]
    if kind in EXPECTED:
        assert tuple(type(outcome) for outcome in outcomes) == EXPECTED[kind], outcomes
    else:
        check_huge(outcomes)
    assert isinstance(good.outcome, Passed)


def check_huge(outcomes: Sequence[Outcome]) -> None:
    """By the allocator's refusal, or by the clock where touching the pages takes that long."""
    for outcome in outcomes:
        assert isinstance(outcome, Failed | TimedOut)
        assert outcome.stage == "run"


def test_a_huge_allocation_ends_at_the_limit(evaluations: dict[str, Evaluation]) -> None:
    check_huge([evaluations["100 GB allocation"].outcome])


def test_the_judge_goes_on(evaluations: dict[str, Evaluation]) -> None:
    good = evaluations["good"]

    assert isinstance(good.outcome, Passed)
    assert [time.workload for time in good.outcome.times] == ["w0", "w1"]
    assert fitness(good.outcome) > 0


def test_a_build_error_quotes_the_candidates_own_line(evaluations: dict[str, Evaluation]) -> None:
    outcome = evaluations["syntax error"].outcome

    assert isinstance(outcome, Failed)
    assert outcome.stage == "build"
    assert "undeclared" in outcome.log


def test_a_counterexample_names_element_values_and_inputs(
    evaluations: dict[str, Evaluation],
) -> None:
    outcome = evaluations["NaN"].outcome

    assert isinstance(outcome, Incorrect)
    found = outcome.counterexample
    assert found is not None
    assert (found.output, found.index) == ("y", (7,))
    assert not math.isfinite(float(found.got))  # what the drawn element is decides which of them
    assert found.sizes["rows"] > 7
    assert float(found.wanted) == pytest.approx(float(found.wanted))


def test_the_same_candidate_is_the_same_result_key(evaluator: Evaluator) -> None:
    first, second = evaluator.evaluate([GOOD, GOOD])

    assert first.key == second.key
    assert first.environment == evaluator.environment


def test_writing_into_an_input_is_incorrect(evaluator: Evaluator) -> None:
    thief = make("for (int64_t i = 0; i < rows; ++i) { y[i] = x[i] * static_cast<T>(factor); "
                 "const_cast<T*>(x)[i] = 0; }")  # fmt: skip

    (evaluation,) = evaluator.evaluate([thief])

    assert evaluation.outcome == Incorrect(reason="the input x is written to")


def test_library_calls_alone_pass_with_a_mark(evaluator: Evaluator) -> None:
    call = LibraryCall(op="aten::mul.Scalar_out", arguments=("x", "factor"), out=("y",))
    candidate = GOOD.model_copy(update={"plan": Plan(language="cpp", steps=(call,))})

    (evaluation,) = evaluator.evaluate([candidate])

    assert isinstance(evaluation.outcome, Passed), evaluation.outcome
    assert evaluation.outcome.library_only


def test_a_plan_that_names_nothing_known_fails_the_screen(evaluator: Evaluator) -> None:
    step = GOOD.plan.steps[0].model_copy(update={"arguments": ("x", "y", "columns", "factor")})
    candidate = GOOD.model_copy(update={"plan": Plan(language="cpp", steps=(step,))})

    (evaluation,) = evaluator.evaluate([candidate])

    assert isinstance(evaluation.outcome, Failed)
    assert evaluation.outcome.stage == "screen"
    assert "columns" in evaluation.outcome.log


def test_a_reference_that_fails_is_the_callers_fault(state: Path, host: HardwareSpec) -> None:
    broken = Operator(spec=OPERATOR.spec, source="def scale(x, factor):\n    return x + missing\n")

    with (
        Evaluator(broken, host, folder=state) as judge,
        pytest.raises(RunnerError, match="missing"),
    ):
        judge.evaluate([GOOD])


def test_a_processor_of_another_level_is_refused(state: Path, host: HardwareSpec) -> None:
    other = host.model_copy(
        update={"compile": host.compile.model_copy(update={"arch": "x86-64-v9"})}
    )

    with pytest.raises(RunnerError):
        Evaluator(OPERATOR, other, folder=state)


def test_nothing_is_left_in_shared_memory(state: Path, host: HardwareSpec) -> None:
    with Evaluator(OPERATOR, host, folder=state) as judge:
        folder = judge.shared_folder
        judge.evaluate([GOOD])
        assert folder.exists()

    assert not folder.exists()
