"""The client over the fake of GitHub: bad days, tokens, limits, and who goes first."""

import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from daemon.forge import (
    ForgeBusyError,
    ForgeError,
    ForgeRefusedError,
    ForgeUnavailableError,
    NotThereError,
)
from daemon.github.access import App
from daemon.github.answers import Request, UnauthorisedError
from daemon.github.client import GitHubClient
from tests.fakes import FakeClock
from tests.github.fake import FakeGitHub
from tests.github.hosts import NOW, make_app, make_client, make_clock, make_person
from tests.github.quirks import Fault, FaultKind

REPOSITORY = "/repos/octo/kernels"
BROKEN: tuple[FaultKind, ...] = (
    "502 before", "502 after", "500", "503", "hangs up before", "hangs up after", "html",
)  # fmt: skip


@pytest.fixture
def github(tmp_path: Path) -> Iterator[FakeGitHub]:
    with FakeGitHub(tmp_path) as github:
        yield github


@pytest.fixture
def clock(github: FakeGitHub) -> FakeClock:
    return make_clock(github)


@pytest.fixture
def client(github: FakeGitHub, clock: FakeClock) -> GitHubClient:
    client = make_client(github, clock=clock)
    client.ask(Request("GET", REPOSITORY))  # the token is there
    github.requests.clear()
    return client


def comment(github: FakeGitHub, text: str = "hi", *, urgent: bool = False) -> Request:
    number = next(iter(github.world.tickets), None) or github.open_issue("octo", "One")
    return Request(
        "POST", f"{REPOSITORY}/issues/{number}/comments", body={"body": text}, urgent=urgent
    )


def asked(github: FakeGitHub) -> list[str]:
    return [request.method for request in github.requests if not request.path.startswith("/app")]


@pytest.mark.parametrize("kind", BROKEN)
def test_a_read_of_a_broken_host_is_tried_again(
    github: FakeGitHub, client: GitHubClient, kind: FaultKind
) -> None:
    github.quirks.faults = [Fault(kind, times=2)]
    request = Request("GET", f"{REPOSITORY}/labels")

    assert client.ask(request).status == 200
    assert asked(github) == ["GET"] * 3


@pytest.mark.parametrize("kind", BROKEN)
def test_and_not_for_ever(github: FakeGitHub, client: GitHubClient, kind: FaultKind) -> None:
    github.quirks.faults = [Fault(kind, times=99)]

    with pytest.raises(ForgeUnavailableError):
        client.ask(Request("GET", f"{REPOSITORY}/labels")).json  # noqa: B018 - it raises

    assert len(asked(github)) <= 3


@pytest.mark.parametrize("kind", BROKEN)
def test_a_write_is_never_sent_twice(
    github: FakeGitHub, client: GitHubClient, kind: FaultKind
) -> None:
    request = comment(github)
    github.quirks.faults = [Fault(kind, "POST", times=99)]

    with pytest.raises(ForgeUnavailableError):
        client.ask(request).json  # noqa: B018 - it raises

    assert asked(github) == ["POST"]


@pytest.mark.parametrize("kind", ["403 secondary", "429"])
@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(("retry_after_s", "wait_s"), [(600, 600), (7, 7), (None, 60)])
def test_a_limit_is_told_at_once_and_heeded(  # noqa: PLR0913 - the matrix of GitHub's limits
    github: FakeGitHub,
    client: GitHubClient,
    clock: FakeClock,
    *,
    kind: FaultKind,
    method: str,
    retry_after_s: int | None,
    wait_s: float,
) -> None:
    request = comment(github) if method == "POST" else Request("GET", f"{REPOSITORY}/labels")
    github.quirks.faults = [Fault(kind, retry_after_s=retry_after_s)]
    began = clock.now_s

    with pytest.raises(ForgeBusyError) as busy:
        client.ask(request)
    assert busy.value.retry_at == began + wait_s
    if wait_s < 8:
        client.ask(comment(github, urgent=True))
        assert clock.now_s == began + wait_s
    else:
        for later in (request, Request("GET", REPOSITORY), comment(github, urgent=True)):
            with pytest.raises(ForgeBusyError):
                client.ask(later)
        assert clock.now_s == began

    assert github.impatient == []


def test_the_quota_is_waited_for(github: FakeGitHub, client: GitHubClient) -> None:
    github.quirks.faults = [Fault("403 primary", retry_after_s=3000)]

    with pytest.raises(ForgeBusyError) as busy:
        client.ask(Request("GET", f"{REPOSITORY}/labels"))

    assert 3000 <= busy.value.retry_at - NOW <= 3010
    assert len(asked(github)) == 1


def test_a_quota_that_the_last_answer_used_up_is_not_overdrawn(
    github: FakeGitHub, client: GitHubClient
) -> None:
    github.quirks.requests_per_hour = 3  # a token and a look at the repository are gone

    client.ask(Request("GET", f"{REPOSITORY}/labels"))
    before = len(asked(github))
    with pytest.raises(ForgeBusyError):
        client.ask(Request("GET", f"{REPOSITORY}/issues"))

    assert len(asked(github)) == before


def test_refusals_in_a_row_double_the_wait(
    github: FakeGitHub, client: GitHubClient, clock: FakeClock
) -> None:
    github.quirks.faults = [Fault("429", times=4)]
    waits = []
    for _ in range(4):
        with pytest.raises(ForgeBusyError) as busy:
            client.ask(Request("GET", f"{REPOSITORY}/labels"))
        waits.append(busy.value.retry_at - clock.now_s)
        clock.now_s = busy.value.retry_at

    assert waits == [60, 120, 240, 480]
    assert client.ask(Request("GET", f"{REPOSITORY}/labels")).status == 200


def test_writes_keep_below_github_s_limits(
    github: FakeGitHub, client: GitHubClient, clock: FakeClock
) -> None:
    github.quirks.writes_per_minute, github.quirks.writes_per_hour = 80, 500
    sent = 0
    while clock.now_s < NOW + 900:
        try:
            client.ask(comment(github, str(sent)))
            sent += 1
        except ForgeBusyError as busy:
            clock.now_s = busy.retry_at

    assert github.impatient == []
    assert {request.status for request in github.requests if request.method == "POST"} == {201}
    assert sent == 340
    assert client.ask(comment(github, "stop", urgent=True)).status == 201


def test_threads_share_one_pace(github: FakeGitHub) -> None:
    """By the real clock: writes of four threads are a second apart all the same."""
    client = GitHubClient(
        repository=github.full_name,
        access=make_app(github, github.world.folder),
        api=github.api_url,
    )
    client.ask(Request("GET", REPOSITORY))
    request = comment(github)
    threads = [threading.Thread(target=client.ask, args=[request]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    times = sorted(request.at for request in github.requests if request.path.endswith("/comments"))
    assert len(times) == 4
    assert min(b - a for a, b in pairwise(times)) > 0.95


def test_what_is_urgent_goes_before_what_waits(github: FakeGitHub) -> None:
    client = GitHubClient(
        repository=github.full_name,
        access=make_app(github, github.world.folder),
        api=github.api_url,
    )
    client.ask(comment(github, "first"))
    bodies = [comment(github, f"update {i}") for i in range(4)]
    threads = [threading.Thread(target=client.ask, args=[request]) for request in bodies]
    for thread in threads:
        thread.start()
    client.ask(comment(github, "ack", urgent=True))
    for thread in threads:
        thread.join()

    written = [c.body for c in github.world.comments.values()]
    assert written[:2] == ["first", "ack"]


def test_a_token_is_renewed_before_it_ends(
    github: FakeGitHub, client: GitHubClient, clock: FakeClock
) -> None:
    for _ in range(12):  # three hours
        clock.now_s += 900
        assert client.ask(Request("GET", REPOSITORY)).status == 200

    tokens = [request for request in github.requests if request.path.endswith("/access_tokens")]
    assert len(tokens) == 3
    assert {request.status for request in github.requests} <= {200, 201, 304}


def test_a_token_that_is_not_taken_is_replaced_once(
    github: FakeGitHub, client: GitHubClient
) -> None:
    request = comment(github)
    github.expire_tokens()

    assert client.ask(request).status == 201
    assert [request.status for request in github.requests] == [401, 201, 201]


def test_credentials_that_are_never_taken_are_worth_another_try_later(
    github: FakeGitHub, client: GitHubClient
) -> None:
    github.quirks.faults = [Fault("401", times=99)]

    with pytest.raises(UnauthorisedError):
        client.ask(Request("GET", REPOSITORY))

    assert len(github.requests) <= 3


def test_each_purpose_has_a_token_that_can_do_no_more(
    github: FakeGitHub, client: GitHubClient
) -> None:
    with pytest.raises(ForgeRefusedError, match="not accessible"):
        client.ask(Request("GET", f"{REPOSITORY}/actions/workflows"))

    assert client.ask(Request("GET", f"{REPOSITORY}/actions/workflows", purpose="actions")).status
    with pytest.raises(ForgeRefusedError, match="not accessible"):
        client.ask(Request("GET", f"{REPOSITORY}/issues", purpose="actions"))


def test_a_permission_that_was_not_granted_is_a_matter_of_credentials(github: FakeGitHub) -> None:
    del github.permissions["checks"]

    with pytest.raises(UnauthorisedError, match="github doctor"):
        make_client(github).ask(Request("GET", REPOSITORY))


def test_the_installation_is_found_where_it_is_not_set(github: FakeGitHub, tmp_path: Path) -> None:
    app = make_app(github, tmp_path)

    client = make_client(github, App(app.app_id, app.private_key))

    assert client.ask(Request("GET", REPOSITORY)).status == 200
    assert client.ask(Request("GET", f"{REPOSITORY}/issues")).status == 200


@pytest.mark.parametrize("key", [None, "", "no key", "-----BEGIN RSA PRIVATE KEY-----\nx\n"])
def test_a_key_that_is_none_is_named(github: FakeGitHub, tmp_path: Path, key: str | None) -> None:
    file = tmp_path / "bad.pem"
    if key is not None:
        file.write_text(key, encoding="ascii")

    with pytest.raises(UnauthorisedError, match=r"bad\.pem holds no private key"):
        make_client(github, App(github.app_id, file, 77)).ask(Request("GET", REPOSITORY))


def test_a_person_s_token_is_used_as_it_is(github: FakeGitHub) -> None:
    client = make_client(github, make_person(github))

    client.ask(Request("GET", REPOSITORY))

    assert [request.login for request in github.requests] == ["machine"]


def test_what_has_not_changed_costs_no_quota(github: FakeGitHub, client: GitHubClient) -> None:
    github.quirks.most_per_page = 2
    for i in range(5):
        github.open_issue("octo", f"Issue {i}")

    first = client.pages(f"{REPOSITORY}/issues")
    second = client.pages(f"{REPOSITORY}/issues")
    github.open_issue("octo", "New")
    third = client.pages(f"{REPOSITORY}/issues")

    assert first == second
    assert len(third) == 6
    assert [request.status for request in github.requests[3:6]] == [304] * 3


def test_a_list_comes_in_pages_wherever_its_links_lead(
    github: FakeGitHub, client: GitHubClient
) -> None:
    github.quirks.foreign_urls = True
    github.quirks.most_per_page = 2
    for i in range(5):
        github.open_issue("octo", f"Issue {i}")

    assert len(client.pages(f"{REPOSITORY}/issues")) == 5


def test_a_list_that_changes_while_it_is_read_holds_each_thing_once(
    github: FakeGitHub, client: GitHubClient
) -> None:
    github.quirks.most_per_page = 2
    for i in range(5):
        github.open_issue("octo", f"Issue {i}")
    opened = iter(["new"])
    ask = client.ask

    def asking(request: Request) -> object:
        answer = ask(request)
        for title in opened:
            github.open_issue("octo", title)
        return answer

    client.ask = asking  # type: ignore[method-assign, assignment]
    titles = [issue["title"] for issue in client.pages(f"{REPOSITORY}/issues")]

    assert sorted(titles) == [f"Issue {i}" for i in range(5)]


def test_what_was_just_made_is_looked_for_a_few_times(
    github: FakeGitHub, client: GitHubClient
) -> None:
    github.quirks.hidden_looks = 2
    made = client.ask(comment(github)).json
    path = f"{REPOSITORY}/issues/comments/{made['id']}"
    client.note_made(path)

    assert client.ask(Request("GET", path)).json["body"] == "hi"


def test_what_was_not_made_by_us_is_not_there_at_once(
    github: FakeGitHub, client: GitHubClient
) -> None:
    with pytest.raises(NotThereError):
        client.ask(Request("GET", f"{REPOSITORY}/issues/comments/999"))

    assert len(asked(github)) == 1


def test_a_host_that_is_away_is_unavailable(tmp_path: Path) -> None:
    with FakeGitHub(tmp_path) as github:
        client = make_client(github, make_person(github))

    with pytest.raises(ForgeUnavailableError, match="can't be reached"):
        client.ask(Request("GET", REPOSITORY))


def test_no_error_holds_a_secret(github: FakeGitHub, clock: FakeClock) -> None:
    access = make_person(github)
    client = make_client(github, access, clock=clock)
    told = []
    for kind in (*BROKEN, "401", "403 secondary", "404"):
        github.quirks.faults = [Fault(kind, times=9)]
        clock.now_s += 4000
        try:
            client.ask(Request("GET", f"{REPOSITORY}/labels")).json  # noqa: B018 - it raises
        except ForgeError as error:
            told.append(f"{error!r} {error.__cause__!r}")

    assert len(told) == 10
    assert access.token not in " ".join([*told, repr(client)])
