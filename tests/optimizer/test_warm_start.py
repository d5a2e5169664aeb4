"""What a new search begins with, out of what was proven before."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from knowledge.evidence import Evidence, SearchSummary
from knowledge.outcome import Failed, Outcome
from operator_registry.registry import Operator
from operator_registry.spec import RangeAxis
from optimizer.candidate import Candidate
from optimizer.job import OptimizeRequest, OptimizeResult
from optimizer.kernel import make_kernel
from optimizer.kernel_page import write_kernel
from optimizer.likeness import likeness
from optimizer.optimize import Workshop, optimize
from optimizer.plan import Launch
from optimizer.propose.proposer import ScriptedProposer
from optimizer.propose.synthesis.rename import rename_spec
from optimizer.search.search import Clock
from optimizer.store import Confirmation, Store
from optimizer.warm_start import Beginning, find_warm_starts
from tests.fakes import FakeRunner
from tests.makers import HARDWARE, OPERATOR, make_candidate, make_evidence, make_passed

PROVEN = make_candidate("proven")
NEWER = OPERATOR.model_copy(
    update={"source": "def scale(x, factor):\n    return factor * x\n"},
)
"""A later version of the same operator."""
RENAMED = Operator(
    spec=rename_spec(OPERATOR.spec, {"x": "values", "rows": "items"}).model_copy(
        update={"name": "stretch", "reference": "stretch"}
    ),
    source="def stretch(values, factor):\n    return values * factor\n",
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(f"sqlite:///{tmp_path}/store.db") as store:
        store.migrate()
        yield store


def open_search(store: Store, operator: Operator, *, key: str = "new", now: float = 100) -> int:
    store.keep_operator(operator, likeness=likeness(operator.spec))
    return store.open_search(
        key, operator=operator.name, hardware=HARDWARE.name, operator_digest=operator.digest,
        now=now,
    )  # fmt: skip


def prove(
    store: Store,
    *candidates: Candidate,
    operator: Operator = OPERATOR,
    evidence: Evidence | None = None,
    key: str = "earlier",
    now: float = 1,
) -> None:
    search = open_search(store, operator, key=key, now=0)
    for number, candidate in enumerate(candidates, start=1):
        result = evidence or make_evidence(candidate, operator_digest=operator.digest)
        done = Confirmation(
            number=number, candidate=candidate.id, alpha=0.1, result=result, spent_s=1
        )
        store.record_confirmation(search, candidate, done, now=now)


def find(
    store: Store,
    operator: Operator = NEWER,
    *,
    key: str = "new",
    probability: float = 1.0,
    trusts_foreign: bool = True,
) -> tuple[Candidate, ...]:
    return find_warm_starts(
        store,
        Beginning(operator, HARDWARE, key, open_search(store, operator, key=key)),
        probability=probability,
        trusts_foreign=lambda: trusts_foreign,
    )


def test_what_was_proven_for_an_earlier_version_is_tried_first(store: Store) -> None:
    prove(store, PROVEN)

    (found,) = find(store)

    assert found.id == PROVEN.id
    assert (found.origin, found.note) == ("warm start", "proven for scale: draft proven")


def test_a_kernel_of_an_operator_that_is_alike_gets_this_ones_names(store: Store) -> None:
    prove(store, PROVEN)

    (found,) = find(store, RENAMED)

    (launch,) = found.plan.steps
    assert isinstance(launch, Launch)
    assert launch.arguments == ("values", "y", "items", "factor")


def test_what_was_not_proven_is_no_beginning(store: Store) -> None:
    prove(store, PROVEN, evidence=make_evidence(PROVEN, 1.0))

    assert find(store) == ()


def test_what_another_size_was_proven_at_is_no_beginning(store: Store) -> None:
    prove(store, PROVEN)
    workload = OPERATOR.spec.workloads[0].model_copy(update={"sizes": {"rows": 1 << 20}})
    axes = {"rows": RangeAxis(max=1 << 20)}
    spec = OPERATOR.spec.model_copy(update={"workloads": (workload,), "axes": axes})

    assert find(store, OPERATOR.model_copy(update={"spec": spec})) == ()


def test_a_published_kernel_is_a_beginning_and_a_damaged_one_is_none(
    store: Store, tmp_path: Path
) -> None:
    kernel = make_kernel(OPERATOR, HARDWARE, candidate=PROVEN, evidence=make_evidence(PROVEN))
    write_kernel(tmp_path / "whole", kernel)
    write_kernel(tmp_path / "damaged", kernel)
    (tmp_path / "damaged" / "dispatch.json").unlink()

    found = find_warm_starts(
        store,
        Beginning(RENAMED, HARDWARE, "new", open_search(store, RENAMED)),
        published=[tmp_path / "whole", tmp_path / "damaged"],
        probability=1.0,
        trusts_foreign=lambda: True,
    )

    assert [candidate.code for candidate in found] == [PROVEN.code]


def test_about_one_in_ten_is_taken_and_always_the_same_ones(store: Store) -> None:
    many = [make_candidate(str(number)) for number in range(40)]
    prove(store, *many)
    keys = [f"goal {number}" for number in range(25)]

    taken = [find(store, key=key, probability=0.1) for key in keys]

    assert taken == [find(store, key=key, probability=0.1) for key in keys]
    assert 60 < sum(map(len, taken)) < 140
    assert len({candidate.id for found in taken for candidate in found}) > 30


def test_what_is_proven_after_a_search_began_is_not_for_it(store: Store) -> None:
    before = find(store)

    prove(store, PROVEN, now=1000)

    assert find(store) == before == ()


def test_foreign_code_is_left_out_where_a_wall_is_missing(store: Store) -> None:
    by_model = SearchSummary(trials=1, passed=1, seconds=1, proposer="a model")
    ours = by_model.model_copy(update={"proposer": "synthesis"})
    for name, search in (("ours", ours), ("theirs", by_model)):
        candidate = make_candidate(name)
        evidence = make_evidence(candidate).model_copy(update={"search": search})
        prove(store, candidate, evidence=evidence, key=name)

    found = find(store, trusts_foreign=False)

    assert [candidate.id for candidate in found] == [make_candidate("ours").id]


@dataclass
class Job:
    """An optimise job on a device that says what it is told to say."""

    store: Store
    folder: Path
    script: Sequence[Candidate]
    runner: FakeRunner = field(default_factory=FakeRunner)

    def run(self, key: str, *, judge_version: str = "1", warm_start: float = 1.0) -> OptimizeResult:
        request = OptimizeRequest(
            operator=OPERATOR,
            hardware=HARDWARE,
            goal_key=key,
            store_url="sqlite://",
            state_folder=self.folder / "state",
            out_folder=self.folder / "out",
            budget_s=1000,
            warm_start=warm_start,
        )
        return optimize(
            request,
            Workshop(
                store=self.store,
                runner=self.runner,
                make_proposers=lambda: [ScriptedProposer(self.script)],
                judge_version=judge_version,
                clock=Clock(self.runner.clock, self.runner.clock),
                tell=lambda event: None,
                missing_walls=lambda: (),
            ),
        )


def test_a_search_begins_with_what_an_earlier_one_proved(store: Store, tmp_path: Path) -> None:
    others = [make_candidate(str(number)) for number in range(3)]
    first = Job(store, tmp_path, [PROVEN])
    first.run("first")
    first.runner.clock.now_s += 1
    second = Job(store, tmp_path, others, FakeRunner(clock=first.runner.clock))

    second.run("second")

    trials = store.trials(2)
    assert [t.candidate.id for t in trials] == [PROVEN.id, *(other.id for other in others)]
    assert trials[0].candidate.origin == "warm start"
    assert trials[0].spent_s == 0  # found, not run


def test_what_failed_is_not_tried_again_under_the_same_judge(store: Store, tmp_path: Path) -> None:
    def fail(candidate: Candidate) -> Outcome:
        return Failed(stage="run", log="died") if candidate.id == PROVEN.id else make_passed(0.5)

    job = Job(store, tmp_path, [PROVEN, make_candidate("other")], FakeRunner(fail))
    job.run("first")
    job.runner.ran.clear()

    job.run("second")
    assert job.runner.ran == []
    assert [t.evaluation.outcome.kind for t in store.trials(2)] == ["failed", "passed"]

    job.run("third", judge_version="2")
    assert PROVEN.id in job.runner.ran
