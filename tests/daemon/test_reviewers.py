import pytest

from daemon.pulls.reviewers import find_owners, pick_reviewers

PATH = "kernels/scale/h200/README.md"


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("*", True),
        ("*.md", True),
        ("*.py", False),
        ("kernels/", True),
        ("/kernels/", True),
        ("kernels", True),
        ("/kernels", True),
        ("scale/", True),
        ("/scale/", False),
        ("kernels/*", False),
        ("kernels/*/h200/", True),
        ("kernels/**/README.md", True),
        ("**/h200/", True),
        ("kernels/scale/h10?/", False),
        ("kernels/scale/h20?/", True),
        ("kernel", False),
        ("kernels/scale/h200/README.md", True),
        (".*", False),
    ],
)
def test_a_pattern_matches_as_on_github(pattern: str, *, matches: bool) -> None:
    assert find_owners(f"{pattern} @me", PATH) == (("@me",) if matches else ())


def test_the_last_line_that_matches_counts() -> None:
    text = "# owners\n* @all\n\nkernels/ @kernels @more # those\ndocs/ @docs\n"

    assert find_owners(text, PATH) == ("@kernels", "@more")


def test_a_line_without_owners_takes_them_away() -> None:
    assert find_owners("* @all\nkernels/\n", PATH) == ()


def test_people_and_teams_are_picked_once_and_the_bot_never() -> None:
    names = ("@ann", "bob", "@Ann-2", "@org/team", "x@example.com", "the team", "@Me", "ann", "-x")

    assert pick_reviewers(names, me="me") == ("ann", "bob", "Ann-2", "org/team")


def test_no_more_are_picked_than_can_be_asked() -> None:
    assert len(pick_reviewers([f"u{n}" for n in range(40)], me="me")) == 15
