"""A kernel replayed on a device that says what it is told to say."""

from contextlib import nullcontext
from pathlib import Path

import pytest

from optimizer.job import (
    CannotRun,
    CannotTell,
    NotReproduced,
    Reproduced,
    Verification,
    VerifyRequest,
    VerifyResult,
)
from optimizer.kernel import make_kernel
from optimizer.kernel_page import sign_kernel, write_kernel
from optimizer.signing import new_key
from optimizer.verify import verify
from tests.fakes import FakeRunner
from tests.makers import HARDWARE, OPERATOR, make_candidate, make_evidence

CANDIDATE = make_candidate()
PUBLISHED = make_evidence(CANDIDATE, 2.0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    kernel = make_kernel(OPERATOR, HARDWARE, candidate=CANDIDATE, evidence=PUBLISHED)
    write_kernel(tmp_path / "kernel", kernel)
    return tmp_path / "kernel"


def run(
    folder: Path,
    runner: FakeRunner | CannotRun,
    *,
    record: bool = False,
    trusted: tuple[str, ...] = (),
) -> VerifyResult:
    request = VerifyRequest(
        kernel_folder=folder, state_folder=folder.parent, record=record, trusted_keys=trusted
    )
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


def test_a_replay_that_cannot_tell_is_made_once_more_and_not_a_third_time(folder: Path) -> None:
    runner = FakeRunner(
        confirm_one=lambda c: make_evidence(c).model_copy(update={"faults": ("a busy machine",)})
    )

    (verification,) = run(folder, runner).verifications

    assert isinstance(verification.finding, CannotTell)
    assert len(runner.confirmed) == 2


def test_evidence_that_contradicts_itself_is_not_run(folder: Path) -> None:
    path = next(folder.glob("*/evidence.json"))
    path.write_text(path.read_text().replace('"device_ms": 0.5', '"device_ms": 0.4', 1))
    runner = FakeRunner()

    (verification,) = run(folder, runner).verifications

    assert isinstance(verification.finding, NotReproduced)
    assert "contradicts itself" in verification.finding.reason
    assert runner.confirmed == []


def test_evidence_that_proves_no_gain_is_not_run(tmp_path: Path) -> None:
    kernel = make_kernel(
        OPERATOR, HARDWARE, candidate=CANDIDATE, evidence=make_evidence(CANDIDATE, 1.01)
    )
    write_kernel(tmp_path / "kernel", kernel)

    (verification,) = run(tmp_path / "kernel", FakeRunner()).verifications

    assert isinstance(verification.finding, NotReproduced)
    assert "proves no gain" in verification.finding.reason


def test_a_record_says_whether_the_folder_is_signed(folder: Path, tmp_path: Path) -> None:
    (unsigned,) = run(folder, FakeRunner()).verifications
    new_key(tmp_path / "key")
    signer = sign_kernel(folder, tmp_path / "key")
    (signed,) = run(folder, FakeRunner()).verifications

    assert unsigned.signature == "unsigned"
    assert signed.signature == f"signed by the key {signer[:16]}"


def test_a_signature_that_does_not_fit_is_not_reproduced(folder: Path, tmp_path: Path) -> None:
    new_key(tmp_path / "key")
    sign_kernel(folder, tmp_path / "key")
    path = next(folder.glob("*/evidence.json"))
    path.write_text(path.read_text().replace('"seed": 7', '"seed": 8'))
    runner = FakeRunner()

    (verification,) = run(folder, runner).verifications

    assert isinstance(verification.finding, NotReproduced)
    assert "is not the file that was signed" in verification.finding.reason
    assert runner.confirmed == []


def test_where_keys_are_trusted_others_and_none_are_not(folder: Path, tmp_path: Path) -> None:
    mine = new_key(tmp_path / "mine")
    (unsigned,) = run(folder, FakeRunner(), trusted=(mine,)).verifications
    new_key(tmp_path / "theirs")
    sign_kernel(folder, tmp_path / "theirs")
    (theirs,) = run(folder, FakeRunner(), trusted=(mine,)).verifications
    sign_kernel(folder, tmp_path / "mine")
    (trusted,) = run(folder, FakeRunner(), trusted=(mine,)).verifications

    assert isinstance(unsigned.finding, NotReproduced)
    assert isinstance(theirs.finding, NotReproduced)
    assert trusted.finding == Reproduced()
