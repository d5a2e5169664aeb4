"""The search bench from a folder of landscapes to its table."""

from collections.abc import Callable
from pathlib import Path

import pytest

from optimizer.errors import LandscapeError
from optimizer.job import PhaseEvent, SearchBenchRequest
from optimizer.landscapes.bench_search import DEFAULT, bench_search, methods
from optimizer.landscapes.landscape import write_landscape
from optimizer.landscapes.search_record import SearchTable
from optimizer.landscapes.spaces import HELD_OUT
from optimizer.search.policies import POLICIES
from optimizer.stop import StoppedError
from tests.optimizer.landscapes.synthetic import bowl, make_landscape, rugged

TINY = {"A": (1, 2, 4, 8), "B": (8, 16, 32)}


def make_request(folder: Path, *, commit: str = "abc") -> SearchBenchRequest:
    return SearchBenchRequest(
        folder=folder / "landscapes",
        file=folder / "search.json",
        seeds=2,
        commit=commit,
        command="kernelevolve bench search",
    )


@pytest.fixture
def request_of(tmp_path: Path) -> SearchBenchRequest:
    for name in ("tiny", HELD_OUT[0]):
        landscape = make_landscape(name, (TINY, rugged(bowl(A=2, B=16), by=0.1)))
        write_landscape(tmp_path / "landscapes" / f"{name}.json", landscape)
    return make_request(tmp_path)


def run(
    request: SearchBenchRequest, stopped: Callable[[], bool] = lambda: False
) -> tuple[SearchTable, list[str], int]:
    told: list[str] = []

    def tell(event: object) -> None:
        assert isinstance(event, PhaseEvent)
        told.append(event.detail)

    result = bench_search(request, tell=tell, stopped=stopped)
    return SearchTable.from_json(result.file.read_bytes()), told, result.unfinished


def test_every_policy_runs_beside_random_search_and_tpe(request_of: SearchBenchRequest) -> None:
    table, _, unfinished = run(request_of)

    rows = {(row.landscape, row.method): row for row in table.rows}
    assert len(rows) == len(table.rows) == 2 * len(methods())
    assert {row.method for row in table.rows} >= {*POLICIES, "random", "tpe"} - {"random"}
    assert all(len(row.evaluations) == 2 for row in table.rows)
    assert {row.landscape for row in table.rows if row.held_out} == {HELD_OUT[0]}
    assert next(iter(table.summary.evaluations_to_5_percent)) == "default"
    assert {"default", "random", "tpe"} <= table.summary.evaluations_to_5_percent.keys()
    assert table.summary.default == DEFAULT == next(iter(methods()))
    assert unfinished == 0
    assert "# Evaluations" in request_of.file.with_suffix(".md").read_text()


def test_the_same_seeds_give_the_same_table(request_of: SearchBenchRequest) -> None:
    first, _, _ = run(request_of)
    request_of.file.unlink()

    again, _, _ = run(request_of)

    assert again == first


def test_after_a_stop_it_goes_on_where_it_was(request_of: SearchBenchRequest) -> None:
    answers = iter([False] * 3)

    _, _, unfinished = run(request_of, stopped=lambda: next(answers, True))
    table, told, left = run(request_of)

    assert unfinished == 2 * len(methods()) - 3
    assert len(told) == unfinished
    assert (len(table.rows), left) == (2 * len(methods()), 0)


def test_what_was_raced_is_kept_when_a_race_is_cut_off(request_of: SearchBenchRequest) -> None:
    def tell(event: object) -> None:
        assert isinstance(event, PhaseEvent)
        if event.detail.endswith("mcts"):
            raise StoppedError

    with pytest.raises(StoppedError):
        bench_search(request_of, tell=tell, stopped=lambda: False)

    table = SearchTable.from_json(request_of.file.read_bytes())
    assert [row.method for row in table.rows] == [DEFAULT]


@pytest.mark.parametrize("commit", ["", "abc+", "abd"])
def test_rows_of_other_code_are_made_again(request_of: SearchBenchRequest, commit: str) -> None:
    run(request_of)

    _, told, _ = run(request_of.model_copy(update={"commit": commit}))

    assert len(told) == 2 * len(methods())


def test_a_folder_without_landscapes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LandscapeError):
        run(make_request(tmp_path))
