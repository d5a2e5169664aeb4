"""Recording: resumable, cut off anywhere, and never of two environments in one file."""

from contextlib import nullcontext
from pathlib import Path

import pytest

from knowledge.outcome import Failed, Outcome, Passed
from operator_registry.registry import CATALOG, load_registry
from optimizer.candidate import Candidate
from optimizer.errors import LandscapeError, RunnerError
from optimizer.job import LandscapesRequest, LandscapesResult
from optimizer.landscapes.landscape import load_landscape
from optimizer.landscapes.recording import batch_size, bench_landscapes, pick_names
from optimizer.landscapes.spaces import SPACES
from optimizer.stop import StoppedError
from tests.fakes import FakeRunner
from tests.makers import ENVIRONMENT, make_passed

HARDWARE = load_registry(CATALOG).hardware["cpu-x86-64-v3"]
NAME = "cpu-product-square"


def judge(candidate: Candidate) -> Outcome:
    chosen = candidate.chosen
    if chosen["MR"] == 1:
        return Failed(stage="build", log="MR is too small\nmore")
    return make_passed(1 + abs(chosen["NR"] - 32) + chosen["PACKED"] / 100)


def make_request(folder: Path, *, points: int | None = None, only: str = NAME) -> LandscapesRequest:
    return LandscapesRequest(
        hardware=HARDWARE,
        folder=folder,
        state_folder=folder / "state",
        only=only,
        points=points,
        commit="abc",
    )


def record(
    request: LandscapesRequest, runner: FakeRunner, *, stop_after: int = 1 << 30
) -> LandscapesResult:
    asked = iter(range(1 << 30))
    return bench_landscapes(
        request,
        tell=lambda event: None,
        stopped=lambda: next(asked) > stop_after,
        make_runner=lambda operator, hardware, folder: nullcontext(runner),
    )


def test_a_space_is_recorded_as_a_whole(tmp_path: Path) -> None:
    runner = FakeRunner(try_one=judge)

    result = record(make_request(tmp_path), runner)

    landscape = load_landscape(tmp_path / f"{NAME}.json")
    assert len(runner.ran) == len(set(runner.ran)) == landscape.size == 720
    assert not landscape.missing
    assert all(
        landscape.outcome(p).kind == judge(c).kind for p, c in enumerate(landscape.candidates)
    )
    (row,) = result.rows
    assert (row.points, row.tried, row.passed) == (720, 720, 720 * 4 // 5)
    assert (row.optimum_ms, row.baseline_ms) == (1.0, 1.0)
    assert result.too_easy == (NAME,)  # a fifth of the points are as good as the best
    assert not result.unfinished


def test_points_that_are_there_are_not_tried_again(tmp_path: Path) -> None:
    first, second = FakeRunner(try_one=judge), FakeRunner(try_one=judge)

    partly = record(make_request(tmp_path, points=100), first)
    record(make_request(tmp_path), second)

    assert partly.unfinished == (NAME,)
    assert (len(first.ran), len(second.ran)) == (100, 620)
    assert not set(first.ran) & set(second.ran)
    assert not load_landscape(tmp_path / f"{NAME}.json").missing


def test_the_next_batch_is_named_while_one_is_tried(tmp_path: Path) -> None:
    runner = FakeRunner(try_one=judge)

    record(make_request(tmp_path, points=2 * batch_size("cpu")), runner)

    assert runner.built_ahead[0] == runner.ran[batch_size("cpu") :]
    assert runner.built_ahead[-1] == []


def test_a_polite_stop_leaves_whole_batches(tmp_path: Path) -> None:
    runner = FakeRunner(try_one=judge)

    result = record(make_request(tmp_path), runner, stop_after=2)

    landscape = load_landscape(tmp_path / f"{NAME}.json")
    assert result.unfinished == (NAME,)
    assert landscape.size - len(landscape.missing) == len(runner.ran) == 2 * batch_size("cpu")


@pytest.mark.parametrize("error", [StoppedError(), RunnerError("the device is gone")])
def test_what_a_batch_had_tried_is_kept_when_it_is_cut_off(
    tmp_path: Path, error: BaseException
) -> None:
    runner = FakeRunner()

    def die(candidate: Candidate) -> Outcome:
        if len(runner.ran) == 7:
            raise error
        return judge(candidate)

    runner.try_one = die
    with pytest.raises(type(error)):
        record(make_request(tmp_path), runner)

    landscape = load_landscape(tmp_path / f"{NAME}.json")
    assert landscape.size - len(landscape.missing) == 6


def test_nothing_is_recorded_without_a_device(tmp_path: Path) -> None:
    runner = FakeRunner(try_one=lambda _: Passed(times=()))

    with pytest.raises(RunnerError, match="nothing can be timed"):
        record(make_request(tmp_path), runner)


def test_times_of_two_environments_never_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / f"{NAME}.json"
    record(make_request(tmp_path, points=10), FakeRunner(try_one=judge))
    other = load_landscape(path).model_copy(
        update={"environment": ENVIRONMENT.model_copy(update={"torch": "1.0"})}
    )
    path.write_text(other.to_json())

    with pytest.raises(LandscapeError, match="another environment; remove it"):
        record(make_request(tmp_path), FakeRunner(try_one=judge))


def test_shards_share_out_the_spaces() -> None:
    every = make_request(Path(), only="")

    parts = [
        name
        for part in (1, 2, 3)
        for name in pick_names(every.model_copy(update={"shard": (part, 3)}))
    ]

    assert sorted(parts) == sorted(SPACES["cpu"])


def test_an_unknown_space_is_refused_with_those_there_are() -> None:
    with pytest.raises(RunnerError, match=f"no space nothing.*{NAME}"):
        pick_names(make_request(Path(), only="nothing"))
