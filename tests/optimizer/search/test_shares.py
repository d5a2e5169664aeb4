from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from optimizer.search.shares import Earned, pick_by_share

NAMES = ("one", "two", "three")


def share(earned: dict[str, Earned], *, at: int) -> Counter[str | None]:
    """Return how often each is asked, of 400 times."""
    return Counter(pick_by_share(NAMES[:2], earned, at=at, seed=str(i)) for i in range(400))


def test_who_earns_more_is_asked_more_often_and_the_other_not_never() -> None:
    asked = share({"one": Earned(15, 20, 40), "two": Earned(1, 20, 40)}, at=40)

    assert asked["one"] > 380
    assert asked["two"] > 0 or share({"two": Earned(1, 20, 40)}, at=80)["two"] > 0


def test_those_of_whom_nothing_is_known_are_asked_alike() -> None:
    assert 150 < share({}, at=0)["one"] < 250


def test_what_was_earned_fades_so_that_a_loser_comes_back() -> None:
    lost = {"one": Earned(5, 20, 40), "two": Earned(0, 20, 40)}

    assert share(lost, at=40)["two"] < 40
    assert share(lost, at=140)["two"] > 150


@given(st.text(max_size=3), st.integers(0, 50), st.sampled_from(NAMES))
def test_the_order_of_the_others_stays_when_one_falls_away(seed: str, at: int, away: str) -> None:
    earned = {"one": Earned(3, 9, 10), "two": Earned(1, 2, 10)}
    first = pick_by_share(NAMES, earned, at=10 + at, seed=seed)
    left = [name for name in NAMES if name != away]

    again = pick_by_share(left, earned, at=10 + at, seed=seed)

    assert first in {again, away}


def test_nobody_able_is_nobody_asked() -> None:
    assert pick_by_share((), {}, at=0, seed="") is None
