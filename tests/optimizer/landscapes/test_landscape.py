"""A landscape's file: what it says, how it fills up, and what is wrong with a bad one."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from knowledge.fitness import fitness
from knowledge.outcome import Counterexample, Failed, Incorrect, Outcome, TimedOut
from optimizer.errors import LandscapeError
from optimizer.landscapes.landscape import (
    Landscape,
    load_landscape,
    load_landscapes,
    write_landscape,
)
from tests.makers import make_passed
from tests.optimizer.landscapes.synthetic import (
    PRODUCT,
    WIDE,
    bowl,
    make_landscape,
    make_structure,
    tiled_product,
)

SMALL = {"A": (1, 2, 4), "B": (8, 16)}
OUTCOMES: st.SearchStrategy[Outcome] = st.one_of(
    st.floats(1e-6, 1e3).map(make_passed),
    st.text("ab \n", max_size=300).map(lambda text: Failed(stage="run", log=text)),
    st.text("ab \n", max_size=300).map(lambda text: Incorrect(reason=text)),
    st.just(TimedOut(stage="build", deadline_s=120.0)),
)


def empty(**tunables: tuple[int, ...]) -> Landscape:
    full = make_landscape("empty", (tunables or SMALL, bowl(A=1)))
    return full.model_copy(
        update={"device_ms": (None,) * full.size, "near_share": None, "failures": ()}
    )


@settings(max_examples=50)
@given(st.dictionaries(st.integers(0, 5), OUTCOMES))
def test_a_landscape_comes_back_from_its_file_as_it_was(outcomes: dict[int, Outcome]) -> None:
    landscape = empty().filled(outcomes)

    assert Landscape.from_json(landscape.to_json()) == landscape
    assert set(landscape.missing) == set(range(6)) - outcomes.keys()


@settings(max_examples=50)
@given(st.dictionaries(st.integers(0, 5), OUTCOMES), st.randoms(use_true_random=False))
def test_in_which_pieces_it_fills_up_makes_no_difference(
    outcomes: dict[int, Outcome], rng: "st.DrawFn"
) -> None:
    places = sorted(outcomes)
    cut = len(places) // 2

    pieces = empty().filled({p: outcomes[p] for p in places[:cut]})
    pieces = pieces.filled({p: outcomes[p] for p in places[cut:]})

    assert {p: pieces.outcome(p) for p in places} == {
        p: empty().filled(outcomes).outcome(p) for p in places
    }


def test_a_point_that_passed_gives_the_fitness_that_the_judge_gave() -> None:
    landscape = empty().filled({3: make_passed(0.25, peer_ms=1.0)})

    assert fitness(landscape.outcome(3)) == pytest.approx(4.0)


def test_what_differs_from_run_to_run_is_not_kept_of_a_failure() -> None:
    wrong = Counterexample(output="y", index=(1,), got="2", wanted="1", sizes={"rows": 7}, seed=9)
    both = {0: Incorrect(reason="off", counterexample=wrong), 1: Incorrect(reason="off")}

    landscape = empty().filled(both)

    assert [(f.outcome, f.points) for f in landscape.failures] == [
        (Incorrect(reason="off"), (0, 1))
    ]


def test_points_are_counted_with_the_last_tunable_changing_fastest() -> None:
    landscape = empty()

    assert [c.chosen for c in landscape.candidates[:3]] == [
        {"A": 1, "B": 8},
        {"A": 1, "B": 16},
        {"A": 2, "B": 8},
    ]
    assert landscape.places[landscape.candidates[4].id] == 4


def test_the_share_of_good_points_is_told_once_all_are_tried() -> None:
    times = {0: 1.0, 1: 1.04, 2: 1.06, 3: 2.0, 4: 3.0}

    partly = empty().filled({place: make_passed(ms) for place, ms in times.items()})
    wholly = partly.filled({5: TimedOut(stage="run", deadline_s=5.0)})

    assert partly.near_share is None
    assert wholly.near_share == pytest.approx(2 / 6, abs=1e-5)
    assert [wholly.is_near(place) for place in range(6)] == [True, True, *[False] * 4]


def test_a_thousand_points_fit_into_sixty_kilobytes() -> None:
    landscape = make_landscape("p", (PRODUCT, tiled_product(512, 512, 512)), (WIDE, bowl(BLOCK=64)))
    code = "# as much source as the largest space has\n" * 520

    structure = landscape.structures[0].model_copy(
        update={"code": landscape.structures[0].code + code}
    )
    written = landscape.model_copy(
        update={"structures": (structure, *landscape.structures[1:])}
    ).to_json()

    assert landscape.size == 2400
    assert len(written) < 60_000


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"device_ms": [1.0]}, "have 6 points, device_ms has 1"),
        ({"device_ms": [1, 1, 1, 1, 1, -1]}, "not above 0"),
        ({"near_share": 0.5}, "near_share is 0.5, the times say"),
        ({"schema": 2}, "schema"),
        ({"baseline": None}, "no baseline"),
        ({"commits": "x"}, "commits"),
        (
            {"failures": [{"outcome": {"kind": "incorrect", "reason": "r"}, "points": [0]}]},
            "failed, but has a time",
        ),
    ],
)
def test_the_loader_says_what_is_wrong_with_a_file(
    tmp_path: Path, changed: dict[str, object], said: str
) -> None:
    path = tmp_path / "bad.json"
    good = json.loads(make_landscape("good", (SMALL, bowl(A=1))).to_json())
    path.write_text(json.dumps(good | changed))

    with pytest.raises(LandscapeError) as caught:
        load_landscape(path)

    assert said in str(caught.value)
    assert str(path) in str(caught.value)


def test_tunables_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    good = json.loads(make_landscape("good", (SMALL, bowl(A=1))).to_json())
    good["structures"][0]["code"] = "TUNABLES = {1: 2}\n"
    path.write_text(json.dumps(good))

    with pytest.raises(LandscapeError, match="TUNABLES is no literal"):
        load_landscape(path)


def test_a_landscape_that_lacks_points_is_not_replayed(tmp_path: Path) -> None:
    write_landscape(tmp_path / "partly.json", empty().filled({0: make_passed(1.0)}))

    with pytest.raises(LandscapeError, match="5 of 6 points were not tried"):
        load_landscapes(tmp_path)


def test_a_folder_without_landscapes_says_how_to_record_some(tmp_path: Path) -> None:
    with pytest.raises(LandscapeError, match="bench landscapes"):
        load_landscapes(tmp_path)


def test_landscapes_of_a_folder_come_by_name(tmp_path: Path) -> None:
    for name in ("b", "a"):
        write_landscape(tmp_path / f"{name}.json", make_landscape(name, (SMALL, bowl(A=1))))

    assert [landscape.name for landscape in load_landscapes(tmp_path)] == ["a", "b"]


def test_a_structure_has_a_point_for_each_choice() -> None:
    structure = make_structure("s", WIDE)

    assert structure.size == len(list(structure.choices())) == 1200
