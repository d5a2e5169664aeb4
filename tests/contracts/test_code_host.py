"""What every code host does, beside what every forge does; see `test_forge`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.forge import (
    Check,
    CodeHost,
    ForgeRefusedError,
    NotThereError,
    Permission,
    PullRequestDraft,
)
from tests.fakes import FakeClock
from tests.github.fake import FakeGitHub
from tests.github.hosts import make_clock, make_person, open_forge

WORKFLOW = """\
name: search
run-name: ${{ inputs.tag }}
on:
  workflow_dispatch:
    inputs:
      tag:
        type: string
"""


@pytest.fixture
def github(tmp_path: Path) -> Iterator[FakeGitHub]:
    with FakeGitHub(tmp_path) as github:
        github.push("main", {"docs/a.md": "one", ".github/workflows/search.yml": WORKFLOW}, "octo")
        yield github


@pytest.fixture(params=["by an App", "by a token"])
def host(request: pytest.FixtureRequest, github: FakeGitHub) -> CodeHost:
    clock = make_clock(github)
    access = None if request.param == "by an App" else make_person(github)
    return open_forge(github, access, clock=clock)


def open_one(host: CodeHost, github: FakeGitHub, **changes: object) -> int:
    github.push("work", {"file": "new"}, "octo")
    draft = PullRequestDraft(title="Faster", body="By 2x", head="work", base="main")
    return host.open_pull_request(draft.model_copy(update=changes)).number


def make_check(sha: str, **changes: object) -> Check:
    check = Check(
        name="kernelevolve / verify",
        head_sha=sha,
        status="completed",
        conclusion="success",
        title="It holds",
        summary="**2x**",
        external_id="job-1",
    )
    return check.model_copy(update=changes)


def test_we_are_an_account_with_a_number(host: CodeHost, github: FakeGitHub) -> None:
    assert host.me.login in {"kernelevolve[bot]", "machine"}
    assert host.me.id == github.world.user(host.me.login).id
    assert host.me.is_bot == host.me.login.endswith("[bot]")


def test_one_pull_request_is_found_by_its_number(host: CodeHost, github: FakeGitHub) -> None:
    number = open_one(host, github)

    found = host.pull_request(number)

    assert (found.title, found.state, found.author) == ("Faster", "open", host.me)
    assert found.mergeable is True
    with pytest.raises(NotThereError, match="no pull request #77"):
        host.pull_request(77)


def test_a_conflict_with_the_base_is_seen(host: CodeHost, github: FakeGitHub) -> None:
    number = open_one(host, github)

    github.push("main", {"file": "other"}, "octo")

    assert host.pull_request(number).mergeable is False


def test_whether_it_can_be_merged_may_not_be_known_yet(host: CodeHost, github: FakeGitHub) -> None:
    github.quirks.mergeable_after_looks = 5
    number = open_one(host, github)

    assert host.pull_request(number).mergeable is None


def test_an_issue_is_no_pull_request(host: CodeHost, github: FakeGitHub) -> None:
    number = github.open_issue("octo", "Slow")

    with pytest.raises(NotThereError):
        host.pull_request(number)
    assert host.pull_requests() == ()


def test_a_draft_becomes_ready_and_a_draft_again(host: CodeHost, github: FakeGitHub) -> None:
    number = open_one(host, github, draft=True)
    draft = PullRequestDraft(title="Faster", body="By 2x", head="work", base="main")
    before = host.pull_request(number).draft

    ready = host.update_pull_request(number, draft)
    again = host.update_pull_request(number, draft.model_copy(update={"draft": True}))

    assert (before, ready.draft, again.draft) == (True, False, True)


def test_a_closed_pull_request_is_opened_again(host: CodeHost, github: FakeGitHub) -> None:
    number = open_one(host, github)
    github.close(number, "octo")

    assert host.reopen_pull_request(number).state == "open"
    assert host.reopen_pull_request(number).state == "open"


def test_a_merged_one_is_not_opened_again(host: CodeHost, github: FakeGitHub) -> None:
    number = open_one(host, github)
    github.merge(number, "octo")

    with pytest.raises(ForgeRefusedError, match="merged"):
        host.reopen_pull_request(number)


def test_one_without_its_branch_is_not_opened_again(host: CodeHost, github: FakeGitHub) -> None:
    number = open_one(host, github)
    github.delete_branch("work", "octo")

    with pytest.raises(ForgeRefusedError):
        host.reopen_pull_request(number)


def test_a_fork_s_branch_of_the_same_name_is_not_ours(host: CodeHost, github: FakeGitHub) -> None:
    number = github.open_pull_request_from_fork("stranger", {"file": "theirs"}, branch="work")

    assert host.pull_request(number).from_fork
    assert host.pull_requests(head="work") == ()


def test_those_who_may_review_are_asked_and_others_are_not(
    host: CodeHost, github: FakeGitHub
) -> None:
    number = open_one(host, github)
    github.set_role("ada", "write")
    github.world.teams.add("kernels")

    host.ask_for_review(number, ("stranger", "ada", "octo/kernels"))
    host.ask_for_review(number, ("ada",))

    pull = github.world.tickets[number].pull
    assert pull
    assert ([user.login for user in pull.reviewers], pull.teams) == (["ada"], ["kernels"])
    asked = [request.method for request in github.requests if "reviewers" in request.path]
    assert asked.count("POST") == 4


def test_comments_since_a_time_come_oldest_first(host: CodeHost, github: FakeGitHub) -> None:
    github.quirks.most_per_page = 2
    number = open_one(host, github)
    clock = github.clock
    assert isinstance(clock, FakeClock)
    ids = []
    for word in ("one", "two", "three", "four", "five"):
        ids.append(github.comment(number, "ada", word))
        clock.now_s += 60
    second = host.comment(ids[1])

    found = host.comments(since=second.updated_at)

    assert [comment.id for comment in found] == ids[1:]
    assert [comment.body for comment in host.comments_on(number)][-1] == "five"
    assert (second.author.login, second.number, second.via_app) == ("ada", number, False)


def test_what_we_write_can_be_changed(host: CodeHost, github: FakeGitHub) -> None:
    number = open_one(host, github)
    made = host.add_comment(number, "hello")

    changed = host.edit_comment(made.id, "good day")

    assert (made.author, changed.id, changed.body) == (host.me, made.id, "good day")
    assert host.comment(made.id).body == "good day"


def test_the_same_words_are_not_written_twice(host: CodeHost, github: FakeGitHub) -> None:
    made = host.add_comment(open_one(host, github), "hello")

    host.edit_comment(made.id, "hello")

    assert "PATCH" not in [request.method for request in github.requests]


def test_a_comment_of_somebody_else_is_left_as_it_is(host: CodeHost, github: FakeGitHub) -> None:
    comment = github.comment(open_one(host, github), "ada", "<!-- kernelevolve sticky -->")

    with pytest.raises(ForgeRefusedError, match="ada's"):
        host.edit_comment(comment, "mine")

    assert github.world.comments[comment].body == "<!-- kernelevolve sticky -->"


def test_a_comment_that_is_gone_is_not_there(host: CodeHost, github: FakeGitHub) -> None:
    comment = github.comment(open_one(host, github), "ada", "hi")
    github.delete_comment(comment)

    with pytest.raises(NotThereError):
        host.comment(comment)
    with pytest.raises(NotThereError):
        host.edit_comment(comment, "mine")
    with pytest.raises(NotThereError):
        host.react(comment, "eyes")


def test_a_reaction_is_there_once(host: CodeHost, github: FakeGitHub) -> None:
    comment = github.comment(open_one(host, github), "ada", "/benchmark")

    host.react(comment, "eyes")
    host.react(comment, "eyes")

    assert github.reactions(comment) == [(host.me.login, "eyes")]


@pytest.mark.parametrize("role", ["read", "triage", "write", "maintain", "admin"])
def test_rights_are_told_as_they_are_now(
    host: CodeHost, github: FakeGitHub, role: Permission
) -> None:
    github.set_role("ada", "read")
    before = host.permission("ada")
    github.set_role("ada", role)

    assert (before, host.permission("ada")) == ("read", role)


@pytest.mark.parametrize("login", ["nobody", "../admin", "a/b", "", "a b", "ada?x=1", ".."])
def test_strangers_may_nothing(host: CodeHost, github: FakeGitHub, login: str) -> None:
    github.set_role("ada", "admin")

    assert host.permission(login) == "none"


def test_in_a_private_repository_who_has_no_role_may_nothing(
    host: CodeHost, github: FakeGitHub
) -> None:
    github.world.private = True
    github.set_role("ada", "none")

    assert host.permission("ada") == "none"


def test_issues_are_found_by_their_label(host: CodeHost, github: FakeGitHub) -> None:
    open_one(host, github, labels=("dashboard",))
    first = github.open_issue("octo", "One", labels=("dashboard",))
    github.close(first, "octo")
    github.open_issue("octo", "Other")
    second = host.open_issue("Two", "words", ("dashboard",))

    found = host.issues(label="dashboard")

    assert [(issue.number, issue.state) for issue in found] == [
        (first, "closed"),
        (second.number, "open"),
    ]
    assert found[1] == second


def test_an_issue_that_is_there_is_not_opened_again(host: CodeHost, github: FakeGitHub) -> None:
    first = host.open_issue("Dashboard", "words", ("dashboard",))

    second = host.open_issue("Dashboard", "others", ("dashboard",))

    assert second == first
    assert len(github.issues()) == 1


def test_an_issue_becomes_what_it_should_be(host: CodeHost, github: FakeGitHub) -> None:
    number = host.open_issue("Dashboard", "words", ()).number

    changed = host.update_issue(number, title="Board", body="other", state="closed")
    writes = sum(request.makes_content for request in github.requests)
    again = host.update_issue(number, title="Board", body="other", state="closed")

    assert (changed.title, changed.body, changed.state) == ("Board", "other", "closed")
    assert again == changed
    assert sum(request.makes_content for request in github.requests) == writes


def test_a_pull_request_is_not_changed_as_an_issue(host: CodeHost, github: FakeGitHub) -> None:
    number = open_one(host, github)

    with pytest.raises(ForgeRefusedError, match="pull request"):
        host.update_issue(number, title="T", body="B", state="closed")


def test_a_check_stands_beside_its_commit(host: CodeHost, github: FakeGitHub) -> None:
    sha = github.git.heads()["main"]
    before = host.find_check(sha, "kernelevolve / verify")

    host.show_check(make_check(sha))

    found = host.find_check(sha, "kernelevolve / verify")
    assert before is None
    assert found
    assert (found.status, found.conclusion, found.title) == ("completed", "success", "It holds")
    assert host.find_check(sha, "another") is None


def test_a_check_that_goes_on_is_pending(host: CodeHost, github: FakeGitHub) -> None:
    sha = github.git.heads()["main"]

    host.show_check(make_check(sha, status="in_progress", conclusion=None))

    found = host.find_check(sha, "kernelevolve / verify")
    assert found
    assert (found.status, found.conclusion) == ("in_progress", None)


def test_a_check_takes_the_place_of_the_one_before(host: CodeHost, github: FakeGitHub) -> None:
    sha = github.git.heads()["main"]
    for status, conclusion in (
        ("queued", None),
        ("completed", "failure"),
        ("in_progress", None),  # a re-verification of one that was completed
        ("completed", "success"),
    ):
        host.show_check(make_check(sha, status=status, conclusion=conclusion))

    found = host.find_check(sha, "kernelevolve / verify")

    assert found
    assert found.conclusion == "success"


def test_the_same_check_is_not_written_twice(host: CodeHost, github: FakeGitHub) -> None:
    sha = github.git.heads()["main"]
    host.show_check(make_check(sha, text="more", summary="long " * 20_000))
    writes = sum(request.makes_content for request in github.requests)

    host.show_check(make_check(sha, text="more", summary="long " * 20_000))

    assert sum(request.makes_content for request in github.requests) == writes


@pytest.mark.parametrize("sha", ["main", "../x", "", "a" * 39])
def test_a_check_of_no_commit_is_refused(host: CodeHost, sha: str) -> None:
    with pytest.raises(ForgeRefusedError, match="no commit"):
        host.show_check(make_check(sha))


def test_a_file_is_read_at_a_revision(host: CodeHost, github: FakeGitHub) -> None:
    before = github.git.heads()["main"]
    github.push("main", {"docs/a.md": "zwölf"}, "octo")

    assert host.file("docs/a.md", ref=before) == "one"
    assert host.file("docs/a.md", ref="main") == "zwölf"


@pytest.mark.parametrize("path", ["docs", "docs/b.md", "nowhere/at/all"])
def test_where_there_is_no_file_there_is_none(host: CodeHost, path: str) -> None:
    assert host.file(path, ref="main") is None


@pytest.mark.parametrize("path", ["", "/etc/passwd", "../../user", "a/../../b", "a/.", "a\nb"])
def test_a_path_out_of_the_repository_is_refused(host: CodeHost, path: str) -> None:
    with pytest.raises(ForgeRefusedError, match="no path"):
        host.file(path, ref="main")


def test_a_workflow_is_started_and_found_by_its_tag(host: CodeHost, github: FakeGitHub) -> None:
    host.dispatch("search.yml", ref="main", inputs={"tag": "goal-1"})
    host.dispatch("search.yml", ref="main", inputs={"tag": "goal-2"})

    runs = host.workflow_runs("search.yml")

    assert [(run.name, run.status) for run in runs] == [("goal-2", "queued"), ("goal-1", "queued")]


@pytest.mark.parametrize("workflow", ["../../x.yml", "search", "a/b.yml", "-x.yml"])
def test_a_workflow_that_is_no_file_name_is_refused(host: CodeHost, workflow: str) -> None:
    with pytest.raises(ForgeRefusedError, match="no workflow"):
        host.dispatch(workflow, ref="main", inputs={})


def test_a_run_is_cancelled_once(host: CodeHost, github: FakeGitHub) -> None:
    host.dispatch("search.yml", ref="main", inputs={"tag": "goal"})
    (run,) = host.workflow_runs("search.yml")

    host.cancel_run(run.id)
    github.end_run(run.id, "cancelled")
    host.cancel_run(run.id)

    (run,) = host.workflow_runs("search.yml")
    assert (run.status, run.conclusion) == ("completed", "cancelled")


@pytest.mark.parametrize(
    ("files", "expected"),
    [({"out.json": b"\x00\xff{}"}, b"\x00\xff{}"), ({}, None), ({"a": b"1", "b": b"2"}, None)],
)
def test_the_one_file_of_an_artefact_is_fetched(
    host: CodeHost, github: FakeGitHub, files: dict[str, bytes], expected: bytes | None
) -> None:
    host.dispatch("search.yml", ref="main", inputs={"tag": "goal"})
    (run,) = host.workflow_runs("search.yml")

    github.end_run(run.id, "success", {"result": files})

    assert host.artefact(run.id, "result") == expected
    assert host.artefact(run.id, "other") is None
