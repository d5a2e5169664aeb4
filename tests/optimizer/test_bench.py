"""The catalogue bench, with jobs that say what they are told to say."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from knowledge.evidence import Better, NotBetter
from operator_registry.registry import Operator
from optimizer.bench import bench
from optimizer.catalog import Catalog
from optimizer.errors import RunnerError
from optimizer.job import BenchRequest, BenchResult, OptimizeRequest, OptimizeResult
from optimizer.kernel import make_kernel, read_kernel
from optimizer.kernel_page import write_kernel
from tests.makers import HARDWARE, OPERATOR, make_candidate, make_evidence

CANDIDATE = make_candidate()


def rename(name: str) -> Operator:
    return OPERATOR.model_copy(update={"spec": OPERATOR.spec.model_copy(update={"name": name})})


WINNER, LOSER, BROKEN = rename("winner"), rename("loser"), rename("broken")


@dataclass
class Jobs:
    """Optimises by heart: the winner is twice as fast, the loser half as fast."""

    folder: Path
    ran: list[str] = field(default_factory=list)

    def __call__(self, request: OptimizeRequest) -> OptimizeResult:
        self.ran.append(request.operator.name)
        if request.operator == BROKEN:
            message = "no compiler"
            raise RunnerError(message)
        won = request.operator == WINNER
        evidence = make_evidence(
            CANDIDATE, 2.0 if won else 0.5, operator_digest=request.operator.digest
        )
        result = OptimizeResult(
            operator=request.operator.name,
            hardware=request.hardware.name,
            message="finished",
            verdict=Better() if won else NotBetter(reason="slower"),
            evidence=evidence,
            candidate=CANDIDATE,
            trials=5,
            passed=4,
        )
        if not won:
            return result
        folder = self.folder / request.operator.name
        kernel = make_kernel(
            request.operator, request.hardware, candidate=CANDIDATE, evidence=evidence
        )
        write_kernel(folder, kernel)
        return result.model_copy(update={"kernel_folder": folder})


@pytest.fixture
def jobs(tmp_path: Path) -> Jobs:
    return Jobs(tmp_path / "made")


def run(
    jobs: Jobs, tmp_path: Path, *operators: Operator, shard: tuple[int, int] = (1, 1)
) -> BenchResult:
    request = BenchRequest(
        operators=operators,
        hardware=HARDWARE,
        folder=tmp_path / "results",
        store_url="sqlite://",
        state_folder=tmp_path / "state",
        kernels_folder=tmp_path / "kernels",
        commit="abc",
        command="kernelevolve bench catalog",
        shard=shard,
    )
    return bench(request, optimize=jobs, tell=lambda event: None)


def load_table(tmp_path: Path) -> Catalog:
    return Catalog.from_json((tmp_path / "results/catalog.json").read_text())


def test_each_operator_has_a_row_and_losers_count(jobs: Jobs, tmp_path: Path) -> None:
    result = run(jobs, tmp_path, WINNER, LOSER)

    catalog = load_table(tmp_path)
    assert [(row.operator, row.verdict) for row in catalog.rows] == [
        ("loser", "not_better"),
        ("winner", "better"),
    ]
    assert result.summary == {
        "operators": 2,
        "correct": 2,
        "geomean_vs_eager": pytest.approx(1.0),
        "geomean_vs_best_peer": pytest.approx(1.0),
    }


def test_the_page_shows_the_loser_and_why(jobs: Jobs, tmp_path: Path) -> None:
    run(jobs, tmp_path, WINNER, LOSER)

    page = (tmp_path / "results/catalog.md").read_text()
    assert "| loser | not_better | 0.50x |" in page
    assert "- `loser`: slower" in page


def test_a_row_holds_raw_medians_and_intervals(jobs: Jobs, tmp_path: Path) -> None:
    run(jobs, tmp_path, WINNER)

    (row,) = load_table(tmp_path).rows
    (workload,) = row.workloads
    assert (workload.eager_ms, workload.best_peer_ms, workload.ours_ms) == (1.0, 1.0, 0.5)
    assert workload.ratio.low < workload.ratio.estimate < workload.ratio.high


def test_rows_that_are_there_are_not_run_again(jobs: Jobs, tmp_path: Path) -> None:
    run(jobs, tmp_path, WINNER)
    run(jobs, tmp_path, WINNER, LOSER)

    assert jobs.ran == ["winner", "loser"]


def test_a_changed_operator_takes_the_place_of_its_row(jobs: Jobs, tmp_path: Path) -> None:
    run(jobs, tmp_path, LOSER)
    changed = LOSER.model_copy(update={"source": "def scale(x, factor):\n    return factor * x\n"})

    run(jobs, tmp_path, changed)

    assert [row.operator_digest for row in load_table(tmp_path).rows] == [changed.digest]


def test_shards_share_the_operators_and_the_table(jobs: Jobs, tmp_path: Path) -> None:
    run(jobs, tmp_path, WINNER, LOSER, shard=(1, 2))
    run(jobs, tmp_path, WINNER, LOSER, shard=(2, 2))

    assert jobs.ran == ["loser", "winner"]
    assert len(load_table(tmp_path).rows) == 2


def test_a_job_that_cannot_run_is_named_and_the_rest_goes_on(jobs: Jobs, tmp_path: Path) -> None:
    result = run(jobs, tmp_path, BROKEN, WINNER)

    assert result.unfinished == ("broken: no compiler",)
    assert result.summary["operators"] == 1


def test_a_kernel_that_is_better_is_copied(jobs: Jobs, tmp_path: Path) -> None:
    run(jobs, tmp_path, WINNER, LOSER)

    assert read_kernel(tmp_path / "kernels/winner/cpu-x86-64-v3")
    assert not (tmp_path / "kernels/loser").exists()
