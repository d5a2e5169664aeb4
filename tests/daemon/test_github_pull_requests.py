"""Opening pull requests when answers get lost: never two, never one that is taken for ours."""

import json
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from daemon.forge import ForgeRefusedError, ForgeUnavailableError, PullRequestDraft
from daemon.github.answers import Answer, GitHubRefusedError, Request
from daemon.github.forge import GitHubForge
from tests.github.fake import FakeGitHub
from tests.github.hosts import open_forge
from tests.github.quirks import Fault, FaultKind

LOST: tuple[FaultKind, ...] = ("502 after", "hangs up after")


@pytest.fixture
def github(tmp_path: Path) -> Iterator[FakeGitHub]:
    with FakeGitHub(tmp_path) as github:
        github.push("work", {"file": "new"}, "octo")
        yield github


@pytest.fixture
def forge(github: FakeGitHub) -> GitHubForge:
    return open_forge(github)


def make_draft(**changes: object) -> PullRequestDraft:
    draft = PullRequestDraft(
        title="Faster", body="By 2x", head="work", base="main", labels=("kernelevolve",)
    )
    return draft.model_copy(update=changes)


@pytest.mark.parametrize("kind", LOST)
def test_one_that_was_opened_before_the_answer_got_lost_is_found(
    github: FakeGitHub, forge: GitHubForge, kind: FaultKind
) -> None:
    github.quirks.faults = [Fault(kind, "POST", "/pulls$")]

    made = forge.open_pull_request(make_draft())

    assert [ticket.number for ticket in github.pulls()] == [made.number]
    assert made.labels == ("kernelevolve",)


@pytest.mark.parametrize("kind", LOST)
def test_where_lists_lag_behind_it_is_found_by_the_next_attempt(
    github: FakeGitHub, forge: GitHubForge, kind: FaultKind
) -> None:
    github.quirks.faults = [Fault(kind, "POST", "/pulls$")]
    github.quirks.stale_lists = 1
    assert forge.pull_requests(head="work") == ()
    with pytest.raises(ForgeUnavailableError):
        forge.open_pull_request(make_draft())

    made = forge.open_pull_request(make_draft())

    assert [ticket.number for ticket in github.pulls()] == [made.number]
    assert made.labels == ("kernelevolve",)


@pytest.mark.parametrize("kind", LOST)
def test_labels_that_got_lost_are_there_after_an_update(
    github: FakeGitHub, forge: GitHubForge, kind: FaultKind
) -> None:
    github.quirks.faults = [Fault(kind, "PUT", "/labels$"), Fault("502 before", "PUT", "/labels$")]
    with pytest.raises(ForgeUnavailableError):
        forge.open_pull_request(make_draft())
    (number,) = (ticket.number for ticket in github.pulls())
    with pytest.raises(ForgeUnavailableError):
        forge.update_pull_request(number, make_draft(labels=("kernelevolve", "cpu")))

    assert set(forge.update_pull_request(number, make_draft()).labels) == {"kernelevolve"}


def test_somebody_else_s_is_not_taken_for_ours(github: FakeGitHub, forge: GitHubForge) -> None:
    github.open_pull_request("stranger", "work", title="Faster", body="By 2x")

    with pytest.raises(ForgeRefusedError, match="open pull request already"):
        forge.open_pull_request(make_draft())


def test_one_that_says_something_else_is_not_taken_for_it(
    github: FakeGitHub, forge: GitHubForge
) -> None:
    forge.open_pull_request(make_draft())

    with pytest.raises(ForgeRefusedError, match="open pull request already"):
        forge.open_pull_request(make_draft(body="By 3x"))


def test_a_base_that_is_not_there_is_named(forge: GitHubForge) -> None:
    with pytest.raises(ForgeRefusedError, match="no branch trunk"):
        forge.open_pull_request(make_draft(base="trunk"))


def test_what_github_denies_for_a_while_is_waited_for(
    github: FakeGitHub, forge: GitHubForge
) -> None:
    github.quirks.hidden_looks = 2

    made = forge.open_pull_request(make_draft())

    assert made.labels == ("kernelevolve",)


def test_a_repository_without_drafts_gets_one_that_is_ready(
    github: FakeGitHub, forge: GitHubForge
) -> None:
    ask, refused = forge.client.ask, []

    def asking(request: Request) -> Answer:
        if isinstance(request.body, dict) and request.body.get("draft") is True:
            refused.append(request)
            told = "Draft pull requests are not supported in this repository."
            raise GitHubRefusedError(request.what, 422, told)
        return ask(request)

    forge.client.ask = asking  # type: ignore[method-assign]

    assert forge.open_pull_request(make_draft(draft=True)).draft is False
    assert len(refused) == 1


@pytest.mark.parametrize(
    ("kind", "told", "is_final"),
    [
        ("UNPROCESSABLE", "Draft pull requests are not supported in this repository.", True),
        ("FORBIDDEN", "Resource not accessible by integration", True),
        ("RATE_LIMITED", "API rate limit exceeded", False),
    ],
)
def test_what_is_said_of_drafts_is_final_or_for_later(
    github: FakeGitHub, forge: GitHubForge, kind: str, told: str, *, is_final: bool
) -> None:
    number = forge.open_pull_request(make_draft()).number
    ask, refused = forge.client.ask, []

    def asking(request: Request) -> Answer:
        if not request.path.endswith("/graphql"):
            return ask(request)
        refused.append(request)
        error = {"type": kind, "message": told}
        return Answer(200, {}, json.dumps({"data": None, "errors": [error]}))

    forge.client.ask = asking  # type: ignore[method-assign]
    for _ in range(2):
        with nullcontext() if is_final else pytest.raises(ForgeUnavailableError, match=told):
            assert not forge.update_pull_request(number, make_draft(draft=True)).draft

    assert len(refused) == (1 if is_final else 2)


def test_a_repository_that_has_moved_is_not_worked_on_under_its_old_name(
    forge: GitHubForge,
) -> None:
    ask = forge.client.ask

    def asking(request: Request) -> Answer:
        answer = ask(request)
        return replace(answer, text=answer.text.replace('"octo/kernels"', '"octo/renamed"'))

    forge.client.ask = asking  # type: ignore[method-assign]

    with pytest.raises(ForgeRefusedError, match="it is octo/renamed now; set KERNELEVOLVE"):
        forge.pull_requests(head="work")


def test_ends_of_lines_and_case_of_labels_are_no_change(
    github: FakeGitHub, forge: GitHubForge
) -> None:
    made = forge.open_pull_request(make_draft(body="One\nTwo"))
    github.edit_issue(made.number, "ada", body="One\r\nTwo\r\n")
    github.requests.clear()

    forge.update_pull_request(made.number, make_draft(body="One\nTwo", labels=("KernelEvolve",)))

    assert [request.method for request in github.requests] == ["GET"]
