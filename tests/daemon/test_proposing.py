from pathlib import Path

import pytest

from daemon.planner import Work
from daemon.pulls.proposing import find_incumbent, make_proposal, read_folder
from knowledge.evidence import Better
from knowledge.outcome import Failed
from optimizer.job import OptimizeResult
from optimizer.kernel import make_kernel
from optimizer.kernel_page import write_kernel
from tests.makers import (
    HARDWARE,
    OPERATOR,
    make_candidate,
    make_evaluation,
    make_evidence,
    make_passed,
)

OLD, NEW = make_candidate("old"), make_candidate("new")
WORK = Work(
    operator=OPERATOR, hardware=HARDWARE, minimum_gain=1.05, budget_s=60, revision="a" * 40,
    shares={"model": 0.5},
)  # fmt: skip


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """Return the folder of a published kernel."""
    evidence = make_evidence(OLD)
    write_kernel(
        tmp_path / "old", make_kernel(OPERATOR, HARDWARE, candidate=OLD, evidence=evidence)
    )
    return tmp_path / "old"


def test_the_published_kernel_comes_with_its_trial_in_the_same_environment(
    published: Path,
) -> None:
    trial = make_evaluation(OLD, make_passed(0.75))
    trials = {trial.key: trial}

    found = find_incumbent(published, make_evidence(NEW), trials.get)

    assert found is not None
    assert found.text == OLD.code
    assert found.times["w0"].device_ms == 0.75


def test_a_published_kernel_that_was_not_tried_or_failed_has_no_times(published: Path) -> None:
    failed = make_evaluation(OLD, Failed(stage="build", log="no"))

    for trials in ({}, {failed.key: failed}):
        found = find_incumbent(published, make_evidence(NEW), trials.get)

        assert found is not None
        assert found.times == {}


def test_a_damaged_folder_is_no_published_kernel(published: Path, tmp_path: Path) -> None:
    (published / "dispatch.json").write_text("{")

    assert find_incumbent(published, make_evidence(NEW), lambda _: None) is None
    assert find_incumbent(tmp_path / "none", make_evidence(NEW), lambda _: None) is None


def test_a_proposal_holds_all_that_a_reviewer_asks(published: Path) -> None:
    result = OptimizeResult(
        operator="scale", hardware=HARDWARE.name, message="finished", verdict=Better(),
        evidence=make_evidence(NEW), candidate=NEW, kernel_folder=published,
        outcomes={"passed": 2},
    )  # fmt: skip

    found = make_proposal(
        WORK, result, incumbent_folder=published, find_evaluation=lambda _: None, signed_by="me"
    )

    assert found is not None
    assert (found.origin, found.note, found.text) == ("test", "draft new", NEW.code)
    assert found.incumbent is not None
    assert found.pictures == (f"cpp-{OLD.id[:12]}/plots/latency.svg",)
    assert (found.shares, found.bandwidth_gb_s, found.signed_by) == ({"model": 0.5}, 20, "me")


def test_what_is_not_better_is_not_proposed(tmp_path: Path) -> None:
    result = OptimizeResult(
        operator="scale", hardware=HARDWARE.name, message="finished", verdict=None,
        evidence=make_evidence(NEW),
    )  # fmt: skip

    made = make_proposal(
        WORK, result, incumbent_folder=tmp_path, find_evaluation=lambda _: None, signed_by=""
    )

    assert made is None


def test_hidden_files_and_links_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "a" / "__pycache__").mkdir(parents=True)
    (tmp_path / "a" / "b").write_bytes(b"here")
    (tmp_path / "a" / ".c").write_bytes(b"hidden")
    (tmp_path / "a" / "__pycache__" / "d").write_bytes(b"made")
    (tmp_path / "link").symlink_to(tmp_path / "a" / "b")

    assert read_folder(tmp_path) == {"a/b": b"here"}
