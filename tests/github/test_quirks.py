"""Each switch of the fake of GitHub does what it says."""

from pathlib import Path

import pytest
import requests

from tests.fakes import FakeClock
from tests.github.asker import Asker, app_token
from tests.github.fake import FakeGitHub
from tests.github.quirks import Fault, FaultKind


def write(asker: Asker, number: int = 1) -> requests.Response:
    return asker.ask("POST", f":/issues/{number}/comments", {"body": "hello"})


@pytest.fixture(autouse=True)
def issue(host: FakeGitHub) -> int:
    return host.open_issue("ann", "T")


@pytest.mark.parametrize(
    ("kind", "status", "written"),
    [
        ("502 before", 502, 0),
        ("502 after", 502, 1),
        ("500", 500, 0),
        ("503", 503, 0),
        ("401", 401, 0),
        ("404", 404, 0),
        ("403 secondary", 403, 0),
        ("403 primary", 403, 0),
        ("429", 429, 0),
        ("html", 200, 0),
        ("slow", 201, 1),
    ],
)
def test_a_fault_hits_once(
    host: FakeGitHub, asker: Asker, kind: FaultKind, status: int, written: int
) -> None:
    host.quirks.faults.append(Fault(kind, "POST", "/comments$", slow_s=0.01))

    first = write(asker)
    reread = asker.ask("GET", ":/issues/1")

    assert (first.status_code, len(host.world.comments)) == (status, written)
    if kind != "403 primary":  # which lasts for an hour
        assert reread.status_code == 200
        assert write(asker).status_code == 201


@pytest.mark.parametrize(("kind", "written"), [("hangs up before", 0), ("hangs up after", 1)])
def test_a_line_is_cut(host: FakeGitHub, asker: Asker, kind: FaultKind, written: int) -> None:
    host.quirks.faults.append(Fault(kind))

    with pytest.raises(requests.ConnectionError):
        write(asker)

    assert len(host.world.comments) == written
    assert (host.requests[-1].status, host.requests[-1].done) == (0, written == 1)


def test_who_does_not_wait_is_noted(host: FakeGitHub, asker: Asker, clock: FakeClock) -> None:
    host.quirks.faults.append(Fault("429", retry_after_s=30))
    told = write(asker)
    clock.now_s += 29

    early = write(asker)
    clock.now_s += 1

    assert (told.headers["Retry-After"], early.status_code) == ("30", 429)
    assert [request.path for request in host.impatient] == ["/repos/octo/kernels/issues/1/comments"]
    assert write(asker).status_code == 201


def test_a_limit_without_a_word_of_when(host: FakeGitHub, asker: Asker) -> None:
    host.quirks.faults.append(Fault("403 secondary"))

    told = write(asker)

    assert "Retry-After" not in told.headers
    assert "secondary rate limit" in told.json()["message"]


def test_the_primary_limit_says_when_it_ends(
    host: FakeGitHub, asker: Asker, clock: FakeClock
) -> None:
    host.quirks.requests_per_hour = 2
    asker.token = host.make_token("ann")  # which lasts longer than the limit
    asker.get(":")
    clock.now_s += 10
    asker.get(":")

    told = asker.ask("GET", ":")

    assert (told.status_code, told.headers["X-RateLimit-Remaining"]) == (403, "0")
    assert told.headers["X-RateLimit-Reset"] == str(int(clock.now_s) - 10 + 3600)
    clock.now_s += 3590
    assert asker.ask("GET", ":").status_code == 200


@pytest.mark.parametrize("says", [True, False])
def test_the_secondary_limit_counts_what_makes_content(
    host: FakeGitHub, asker: Asker, clock: FakeClock, *, says: bool
) -> None:
    host.quirks.writes_per_minute, host.quirks.says_retry_after = 2, says
    told = []
    for _ in range(3):
        clock.now_s += 1
        told.append(write(asker))

    assert [answer.status_code for answer in told] == [201, 201, 403]
    assert asker.ask("GET", ":").status_code == 200
    assert told[-1].headers.get("Retry-After") == ("59" if says else None)
    clock.now_s += 59
    assert write(asker).status_code == 201


def test_all_requests_have_points(host: FakeGitHub, asker: Asker, clock: FakeClock) -> None:
    host.quirks.points_per_minute, host.quirks.secondary_status = 6, 429
    write(asker)
    asker.get(":")

    told = asker.ask("GET", ":")
    clock.now_s += 60

    assert (told.status_code, told.headers["Retry-After"]) == (429, "61")
    assert asker.ask("GET", ":").status_code == 200


def test_a_new_thing_is_not_there_at_once(host: FakeGitHub, asker: Asker) -> None:
    host.quirks.hidden_looks = 2
    made = write(asker).json()["id"]

    looks = [asker.ask("GET", f":/issues/comments/{made}").status_code for _ in range(3)]

    assert looks == [404, 404, 200]


def test_a_list_lags_behind(host: FakeGitHub, asker: Asker) -> None:
    host.quirks.stale_lists = 1
    assert asker.list(":/issues/1/comments") == []
    write(asker)

    lengths = [len(asker.list(":/issues/1/comments")) for _ in range(2)]

    assert lengths == [0, 1]


def test_whether_it_merges_is_known_late(host: FakeGitHub, asker: Asker) -> None:
    host.quirks.mergeable_after_looks = 1
    host.push("work", {"a": "a"}, "ann")
    number = host.open_pull_request("ann", "work")

    looks = [asker.get(f":/pulls/{number}")["mergeable"] for _ in range(2)]
    host.push("work", {"b": "b"}, "ann")

    assert looks == [None, True]
    assert asker.get(f":/pulls/{number}")["mergeable"] is None


def test_lists_come_in_pages(host: FakeGitHub, asker: Asker) -> None:
    host.quirks.most_per_page = 2
    written = [host.comment(1, "ann", str(i)) for i in range(5)]

    found, path = [], ":/issues/1/comments?per_page=100"
    while path:
        answer = asker.ask("GET", path)
        found += [comment["id"] for comment in answer.json()]
        url = answer.links.get("next", {}).get("url", "")
        path = url.removeprefix(host.api_url)

    assert found == written
    assert len([r for r in host.requests if r.method == "GET"]) == 3


def test_an_entry_may_come_twice(host: FakeGitHub, asker: Asker) -> None:
    host.quirks.most_per_page, host.quirks.shifted_pages = 2, True
    first, second, third = (host.comment(1, "ann", str(i)) for i in range(3))

    pages = [
        [comment["id"] for comment in asker.list(f":/issues/1/comments?page={page}")]
        for page in (1, 2)
    ]

    assert pages == [[first, second], [second, third]]


def test_an_unchanged_thing_costs_nothing(host: FakeGitHub, asker: Asker) -> None:
    first = asker.ask("GET", ":/issues/1/comments")
    known = {"If-None-Match": first.headers["ETag"]}

    same = asker.ask("GET", ":/issues/1/comments", headers=known)
    write(asker)
    other = asker.ask("GET", ":/issues/1/comments", headers=known)

    assert (same.status_code, same.content, other.status_code) == (304, b"", 200)
    assert [r.done for r in host.requests] == [True, False, True, True]
    host.quirks.etags = False
    assert "ETag" not in asker.ask("GET", ":/issues/1/comments").headers


def test_what_bodies_say_of_people_may_mislead(host: FakeGitHub, asker: Asker) -> None:
    host.set_role("ann", "write")
    assert asker.get(":/issues/1")["author_association"] == "COLLABORATOR"

    host.quirks.associations_mislead = True

    assert asker.get(":/issues/1")["author_association"] == "NONE"
    host.set_role("ann", "none")
    assert asker.get(":/issues/1")["author_association"] == "MEMBER"
    host.set_role("ann", "write")
    assert asker.get(":/collaborators/ann/permission")["role_name"] == "write"


def test_bodies_may_name_another_host(host: FakeGitHub, asker: Asker) -> None:
    host.quirks.foreign_urls = True

    assert asker.get(":/issues/1")["url"] == "https://api.github.com/repos/octo/kernels/issues/1"


def test_git_has_bad_days_too(host: FakeGitHub, tmp_path: Path, asker: Asker) -> None:
    host.quirks.faults.append(Fault("502 after", path="git-receive-pack$"))
    url = f"{host.git_url}/git-receive-pack"

    assert asker.session.post(url, timeout=9).status_code == 502


def test_there_may_be_no_drafts(host: FakeGitHub, asker: Asker) -> None:
    host.quirks.knows_drafts = False
    host.push("work", {"a": "a"}, "ann")
    draft = {"title": "T", "head": "work", "base": "main", "draft": True}

    refused = asker.ask("POST", ":/pulls", draft)

    assert (refused.status_code, "not supported" in refused.text) == (422, True)
    assert asker.ask("POST", ":/pulls", draft | {"draft": False}).status_code == 201


def test_a_suspended_app_does_nothing(host: FakeGitHub, asker: Asker) -> None:
    host.quirks.suspended = True

    assert asker.ask("GET", ":").status_code == 403
    with Asker(host, app_token(host)) as app:
        path = f"/app/installations/{host.installation_id}/access_tokens"
        assert app.ask("POST", path, {}).status_code == 403


def test_an_archived_repository_is_only_read(host: FakeGitHub, asker: Asker) -> None:
    host.quirks.archived = True

    assert asker.get(":")["archived"] is True
    assert write(asker).status_code == 403


def test_somebody_renamed_is_the_same_person(host: FakeGitHub, asker: Asker) -> None:
    before = asker.get("/users/ann")["id"]

    host.rename("ann", "anna")

    assert asker.get("/users/anna")["id"] == before == asker.get(":/issues/1")["user"]["id"]
    assert asker.ask("GET", "/users/ann").status_code == 404
