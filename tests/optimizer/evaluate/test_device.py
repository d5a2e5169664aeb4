"""The judge on a real CUDA device."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from knowledge.evaluation import Evaluation
from knowledge.evidence import Evidence
from knowledge.fitness import fitness
from knowledge.outcome import Failed, Incorrect, Passed, TimedOut
from operator_registry.hardware import HardwareSpec
from optimizer.evaluate.evaluator import Effort, Evaluator
from optimizer.evaluate.peers import DEVICE_MODES
from tests.makers import OPERATOR
from tests.optimizer.evaluate.test_interpreted import CODE, make

pytestmark = [pytest.mark.gpu, pytest.mark.alone]
LOOP = "    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
ENDLESS = LOOP + "    while tl.load(x) < 1e30:\n        tl.store(y, 1.0)\n"
OUTSIDE = LOOP.replace("tl.program_id(0)", "(tl.program_id(0) + 1000000000000)")


@pytest.fixture(scope="module")
def judge(state: Path, h200: HardwareSpec) -> Iterator[Evaluator]:
    effort = Effort(measure_s=0.1, pairs=2, pair_s=0.3)
    with Evaluator(OPERATOR, h200, folder=state, effort=effort) as judge:
        yield judge


@pytest.fixture(scope="module")
def evaluations(judge: Evaluator) -> list[Evaluation]:
    codes = [CODE.replace("value * factor", "value + factor"), CODE.replace(LOOP, ENDLESS)]
    outside = CODE.replace(LOOP, OUTSIDE).replace("mask=at < rows", "mask=at >= 0")
    return judge.evaluate([make(code) for code in [*codes, outside, CODE]])


def test_a_right_kernel_passes_with_times_beside_all_peers(evaluations: list[Evaluation]) -> None:
    outcome = evaluations[-1].outcome

    assert isinstance(outcome, Passed), outcome
    assert fitness(outcome) > 0
    modes = {peer.name.split("/")[1] for time in outcome.times for peer in time.peers}
    assert modes == set(DEVICE_MODES)


def test_bad_kernels_harm_only_themselves(evaluations: list[Evaluation]) -> None:
    wrong, endless, outside = (evaluation.outcome for evaluation in evaluations[:3])

    assert isinstance(wrong, Incorrect)
    assert isinstance(endless, TimedOut)
    assert isinstance(outside, Failed | Incorrect)


def test_the_device_time_is_below_the_call_time(evaluations: list[Evaluation]) -> None:
    outcome = evaluations[-1].outcome

    assert isinstance(outcome, Passed)
    assert all(time.device_ms < time.call_ms for time in outcome.times)


def test_a_confirming_run_ends_in_evidence(judge: Evaluator) -> None:
    found = judge.confirm(make(), deadline_s=200, alpha=0.01, handed_back=())

    assert isinstance(found, Evidence), found
    assert found.faults == ()
    assert len(found.null.pair_ratios) == 2
    assert found.launched == ("scale",)
    assert found.resources[0].registers is not None
    assert found.resources[0].occupancy is not None


def test_a_batch_that_was_built_ahead_passes(judge: Evaluator) -> None:
    first, second = make("# one\n" + CODE), make("# two\n" + CODE)

    judge.evaluate([first], ahead=[second])
    drawn_s = judge.ledger.seconds["cases"]
    (evaluation,) = judge.evaluate([second])

    assert isinstance(evaluation.outcome, Passed), evaluation.outcome
    assert judge.ledger.seconds["cases"] == drawn_s


def test_a_bad_kernel_is_followed_by_a_worker_that_was_ready(judge: Evaluator) -> None:
    wrong = make("# wrong\n" + CODE.replace("value * factor", "value + factor"))

    bad, good = judge.evaluate([wrong, make("# right\n" + CODE)])

    assert isinstance(bad.outcome, Incorrect)
    assert isinstance(good.outcome, Passed), good.outcome
