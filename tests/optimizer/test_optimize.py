"""The optimise job with a device that says what it is told to say."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from knowledge.evidence import Better, Evidence, NotBetter, Unclear
from knowledge.outcome import Incorrect, Outcome
from optimizer.candidate import Candidate
from optimizer.errors import CaptureError
from optimizer.events import Event, Tell
from optimizer.job import OptimizeRequest, OptimizeResult, PhaseEvent, TrialEvent
from optimizer.kernel import read_kernel
from optimizer.optimize import Workshop, optimize
from optimizer.propose.proposer import Proposer, ScriptedProposer
from optimizer.search.search import Clock
from optimizer.spending import Allowance
from optimizer.store import Store
from tests.fakes import FakeRunner
from tests.makers import HARDWARE, OPERATOR, make_candidate, make_evidence, make_passed

FAST, SLOW = make_candidate("fast"), make_candidate("slow")


def time_one(candidate: Candidate) -> Outcome:
    return make_passed(0.4 if candidate.id == FAST.id else 0.8)


@dataclass
class Bench:
    """A store and a device, and whatever the job told."""

    store: Store
    folder: Path
    runner: FakeRunner = field(default_factory=lambda: FakeRunner(time_one))
    told: list[Event] = field(default_factory=list)
    make_proposers: Callable[[], list[Proposer]] = lambda: [ScriptedProposer([SLOW, FAST])]
    stopped: Callable[[], bool] = lambda: False
    tell: Tell | None = None

    def run(
        self, goal_key: str = "g", *, incumbent: Path | None = None, **more: object
    ) -> OptimizeResult:
        request = OptimizeRequest(
            operator=OPERATOR,
            hardware=HARDWARE,
            goal_key=goal_key,
            store_url="sqlite://",
            state_folder=self.folder / "state",
            out_folder=self.folder / "out",
            incumbent_folder=incumbent,
            budget_s=100,
        ).model_copy(update=more)
        clock = Clock(self.runner.clock, self.runner.clock)
        return optimize(
            request,
            Workshop(
                self.store,
                self.runner,
                self.make_proposers,
                "1",
                clock,
                self.tell or self.told.append,
                self.stopped,
            ),
        )


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with Store(f"sqlite:///{tmp_path}/store.db") as store:
        store.migrate()
        yield Bench(store, tmp_path)


def test_the_best_candidate_is_proven_and_its_folder_written(bench: Bench) -> None:
    result = bench.run()

    assert result.verdict == Better()
    assert result.kernel_folder == bench.folder / "out/scale/cpu-x86-64-v3"
    kernel = read_kernel(result.kernel_folder)
    assert [variant.candidate for variant in kernel.variants.values()] == [FAST]


def test_the_evidence_tells_how_the_winner_was_found(bench: Bench) -> None:
    evidence = bench.run().evidence

    assert evidence is not None
    assert evidence.search is not None
    assert evidence.search.trials == 2
    assert evidence.search.best_so_far == (1.25, 2.5)


def test_each_trial_is_told_after_it_is_recorded(bench: Bench) -> None:
    bench.run()

    trials = [event for event in bench.told if isinstance(event, TrialEvent)]
    assert [(event.number, event.best) for event in trials] == [(1, 1.25), (2, 2.5)]
    phases = [event.phase for event in bench.told if isinstance(event, PhaseEvent)]
    assert phases == ["capture", "baseline", "search", "confirm", "write"]


def test_no_folder_is_written_for_what_is_not_better(bench: Bench) -> None:
    bench.runner.confirm_one = lambda candidate: make_evidence(candidate, 0.9)

    result = bench.run()

    assert isinstance(result.verdict, NotBetter)
    assert result.kernel_folder is None
    assert not (bench.folder / "out").exists()


def test_the_next_best_is_proven_where_the_best_fails_at_drawn_sizes(bench: Bench) -> None:
    wrong = Incorrect(reason="wrong at a drawn size")
    bench.runner.confirm_one = lambda c: wrong if c.id == FAST.id else make_evidence(c)

    result = bench.run()

    assert result.candidate == SLOW
    assert [(c, alpha) for c, alpha, _ in bench.runner.confirmed] == [
        (FAST.id, 0.00025),
        (SLOW.id, 0.000125),
    ]


def test_a_finished_goal_is_told_again_and_not_searched_again(bench: Bench) -> None:
    first = bench.run()
    bench.runner.ran.clear()

    again = bench.run()

    assert bench.runner.ran == []
    assert again == first.model_copy(update={"message": "recalled"})


def test_a_folder_that_is_gone_is_written_again(bench: Bench) -> None:
    folder = bench.run().kernel_folder
    assert folder is not None
    (folder / "dispatch.json").unlink()

    bench.run()

    assert read_kernel(folder)


class Crash(BaseException):
    """A SIGKILL at a chosen point, in-process."""


@dataclass
class Fuse:
    """Crashes when it is touched for the n-th time."""

    touches: int

    def touch(self) -> None:
        self.touches -= 1
        if self.touches == 0:
            raise Crash

    def arm(self, bench: Bench) -> None:
        """Touch at every event, and before every trial and confirming run."""
        try_one, confirm_one = bench.runner.try_one, bench.runner.confirm_one

        def touch_and_try(candidate: Candidate) -> Outcome:
            self.touch()
            return try_one(candidate)

        def touch_and_confirm(candidate: Candidate) -> Evidence | Outcome:
            self.touch()
            return confirm_one(candidate)

        bench.runner = FakeRunner(touch_and_try, touch_and_confirm, bench.runner.clock)
        bench.tell = lambda event: self.touch()


@pytest.mark.parametrize("touches", range(1, 11))
def test_a_job_that_dies_anywhere_goes_on_as_if_it_had_not(bench: Bench, touches: int) -> None:
    fuse = Fuse(touches)
    fuse.arm(bench)
    with suppress(Crash):
        bench.run()
    known = len(bench.store.trials(1))
    bench.runner, bench.tell = FakeRunner(time_one, clock=bench.runner.clock), None

    result = bench.run()

    assert result.verdict == Better()
    assert [trial.number for trial in bench.store.trials(1)] == [1, 2]
    assert len(bench.runner.ran) == 2 - known
    assert len(bench.store.confirmations(1)) == 1
    assert result.kernel_folder is not None
    assert read_kernel(result.kernel_folder)


def test_a_stopped_job_has_no_verdict_and_can_go_on(bench: Bench) -> None:
    bench.stopped = lambda: True
    assert bench.run().message == "stopped"
    bench.stopped = lambda: False

    assert bench.run().verdict == Better()


def test_a_reference_that_cannot_be_captured_is_unclear_and_says_why(bench: Bench) -> None:
    def fail() -> list[Proposer]:
        message = "control flow depends on the data"
        raise CaptureError(message)

    bench.make_proposers = fail

    verdict = bench.run().verdict

    assert isinstance(verdict, Unclear)
    assert "control flow depends on the data" in verdict.reason


def test_the_published_kernel_stands_where_nothing_beats_it(bench: Bench) -> None:
    published = bench.run("first").kernel_folder

    result = bench.run("second", incumbent=published)

    assert isinstance(result.verdict, NotBetter)
    assert "the published kernel stands" in result.verdict.reason


def test_the_published_kernel_is_replaced_by_a_faster_one(bench: Bench) -> None:
    bench.make_proposers = lambda: [ScriptedProposer([SLOW])]
    published = bench.run("first").kernel_folder
    bench.make_proposers = lambda: [ScriptedProposer([FAST])]

    result = bench.run("second", incumbent=published)

    assert result.verdict == Better()
    assert result.candidate == FAST


def test_why_the_search_ended_is_told_and_stands_in_the_evidence(bench: Bench) -> None:
    result = bench.run(trials=1)

    assert result.ending == "trials"
    assert result.evidence is not None
    assert result.evidence.search is not None
    assert result.evidence.search.ending == "trials"
    assert result.candidate == SLOW


def test_what_trials_and_proofs_take_is_in_the_ledger(bench: Bench) -> None:
    bench.run()

    assert bench.store.spent(1).device_s == 2 + 10


def test_of_the_devices_seconds_a_part_is_kept_for_the_proof(bench: Bench) -> None:
    deadlines: list[float] = []
    confirm = bench.runner.confirm

    def watch(candidate: Candidate, *, deadline_s: float, **more: object) -> Evidence | Outcome:
        deadlines.append(deadline_s)
        return confirm(candidate, deadline_s=deadline_s, alpha=0.1, handed_back=())

    bench.runner.confirm = watch  # type: ignore[method-assign]
    result = bench.run(allowance=Allowance(device_s=4))

    assert result.ending == "device_s"
    assert len(bench.runner.ran) == 1
    assert deadlines == [3]


def test_a_search_without_a_device_second_left_is_unclear(bench: Bench) -> None:
    bench.runner.try_one = lambda candidate: spend_all(bench, candidate)

    verdict = bench.run(allowance=Allowance(device_s=30)).verdict

    assert verdict == Unclear(reason="nothing was proven: its seconds of the device were spent")


def spend_all(bench: Bench, candidate: Candidate) -> Outcome:
    """A trial that takes more than there is."""
    bench.runner.clock.now_s += 40
    return time_one(candidate)


def test_a_search_ends_near_the_roofline(bench: Bench) -> None:
    """One float32 row takes 0.4 ns each way at 20 GB/s: w0's 64 rows 25.6 ns."""
    bench.make_proposers = lambda: [ScriptedProposer([SLOW, FAST, make_candidate("third")])]
    near_percent = 100 * (0.4 / 25.6e-6 - 1) + 1

    result = bench.run(roofline_percent=near_percent)

    assert result.ending == "roofline"
    assert result.trials == 2
