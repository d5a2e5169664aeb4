from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.pulls.pull_request import kernel_path
from daemon.report import End
from tests.daemon.talk import BRANCH, HARDWARE, OPERATOR, Talk, talking
from tests.makers import make_candidate, make_evidence


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    with talking(tmp_path) as talk:
        yield talk


def commit_evidence(talk: Talk, text: str | None = None) -> None:
    path = f"{kernel_path(OPERATOR, HARDWARE)}/evidence.json"
    evidence = make_evidence(make_candidate(), 2.0, 1.5).to_json() if text is None else text
    talk.github.push(BRANCH, {path: evidence}, talk.github.bot.login, base=BRANCH)


def explain(talk: Talk, topic: str) -> str:
    assert talk.ask(f"/explain {topic}").told == "explained in a comment"
    return talk.said()[-1]


def test_the_result_is_explained_by_the_evidence(talk: Talk) -> None:
    commit_evidence(talk)

    told = explain(talk, "result")

    assert "takes 2.00 times as long as the kernel, 1.98 to 2.02" in told


def test_peers_are_told_by_workload(talk: Talk) -> None:
    commit_evidence(talk)

    told = explain(talk, "peers")

    assert "| `w0` | `reference/eager` | 1 ms | 0.5 ms | 2.00x |" in told
    assert "| `w1` | `reference/eager` | 1 ms | 0.6667 ms | 1.50x |" in told


def test_the_proof_tells_what_was_checked(talk: Talk) -> None:
    commit_evidence(talk)

    told = explain(talk, "proof")

    assert "21 sizes were checked" in told
    assert "2 public workloads were timed in 6 pairs of processes" in told


def test_evidence_that_somebody_edited_is_none(talk: Talk) -> None:
    commit_evidence(talk, "{}")

    assert "There is no proven kernel here." in explain(talk, "peers")


def test_searches_are_told_with_their_reasons(talk: Talk) -> None:
    key = talk.queue()
    (goal,) = talk.goals()
    end = End.of(goal, "not_better", "nothing was faster")
    talk.store.finish(key, verdict="not_better", result=end.to_json(), now=talk.clock())

    told = explain(talk, "search")

    assert f"- `{key[:8]}`" in told
    assert "not better (nothing was faster). Wanted because: added. Trials: none." in told


def test_an_issue_has_nothing_to_explain_but_what_was_asked_there(talk: Talk) -> None:
    talk.ask("/explain peers", on=talk.issue)

    assert "There is no proven kernel here." in talk.said(talk.issue)[-1]
