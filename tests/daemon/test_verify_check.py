import pytest

from daemon.forge import Conclusion
from daemon.pulls.standing import Judged, NotReplayed, Replayed
from daemon.pulls.verify_check import NAME, make_check
from optimizer.job import (
    CannotRun,
    CannotTell,
    Finding,
    NotReproduced,
    Reproduced,
    Verification,
)
from tests.makers import make_candidate, make_evidence

SHA = "a" * 40
EVIDENCE = make_evidence(make_candidate())


def replayed(finding: Finding) -> Replayed:
    seen = Verification(
        variant="cpp-1", candidate="c", finding=finding, ratio=1.9, published_ratio=2.0,
        checked_sizes=21, seed=7, at="2026-12-01",
    )  # fmt: skip
    return Replayed(verifications=(seen,))


def test_what_the_judge_proved_is_a_success_with_its_tables() -> None:
    check = make_check(SHA, Judged(), EVIDENCE)

    assert (check.name, check.head_sha, check.conclusion) == (NAME, SHA, "success")
    assert check.title == "Better: 2.00x (1.98 to 2.02)"
    assert "| `w0` <br>float32 |" in check.text


def test_what_is_not_known_yet_is_in_progress_and_claims_nothing() -> None:
    check = make_check(SHA, None, EVIDENCE)

    assert (check.status, check.conclusion) == ("in_progress", None)
    assert "nothing is claimed" in check.summary


@pytest.mark.parametrize(
    ("finding", "conclusion"),
    [
        (Reproduced(), "success"),
        (NotReproduced(reason="slower"), "failure"),
        (CannotTell(reason="noise"), "neutral"),
        (CannotRun(reason="no gpu"), "neutral"),
    ],
)
def test_a_replay_concludes_as_it_found(finding: Finding, conclusion: Conclusion) -> None:
    check = make_check(SHA, replayed(finding), EVIDENCE)

    assert check.conclusion == conclusion
    assert "| `cpp-1` |" in check.summary
    assert "| 1.90x | 2.00x | 21 | 7 |" in check.summary


def test_what_could_not_be_replayed_is_neutral() -> None:
    check = make_check(SHA, NotReplayed(why="@team stop|ped"), EVIDENCE)

    assert check.conclusion == "neutral"
    assert "@team" not in check.summary
    assert "|" not in check.summary


def test_evidence_of_another_version_of_the_operator_claims_nothing() -> None:
    check = make_check(SHA, Judged(), EVIDENCE, outdated=True)

    assert check.conclusion == "neutral"


def test_without_evidence_there_are_no_tables() -> None:
    assert make_check(SHA, Judged(), None).text == ""


def test_a_check_of_many_workloads_is_short_enough() -> None:
    evidence = make_evidence(make_candidate(), *([2.0] * 3000))

    check = make_check(SHA, Judged(), evidence)

    assert len(check.text.encode()) < 60_000
    assert len(check.summary.encode()) < 60_000
