"""What a replay says of a published kernel: as it was, slower, wrong, or too noisy to tell."""

import numpy as np
import pytest

from knowledge.evidence import Evidence, Interval
from knowledge.outcome import Incorrect
from optimizer.evaluate.statistics import ratio_interval
from optimizer.job import CannotTell, NotReproduced, Reproduced
from optimizer.replay import compare
from tests.makers import make_candidate, make_evidence

CANDIDATE = make_candidate()
PUBLISHED = make_evidence(CANDIDATE, 2.0)


def with_pairs(*ratios: float) -> Evidence:
    evidence = make_evidence(CANDIDATE, 2.0)
    row = evidence.workloads[0].model_copy(update={"pair_ratios": ratios})
    ratio = ratio_interval(ratios, alpha=0.01)
    return evidence.model_copy(update={"workloads": (row,), "ratio": ratio})


def noisy(centre: float, *, sigma: float, pairs: int, seed: int) -> Evidence:
    logs = np.random.default_rng(seed).normal(np.log(centre), sigma, pairs)
    return with_pairs(*map(float, np.exp(logs)))


def test_an_equal_measurement_is_reproduced() -> None:
    assert compare(PUBLISHED, [make_evidence(CANDIDATE, 2.0)]) == Reproduced()


def test_wrong_output_is_not_reproduced() -> None:
    finding = compare(PUBLISHED, Incorrect(reason="y differs at rows 3"))

    assert finding == NotReproduced(reason="incorrect: y differs at rows 3")


def test_a_gain_that_is_gone_is_not_reproduced() -> None:
    assert isinstance(compare(PUBLISHED, [make_evidence(CANDIDATE, 0.95)]), NotReproduced)


def test_a_kernel_that_was_slowed_by_10_percent_is_not_reproduced() -> None:
    assert isinstance(compare(PUBLISHED, [make_evidence(CANDIDATE, 2.0 / 1.1)]), NotReproduced)


def test_a_machine_that_is_not_quite_as_it_was_does_not_matter() -> None:
    assert compare(PUBLISHED, [make_evidence(CANDIDATE, 2.0 / 1.03)]) == Reproduced()


def test_a_smaller_gain_in_another_environment_is_reproduced() -> None:
    replay = make_evidence(CANDIDATE, 1.5)
    elsewhere = replay.environment.model_copy(update={"device": "another processor"})

    assert compare(PUBLISHED, [replay.model_copy(update={"environment": elsewhere})]) == (
        Reproduced()
    )


def test_noise_tells_nothing() -> None:
    assert isinstance(compare(PUBLISHED, [with_pairs(1.0, 4.0, 1.5, 2.7, 2.0)]), CannotTell)


def test_one_pair_tells_nothing() -> None:
    assert isinstance(compare(PUBLISHED, [with_pairs(2.0)]), CannotTell)


def test_two_replays_tell_more_than_one() -> None:
    first, second = with_pairs(1.8, 2.2), with_pairs(1.9, 2.1, 2.0, 2.0, 1.95, 2.05)

    assert isinstance(compare(PUBLISHED, [first]), CannotTell)
    assert compare(PUBLISHED, [first, second]) == Reproduced()


def test_a_measurement_that_cannot_be_trusted_tells_nothing() -> None:
    faulty = make_evidence(CANDIDATE).model_copy(update={"faults": ("page faults on one side",)})

    assert isinstance(compare(PUBLISHED, [faulty]), CannotTell)


@pytest.mark.parametrize("sigma", [0.005, 0.02, 0.06, 0.2])
def test_a_slowed_kernel_passes_hardly_ever_whatever_the_noise(sigma: float) -> None:
    passed = [
        compare(
            noisy(2.0, sigma=sigma, pairs=12, seed=seed),
            [noisy(2.0 / 1.1, sigma=sigma, pairs=8, seed=10_000 + seed)],
        )
        == Reproduced()
        for seed in range(400)
    ]

    assert sum(passed) <= 12  # 1.25 % of 400 is 5; more than 12 come up once in 400 times


@pytest.mark.parametrize("sigma", [0.005, 0.02, 0.04])
def test_an_honest_kernel_on_an_ordinary_machine_is_mostly_reproduced(sigma: float) -> None:
    findings = [
        compare(
            noisy(2.0, sigma=sigma, pairs=12, seed=seed),
            [noisy(2.0, sigma=sigma, pairs=8, seed=10_000 + seed)],
        )
        for seed in range(200)
    ]

    assert sum(finding == Reproduced() for finding in findings) >= 190
    assert not any(isinstance(finding, NotReproduced) for finding in findings)


def test_the_interval_of_the_evidence_is_not_believed() -> None:
    """Only pairs count: a narrow interval that was written by hand makes nothing certain."""
    wide = with_pairs(1.0, 4.0, 1.5, 2.7, 2.0)
    boast = wide.model_copy(update={"ratio": Interval(low=1.99, estimate=2.0, high=2.01)})

    assert isinstance(compare(PUBLISHED, [boast]), CannotTell)
