"""Jobs on the code host's runners, over runs that a test makes and a clock that it moves."""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from daemon.actions.runner import ActionsJobs, Away, is_away
from daemon.actions.yard import Yard
from daemon.forge import ForgeBusyError, ForgeRefusedError, ForgeUnavailableError
from daemon.jobs import JobError, JobLostError, JobRefusedError, Progress, Task
from knowledge.evidence import Better
from operator_registry.hardware import RunnerSpec
from operator_registry.record import Record
from optimizer.job import (
    DoctorRequest,
    ErrorEvent,
    OptimizeRequest,
    OptimizeResult,
    Reproduced,
    Result,
    ResultEvent,
    Verification,
    VerifyRequest,
    VerifyResult,
)
from optimizer.kernel import read_kernel
from tests.daemon.runners import Runners, answer_to, pack_end, result_of
from tests.daemon.test_jobs import OPERATOR
from tests.daemon.test_parcel import KERNELS
from tests.makers import HARDWARE

LABELS = ("self-hosted", "gpu")
GPU = HARDWARE.model_copy(update={"runner": RunnerSpec(labels=LABELS)})


@dataclass
class Memory:
    """Marks that outlive what a test throws away."""

    marks: dict[str, str] = field(default_factory=dict)

    def mark(self, key: str, value: str) -> None:
        self.marks[key] = value

    def recall(self, key: str) -> str | None:
        return self.marks.get(key)


@dataclass
class Stage:
    """A runner of jobs whose waiting is a script: what happens in which pause."""

    runners: Runners = field(default_factory=Runners)
    memory: Memory = field(default_factory=Memory)
    ends: bool = False
    now: float = 0.0
    then: list[Callable[[], None]] = field(default_factory=list)
    """What happens between one look and the next."""
    seen: list[Progress] = field(default_factory=list)

    def jobs(self) -> ActionsJobs:
        yard = Yard(
            host=self.runners,
            memory=self.memory,
            workflow="search.yml",
            find_ref=lambda: "main",
            clock=lambda: self.now,
        )
        return ActionsJobs(yard, is_ending=lambda: self.ends, sleep=self._sleep)

    def run(
        self, request: Record, *then: Callable[[], None], going: Callable[[], bool] = lambda: True
    ) -> Result | None:
        self.then = list(then)
        return self.jobs().run("optimize", request, on_progress=self.seen.append, keep_going=going)

    def answers(self, request: OptimizeRequest, ratio: float | None) -> Callable[[], None]:
        """Return what lets the newest run end with a result."""

        def end() -> None:
            answer = answer_to(self.runners.dispatched[-1], request, ratio)
            self.runners.end(max(self.runners.runs), answer)

        return end

    def _sleep(self, seconds: float) -> None:
        before = int(self.now // 10)
        self.now += seconds
        assert self.now < 200_000, "it waits for ever"
        if int(self.now // 10) > before and self.then:
            self.then.pop(0)()


def wait() -> None:
    """Let a look pass."""


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture
def request_(tmp_path: Path) -> OptimizeRequest:
    return OptimizeRequest(
        operator=OPERATOR,
        hardware=GPU,
        goal_key="goal",
        store_url="sqlite://",
        state_folder=tmp_path / "state",
        out_folder=tmp_path / "out",
    )


def test_a_search_is_dispatched_and_its_result_comes_back(
    stage: Stage, request_: OptimizeRequest
) -> None:
    result = stage.run(request_, stage.answers(request_, None))

    assert isinstance(result, OptimizeResult)
    assert (result.operator, result.verdict) == ("gelu_bias", result_of(request_, None).verdict)
    (inputs,) = stage.runners.dispatched
    assert json.loads(inputs["labels"]) == list(LABELS)


def test_a_kernel_that_is_better_is_written_here(stage: Stage, request_: OptimizeRequest) -> None:
    result = stage.run(request_, stage.answers(request_, 2.0))

    assert isinstance(result, OptimizeResult)
    assert isinstance(result.verdict, Better)
    assert result.kernel_folder == request_.out_folder / OPERATOR.name / GPU.name
    kernel = read_kernel(result.kernel_folder)
    assert (kernel.operator, kernel.hardware) == (OPERATOR, GPU)


def test_what_the_run_does_is_told(stage: Stage, request_: OptimizeRequest) -> None:
    stage.run(
        request_, wait, lambda: stage.runners.start(1000), wait, stage.answers(request_, None)
    )

    told = [getattr(event, "detail", "") for event in stage.seen]
    assert told == [f"{s}: https://ci/1000" for s in ("queued", "in_progress", "completed")]


def test_a_run_is_found_again_after_a_restart(stage: Stage, request_: OptimizeRequest) -> None:
    going = iter([True, True, False])
    stage.ends = True
    assert stage.run(request_, going=lambda: next(going)) is None

    stage.ends = False
    result = stage.run(request_, stage.answers(request_, None))

    assert isinstance(result, OptimizeResult)
    assert len(stage.runners.dispatched) == 1
    assert stage.runners.cancelled == []


def test_a_run_that_ended_meanwhile_is_found_too(stage: Stage, request_: OptimizeRequest) -> None:
    going = iter([True, True, False])
    stage.ends = True
    stage.run(request_, going=lambda: next(going))
    stage.answers(request_, 2.0)()
    merged = request_.model_copy(update={"incumbent_folder": KERNELS[0]})

    result = stage.run(merged)

    assert isinstance(result, OptimizeResult)
    assert len(stage.runners.dispatched) == 1


def test_a_finished_search_is_not_made_twice(stage: Stage, request_: OptimizeRequest) -> None:
    stage.run(request_, stage.answers(request_, None))

    assert isinstance(stage.run(request_), OptimizeResult)
    assert len(stage.runners.dispatched) == 1


def test_a_stop_cancels_the_run(stage: Stage, request_: OptimizeRequest) -> None:
    result = stage.run(request_, going=lambda: stage.now < 30)

    assert result is None
    assert stage.runners.cancelled == [1000]
    assert stage.now < 40


def test_a_run_that_is_not_listed_yet_is_cancelled_once_it_is(
    stage: Stage, request_: OptimizeRequest
) -> None:
    stage.runners.hidden = 3

    stage.run(request_, going=lambda: stage.now < 1)

    assert stage.runners.cancelled == [1000]


def test_a_run_that_is_listed_no_longer_is_cancelled_all_the_same(
    stage: Stage, request_: OptimizeRequest
) -> None:
    def vanish() -> None:
        stage.runners.hidden = 100

    stage.run(request_, *[wait] * 15, vanish, going=lambda: stage.now < 180)

    assert stage.runners.cancelled == [1000]


def test_a_stop_is_tried_again_where_the_host_is_away(
    stage: Stage, request_: OptimizeRequest
) -> None:
    down = [ForgeUnavailableError("502")] * 3

    stage.run(
        request_, wait, lambda: stage.runners.faults.extend(down), going=lambda: stage.now < 25
    )

    assert stage.runners.cancelled == [1000]


def test_after_a_stop_a_new_wish_is_a_new_run(stage: Stage, request_: OptimizeRequest) -> None:
    stage.run(request_, going=lambda: stage.now < 30)

    stage.run(request_, stage.answers(request_, None))

    tags = [inputs["tag"] for inputs in stage.runners.dispatched]
    assert len(set(tags)) == 2


def test_a_dispatch_that_is_lost_is_sent_again(stage: Stage, request_: OptimizeRequest) -> None:
    stage.runners.lost = 1

    result = stage.run(request_, *[wait] * 11, stage.answers(request_, None))

    assert isinstance(result, OptimizeResult)
    assert len(stage.runners.dispatched) == 2


def test_an_error_after_the_dispatch_had_its_effect_makes_no_second_run(
    stage: Stage, request_: OptimizeRequest
) -> None:
    stage.runners.faults = [ForgeUnavailableError("502 Bad Gateway")]

    result = stage.run(request_, wait, stage.answers(request_, None))

    assert isinstance(result, OptimizeResult)
    assert len(stage.runners.runs) == 1


def test_of_two_runs_of_a_tag_the_older_is_ours(stage: Stage, request_: OptimizeRequest) -> None:
    def double() -> None:
        stage.runners.add(stage.runners.dispatched[0]["tag"])

    def end_first() -> None:
        stage.runners.end(1000, answer_to(stage.runners.dispatched[0], request_, None))

    result = stage.run(request_, double, end_first)

    assert isinstance(result, OptimizeResult)
    assert stage.runners.cancelled == [1001]


def test_a_workflow_whose_runs_do_not_bear_the_tag_is_given_up(
    stage: Stage, request_: OptimizeRequest
) -> None:
    stage.runners.lost = 100

    with pytest.raises(JobLostError, match="`run-name` must hold the input `tag`"):
        stage.run(request_)

    assert len(stage.runners.dispatched) == 3


def test_a_busy_host_is_asked_later(stage: Stage, request_: OptimizeRequest) -> None:
    stage.runners.faults = [ForgeUnavailableError("slow"), ForgeBusyError("429", retry_at=1e9)]

    result = stage.run(request_, wait, wait, stage.answers(request_, None))

    assert isinstance(result, OptimizeResult)


def test_a_refused_dispatch_says_why(stage: Stage, request_: OptimizeRequest) -> None:
    stage.runners.faults = [ForgeRefusedError("no such workflow")]

    with pytest.raises(JobRefusedError, match=r"search.yml can't be started on main: no such"):
        stage.run(request_)


def test_a_run_without_an_answer_is_lost(stage: Stage, request_: OptimizeRequest) -> None:
    def fail() -> None:
        stage.runners.end(1000, None, conclusion="failure")

    with pytest.raises(JobLostError, match=r"https://ci/1000 ended \(failure\) without an answer"):
        stage.run(request_, fail)


def test_a_failed_run_is_dispatched_anew(stage: Stage, request_: OptimizeRequest) -> None:
    with pytest.raises(JobLostError):
        stage.run(request_, lambda: stage.runners.end(1000, None, conclusion="failure"))

    assert isinstance(stage.run(request_, stage.answers(request_, None)), OptimizeResult)
    assert len(stage.runners.dispatched) == 2


def test_an_artefact_may_come_a_little_late(stage: Stage, request_: OptimizeRequest) -> None:
    def end() -> None:
        stage.runners.end(1000, None)

    result = stage.run(request_, end, wait, wait, stage.answers(request_, None))

    assert isinstance(result, OptimizeResult)


def test_an_artefact_that_can_never_be_fetched_is_given_up(
    stage: Stage, request_: OptimizeRequest
) -> None:
    class Broken(Runners):
        def artefact(self, run_id: int, name: str) -> bytes | None:
            raise ForgeUnavailableError("too large")  # noqa: EM101, TRY003 - a fake

    stage.runners = Broken()

    with pytest.raises(JobLostError, match="can't be fetched: too large"):
        stage.run(request_, lambda: stage.runners.end(1000, None))


def test_a_job_that_could_not_do_its_work_says_so(stage: Stage, request_: OptimizeRequest) -> None:
    def end() -> None:
        answer = pack_end(stage.runners.dispatched[0], ErrorEvent(error="E", message="no graph"))
        stage.runners.end(1000, answer, conclusion="failure")

    with pytest.raises(JobRefusedError, match=r"ended \(failure\): no graph \(E\)"):
        stage.run(request_, end)


def test_no_runner_is_waited_for_without_end(stage: Stage, request_: OptimizeRequest) -> None:
    with pytest.raises(JobLostError, match=r"no runner with the labels \['self-hosted', 'gpu'\]"):
        stage.run(request_)

    assert stage.runners.cancelled == [1000]


def test_a_runner_that_is_gone_is_not_waited_for(stage: Stage, request_: OptimizeRequest) -> None:
    with pytest.raises(JobLostError, match="no end within 6 hours"):
        stage.run(request_, lambda: stage.runners.start(1000))


def test_a_run_that_is_listed_no_longer_still_has_its_answer(
    stage: Stage, request_: OptimizeRequest
) -> None:
    def end_and_vanish() -> None:
        stage.answers(request_, None)()
        stage.runners.hidden = 100

    result = stage.run(request_, wait, end_and_vanish)

    assert isinstance(result, OptimizeResult)


def test_a_request_that_is_too_long_is_refused_before_it_is_sent(
    stage: Stage, request_: OptimizeRequest
) -> None:
    labels = tuple(f"label-{i}" for i in range(10_000))
    hardware = GPU.model_copy(update={"runner": RunnerSpec(labels=labels)})

    with pytest.raises(JobRefusedError, match=r"can be sent to a runner|too long to be sent"):
        stage.run(request_.model_copy(update={"hardware": hardware}))

    assert stage.runners.dispatched == []


def test_only_searches_and_verifications_travel(stage: Stage) -> None:
    with pytest.raises(JobRefusedError, match="names no hardware"):
        stage.run(DoctorRequest())


def test_each_verification_is_a_run_of_its_own(stage: Stage, tmp_path: Path) -> None:
    request = VerifyRequest(kernel_folder=KERNELS[0], state_folder=tmp_path)
    found = Verification(variant="v", candidate="c", finding=Reproduced(), at="now")
    wanted = VerifyResult(verifications=(found,))

    def end() -> None:
        answer = pack_end(stage.runners.dispatched[-1], ResultEvent(result=wanted))
        stage.runners.end(max(stage.runners.runs), answer)

    assert stage.run(request, end) == wanted
    assert stage.run(request, end) == wanted
    assert len(stage.runners.dispatched) == 2


@dataclass
class Slow:
    """A job that takes until it may end."""

    may_end: threading.Event = field(default_factory=threading.Event)
    fault: JobError | None = None
    started: list[str] = field(default_factory=list)
    away: list[bool] = field(default_factory=list)

    def run(
        self,
        task: Task,
        request: Record,
        *,
        on_progress: Callable[[Progress], None] = lambda _: None,
        keep_going: Callable[[], bool] = lambda: True,
    ) -> Result | None:
        assert isinstance(request, OptimizeRequest)
        self.started.append(request.goal_key)
        self.away.append(is_away())
        while keep_going() and not self.may_end.wait(0.01):
            pass
        if self.fault:
            raise self.fault
        return result_of(request, None) if self.may_end.is_set() else None


def test_nobody_waits_for_what_is_away(request_: OptimizeRequest) -> None:
    slow = Slow()
    away = Away(slow)
    assert away.run("optimize", request_) is None
    assert away.run("optimize", request_) is None
    assert away.is_going("goal")
    slow.may_end.set()
    away.close()

    assert away.run("optimize", request_) == result_of(request_, None)
    assert not away.is_going("goal")
    assert slow.started == ["goal"]
    assert (slow.away, is_away()) == ([True], False)


def test_what_went_wrong_is_told_to_who_asks(request_: OptimizeRequest) -> None:
    slow = Slow(fault=JobLostError("gone"))
    away = Away(slow)
    away.run("optimize", request_)
    slow.may_end.set()
    away.close()

    with pytest.raises(JobLostError, match="gone"):
        away.run("optimize", request_)


def test_no_more_are_away_at_once_than_may_be(request_: OptimizeRequest) -> None:
    slow = Slow()
    away = Away(slow, at_once=2)
    for key in ("a", "b", "c"):
        away.run("optimize", request_.model_copy(update={"goal_key": key}))
    assert not away.is_going("c")
    slow.may_end.set()
    away.close()

    assert sorted(slow.started) == ["a", "b"]


def test_results_that_nobody_comes_for_take_no_place(request_: OptimizeRequest) -> None:
    away = Away(Slow(), at_once=2)
    for number in range(20):
        key = f"k{number}"
        request = request_.model_copy(update={"goal_key": key})
        while not away.is_going(key):
            away.run("optimize", request, keep_going=lambda: False)

    assert len([n for n in range(20) if away.is_going(f"k{n}")]) <= 6
    away.close()
