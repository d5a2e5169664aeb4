"""A kernel replayed on a device that says what it is told to say."""

from contextlib import nullcontext
from pathlib import Path

import pytest

from knowledge.evidence import Interval
from knowledge.outcome import Incorrect
from optimizer.job import (
    CannotRun,
    NotReproduced,
    Reproduced,
    Verification,
    VerifyRequest,
    VerifyResult,
)
from optimizer.kernel import make_kernel
from optimizer.kernel_page import write_kernel
from optimizer.verify import compare, verify
from tests.fakes import FakeRunner
from tests.makers import HARDWARE, OPERATOR, make_candidate, make_evidence

CANDIDATE = make_candidate()
PUBLISHED = make_evidence(CANDIDATE, 2.0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    kernel = make_kernel(OPERATOR, HARDWARE, candidate=CANDIDATE, evidence=PUBLISHED)
    write_kernel(tmp_path / "kernel", kernel)
    return tmp_path / "kernel"


def run(folder: Path, runner: FakeRunner | CannotRun, *, record: bool = False) -> VerifyResult:
    request = VerifyRequest(kernel_folder=folder, state_folder=folder.parent, record=record)
    return verify(
        request,
        make_runner=lambda kernel: runner if isinstance(runner, CannotRun) else nullcontext(runner),
        tell=lambda event: None,
        at="2026-11-30T12:00:00+00:00",
    )


def test_a_kernel_that_is_as_it_was_is_reproduced(folder: Path) -> None:
    (verification,) = run(folder, FakeRunner()).verifications

    assert verification.finding == Reproduced()
    assert verification.candidate == CANDIDATE.id
    assert verification.ratio == 2.0


def test_a_replay_is_recorded_only_when_asked(folder: Path) -> None:
    run(folder, FakeRunner())
    assert (folder / "verifications.jsonl").read_text() == ""

    (told,) = run(folder, FakeRunner(), record=True).verifications
    run(folder, FakeRunner(), record=True)

    lines = (folder / "verifications.jsonl").read_text().splitlines()
    assert [Verification.from_json(line) for line in lines] == [told, told]


def test_code_that_was_changed_is_not_reproduced_and_not_run(folder: Path) -> None:
    code = next(folder.glob("*/kernel.cpp"))
    code.write_text(code.read_text() + "\n")
    runner = FakeRunner()

    (verification,) = run(folder, runner).verifications

    assert isinstance(verification.finding, NotReproduced)
    assert runner.confirmed == []


def test_another_device_says_that_it_cannot_tell(folder: Path) -> None:
    (verification,) = run(folder, CannotRun(reason="there is no GPU")).verifications

    assert verification.finding == CannotRun(reason="there is no GPU")


def test_wrong_output_is_not_reproduced() -> None:
    finding = compare(PUBLISHED, Incorrect(reason="y differs at rows 3"))

    assert finding == NotReproduced(reason="incorrect: y differs at rows 3")


def test_a_gain_that_is_gone_is_not_reproduced() -> None:
    assert isinstance(compare(PUBLISHED, make_evidence(CANDIDATE, 1.0)), NotReproduced)


def test_a_gain_below_the_published_one_is_not_reproduced_on_the_same_device() -> None:
    assert isinstance(compare(PUBLISHED, make_evidence(CANDIDATE, 1.5)), NotReproduced)


def test_a_smaller_gain_on_another_device_of_the_kind_is_reproduced() -> None:
    replay = make_evidence(CANDIDATE, 1.5)
    elsewhere = replay.environment.model_copy(update={"device": "another processor"})

    finding = compare(PUBLISHED, replay.model_copy(update={"environment": elsewhere}))

    assert finding == Reproduced()


def test_a_replay_that_is_too_noisy_tells_nothing() -> None:
    wide = make_evidence(CANDIDATE).model_copy(
        update={"ratio": Interval(low=0.9, estimate=2.0, high=4.0)}
    )

    assert isinstance(compare(PUBLISHED, wide), CannotRun)


def test_a_measurement_that_cannot_be_trusted_tells_nothing() -> None:
    faulty = make_evidence(CANDIDATE).model_copy(update={"faults": ("page faults on one side",)})

    assert isinstance(compare(PUBLISHED, faulty), CannotRun)
