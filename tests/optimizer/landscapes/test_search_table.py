"""The table of the search bench: sums, ratios, and what the default promises."""

import pytest

from optimizer.landscapes.search_record import SearchRow, SearchSummary, SearchTable
from optimizer.landscapes.search_table import find_failures, summarise, to_markdown


def make_row(
    landscape: str, method: str, *counts: int, held_out: bool = False, points: int = 600
) -> SearchRow:
    return SearchRow(
        landscape=landscape,
        held_out=held_out,
        points=points,
        near_share=0.01,
        method=method,
        evaluations=counts,
        commit="abc",
    )


def make_summary(*, ours: int = 10, held_out: int = 10, tpe: int = 50) -> SearchSummary:
    rows = [
        *(make_row("a", m, n, n) for m, n in (("greedy", ours), ("random", 90), ("tpe", tpe))),
        *(make_row("b", m, n, n) for m, n in (("greedy", ours), ("random", 90), ("tpe", tpe))),
        *(
            make_row("c", m, n, n, held_out=True)
            for m, n in (("greedy", held_out), ("random", 90), ("tpe", tpe))
        ),
    ]
    return summarise(rows, default="greedy")


def test_a_landscape_counts_by_its_mean_and_all_by_their_geometric_mean() -> None:
    rows = [make_row("a", "random", 10, 30), make_row("b", "random", 500)]

    summary = summarise(rows, default="greedy")

    assert summary.evaluations_to_5_percent == {"random": 100.0}
    assert (summary.landscapes, summary.seeds) == (2, 1)


def test_the_default_stands_first_under_its_name_as_well() -> None:
    summary = make_summary()

    assert list(summary.evaluations_to_5_percent) == ["default", "greedy", "random", "tpe"]
    assert summary.evaluations_to_5_percent["default"] == 10


def test_held_out_landscapes_are_reported_alone() -> None:
    summary = make_summary(held_out=40)

    assert summary.tuned is not None
    assert summary.held_out is not None
    assert (summary.tuned.landscapes, summary.held_out.landscapes) == (2, 1)
    assert summary.tuned.evaluations_to_5_percent["greedy"] == 10
    assert summary.held_out.evaluations_to_5_percent["greedy"] == 40


def test_a_ratio_has_an_interval_over_the_seeds() -> None:
    rows = [
        make_row("a", "greedy", 5, 10, 15, 20, 25),
        make_row("a", "random", 100, 100, 100, 100, 100),
    ]

    tuned = summarise(rows, default="greedy").tuned

    assert tuned is not None
    share = tuned.versus_random["greedy"]
    assert share.estimate == pytest.approx(0.15)
    assert 0.05 < share.low < 0.15 < share.high < 0.25
    assert not tuned.versus_tpe


@pytest.mark.parametrize(
    ("ours", "held_out", "tpe", "said"),
    [
        (30, 30, 50, []),
        (31, 30, 50, ["tuned: greedy takes 0.34 of random"]),
        (30, 31, 50, ["held-out: greedy takes 0.34 of random"]),
        (10, 10, 9, ["tuned: greedy takes 1.11 of TPE", "held-out: greedy takes 1.11 of TPE"]),
    ],
)
def test_the_default_promises_a_third_of_random_search_and_no_more_than_tpe(
    ours: int, held_out: int, tpe: int, said: list[str]
) -> None:
    failures = list(find_failures(make_summary(ours=ours, held_out=held_out, tpe=tpe)))

    assert len(failures) == len(said)
    assert all(f.startswith(s) for f, s in zip(failures, said, strict=True))


def test_the_page_shows_the_default_first_and_every_landscape() -> None:
    rows = (make_row("a", "random", 90), make_row("a", "greedy", 10, held_out=False))
    table = SearchTable(
        command="kernelevolve bench search",
        environment={"python": "3.11"},
        summary=summarise(rows, default="greedy"),
        rows=rows,
    )

    page = to_markdown(table)

    assert "| greedy | 10.0 | 0.11 (0.11 to 0.11) | - |" in page
    assert page.index("| greedy |") < page.index("| random |")
    assert "| a | 600 | 1.00% | 10.0 | 90.0 |" in page
    assert "kernelevolve bench search" in page
