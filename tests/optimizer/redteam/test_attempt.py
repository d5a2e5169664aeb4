"""What counts as getting through: the judge's doubts do, its noise does not."""

import pytest

from knowledge.evidence import Evidence, Interval, NullRun
from optimizer.redteam.attempt import find_suspicion
from tests.makers import make_candidate, make_evidence

WIDE = Interval(low=0.1, estimate=1.0, high=10.0)
GOOD = make_evidence(make_candidate())


def test_good_evidence_is_not_suspect() -> None:
    assert find_suspicion(GOOD) is None


@pytest.mark.parametrize(
    "noise",
    [
        {"ratio": WIDE},
        {"ratio": Interval(low=0.4, estimate=0.5, high=0.6)},
        {"null": NullRun(pair_ratios=(2.0,), ratio=Interval(low=1.9, estimate=2.0, high=2.1))},
        {"null": NullRun(pair_ratios=(), ratio=WIDE)},
    ],
)
def test_noise_and_slowness_are_not_suspect(noise: dict[str, object]) -> None:
    assert find_suspicion(GOOD.model_copy(update=noise)) is None


def test_a_fault_is_suspect() -> None:
    doubted = GOOD.model_copy(update={"faults": ("the clocks disagree",)})

    assert "the clocks disagree" in str(find_suspicion(doubted))


def test_library_calls_alone_are_suspect() -> None:
    borrowed: Evidence = GOOD.model_copy(update={"library_only": True})

    assert find_suspicion(borrowed) is not None
