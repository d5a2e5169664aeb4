import pytest

from knowledge.evidence import Evidence, NotBetter, Unclear
from knowledge.outcome import Failed, Incorrect, Outcome, Passed
from optimizer.search.proof import (
    conclude,
    find_earlier,
    find_same_claim,
    freeze_dispatch,
    next_alpha,
    pick_for_proof,
)
from optimizer.store import Confirmation, Trial
from tests.makers import ENVIRONMENT, make_candidate, make_evaluation, make_evidence, make_passed


def make_trial(number: int, fitness: float, outcome: Outcome | None = None) -> Trial:
    candidate = make_candidate(str(number))
    evaluation = make_evaluation(candidate, outcome)
    return Trial(
        number=number, candidate=candidate, evaluation=evaluation, fitness=fitness, spent_s=1
    )


def make_confirmation(trial: Trial, result: Evidence | Outcome | None = None) -> Confirmation:
    result = result or make_evidence(trial.candidate)
    return Confirmation(number=1, candidate=trial.candidate.id, alpha=0.1, result=result, spent_s=1)


GOOD, BEST = make_trial(1, 1.5), make_trial(2, 3.0)
WRONG = Incorrect(reason="wrong at a drawn size")


def test_the_fittest_is_confirmed_first() -> None:
    assert pick_for_proof([GOOD, BEST], []) == BEST


def test_the_next_best_follows_one_that_failed_at_drawn_sizes() -> None:
    assert pick_for_proof([GOOD, BEST], [make_confirmation(BEST, WRONG)]) == GOOD


def test_other_code_goes_before_other_tunables_of_code_that_failed() -> None:
    tuned = BEST.candidate.model_copy(update={"chosen": {"block": 8}})
    close = BEST.model_copy(update={"number": 3, "fitness": 2.9, "candidate": tuned})
    failed = [make_confirmation(BEST, WRONG)]

    assert pick_for_proof([GOOD, BEST, close], failed) == GOOD
    assert pick_for_proof([BEST, close], failed) == close


def test_a_proof_that_failed_says_why() -> None:
    verdict = conclude([BEST], [make_confirmation(BEST, WRONG)])

    assert verdict == NotBetter(reason="1 candidate failed when confirmed: wrong at a drawn size")


def test_nothing_is_confirmed_again_once_it_is_clear() -> None:
    assert pick_for_proof([GOOD, BEST], [make_confirmation(BEST)]) is None


def test_an_unclear_run_is_repeated_once() -> None:
    unclear = make_confirmation(BEST, make_evidence(BEST.candidate, 1.2, low=1.0))

    assert pick_for_proof([GOOD, BEST], [unclear]) == BEST
    assert pick_for_proof([GOOD, BEST], [unclear, unclear]) is None


def test_who_fails_the_second_run_has_no_evidence_any_more() -> None:
    unclear = make_confirmation(BEST, make_evidence(BEST.candidate, 1.2, low=1.0))
    runs = [unclear, make_confirmation(BEST, WRONG)]

    assert pick_for_proof([GOOD, BEST], runs) == GOOD
    assert pick_for_proof([BEST], runs) is None
    assert conclude([BEST], runs) == NotBetter(
        reason="1 candidate failed when confirmed: wrong at a drawn size"
    )
    assert pick_for_proof([GOOD, BEST], [*runs, make_confirmation(GOOD)]) is None
    assert conclude([GOOD, BEST], [*runs, make_confirmation(GOOD)]).kind == "better"


def test_each_further_run_has_half_the_level() -> None:
    assert next_alpha(0.00025, []) == 0.00025
    assert next_alpha(0.00025, [make_confirmation(BEST, WRONG)] * 2) == 0.0000625


def test_pressing_retry_halves_the_level_as_well() -> None:
    other = make_evidence(BEST.candidate)

    assert next_alpha(0.00025, [], [other, other]) == 0.0000625


def test_a_claim_in_another_environment_or_before_another_judge_is_another_claim() -> None:
    here = make_evidence(BEST.candidate)
    elsewhere = here.model_copy(
        update={"environment": ENVIRONMENT.model_copy(update={"torch": "9"})}
    )
    older = here.model_copy(update={"judge_version": "0"})

    found = find_same_claim([elsewhere, here, older], here.environment, here.judge_version)

    assert found == (here,)


def test_a_repeat_is_given_the_evidence_of_the_same_candidate_only() -> None:
    mine, others = make_evidence(BEST.candidate), make_evidence(GOOD.candidate)
    run = make_confirmation(BEST, mine)

    assert find_earlier(BEST.candidate.id, [run], [others]) == (mine,)


def test_a_workload_that_is_not_faster_is_handed_back() -> None:
    assert freeze_dispatch(make_passed(0.5, 1.0)) == {"w1"}


def test_a_kernel_that_loses_everywhere_shows_by_how_much() -> None:
    assert freeze_dispatch(make_passed(2.0, 2.0)) == frozenset()


def test_a_search_without_a_passed_candidate_is_not_better() -> None:
    verdict = conclude([make_trial(1, 0.0, Failed(stage="build", log="no"))], [])

    assert verdict == NotBetter(reason="none of 1 candidates passed")


def test_a_search_without_a_device_is_unclear_and_says_so() -> None:
    verdict = conclude([make_trial(1, 0.0, Passed(times=()))], [])

    assert isinstance(verdict, Unclear)
    assert "no device" in verdict.reason


@pytest.mark.parametrize(("ratio", "kind"), [(2.0, "better"), (0.9, "not_better")])
def test_the_evidence_decides(ratio: float, kind: str) -> None:
    proof = make_confirmation(BEST, make_evidence(BEST.candidate, ratio))

    assert conclude([BEST], [proof]).kind == kind
