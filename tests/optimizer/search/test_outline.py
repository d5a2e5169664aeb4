from random import Random
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from optimizer.search.outline import draw, find_best_path, pick_shown
from optimizer.search.tree import Tree
from optimizer.search.tree_svg import tree_svg
from optimizer.store import Trial
from tests.optimizer.search.trees import make_tree, make_trial

SVG = "{http://www.w3.org/2000/svg}"


def texts(tree: Tree, *, rows: int = 60) -> list[str]:
    return [line.text.rstrip() for line in draw(tree, rows=rows)]


def noted(trial: Trial, note: str) -> Trial:
    candidate = trial.candidate.model_copy(update={"note": note})
    return trial.model_copy(update={"candidate": candidate})


def chain(length: int) -> Tree:
    """Return a tree in which each trial is made from the one before, and is better."""
    return make_tree(
        *(make_trial(n, 1 + n / 100, parent=n - 1 if n > 1 else None) for n in range(1, length + 1))
    )


def test_a_tree_is_drawn_with_its_best_path_and_its_reasons() -> None:
    tree = make_tree(
        noted(make_trial(1, 1.5), "a loop"),
        noted(make_trial(2, 0.0), "another"),
        noted(make_trial(3, 2.0, parent=1), "unrolled"),
        noted(make_trial(4, 1.0, parent=1, mate=2), "both"),
    )

    assert texts(tree) == [
        "├─ * 1 1.50x one: a loop",
        "│  ├─ * 3 2.00x one: unrolled",
        "│  └─ 4 1.00x one x 2: both",
        "└─ 2 failed (build: no) one: another",
    ]
    assert [line.best for line in draw(tree)] == [True, True, False, False]


def test_what_is_left_out_is_counted_where_it_would_stand() -> None:
    children = [make_trial(n, 1.0 if n % 2 else 0.0, parent=1) for n in range(2, 20)]
    tree = make_tree(make_trial(1, 3.0), *children)

    drawn = texts(tree, rows=3)

    assert drawn[0].startswith("└─ * 1 3.00x")
    assert drawn[1].startswith("   ├─ 3 1.00x")
    assert drawn[-1] == "   └─ … 16 more, 9 failed, 7 passed"


def test_a_long_best_path_shows_its_ends_and_counts_its_steps() -> None:
    drawn = texts(chain(100), rows=10)

    assert drawn[0].startswith("└─ * 1 1.01x")
    assert "(90 steps on) * 94 1.94x" in drawn[3]
    assert "* 100 2.00x" in drawn[9]


def test_a_tree_deeper_than_pythons_stack_is_drawn() -> None:
    tree = chain(5000)

    assert len(find_best_path(tree)) == 5000
    assert len(draw(tree, rows=5000)) == 5000
    assert tree_svg(tree, title="deep")


def test_a_tree_where_nothing_was_timed_shows_its_latest_failures() -> None:
    tree = make_tree(*(make_trial(n, 0.0) for n in range(1, 30)))

    assert [node.trial.number for node in pick_shown(tree, rows=2)] == [28, 29]
    assert not any(line.best for line in draw(tree))


def test_a_search_without_trials_has_an_empty_drawing() -> None:
    assert draw(Tree()) == []
    assert ET.fromstring(tree_svg(Tree(), title="none")).tag == f"{SVG}svg"  # noqa: S314 - our own text


def test_the_words_of_strangers_leave_no_escapes() -> None:
    trial = noted(make_trial(1, 1.0), "\x1b[31mred\n</title><script>\u202e")

    drawn = texts(make_tree(trial))
    picture = tree_svg(make_tree(trial), title="<b>")

    assert drawn[0].isprintable()
    assert "<script>" not in picture
    assert "<b>" not in picture


@given(st.integers(1, 40), st.integers(1, 12), st.randoms(use_true_random=False))
def test_each_trial_is_shown_or_counted_once(trials: int, rows: int, random: Random) -> None:
    tree = make_tree(
        *(
            make_trial(
                n,
                random.choice((0.0, 1.0, 2.0)),
                parent=random.randrange(n) if n and random.random() < 0.7 else None,
            )
            for n in range(trials)
        )
    )

    drawn = texts(tree, rows=rows)

    left_out = sum(int(text.split("… ")[1].split(" ")[0]) for text in drawn if "… " in text)
    shown = sum("… " not in text for text in drawn)
    assert shown == len(pick_shown(tree, rows=rows))
    assert shown + left_out == trials


def test_a_picture_has_a_point_for_each_trial_and_says_what_it_was() -> None:
    tree = make_tree(make_trial(1, 1.0), make_trial(2, 2.0, parent=1), make_trial(3, 0.0, parent=1))

    picture = ET.fromstring(tree_svg(tree, title="scale on h"))  # noqa: S314 - our own text

    points = [circle for circle in picture.iter(f"{SVG}circle") if len(circle)]
    assert [point[0].text for point in points] == [
        "1 1.00x one: draft one",
        "2 2.00x one: draft one",
        "3 failed (build: no) one: draft one",
    ]
    heights = [float(point.attrib["cy"]) for point in points]
    assert heights[1] < heights[0] < heights[2]
    assert sum(line.get("stroke-width") == "2" for line in picture.iter(f"{SVG}line")) == 1


def test_the_same_tree_makes_the_same_picture() -> None:
    assert tree_svg(chain(20), title="t") == tree_svg(chain(20), title="t")
