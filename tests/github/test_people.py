"""What people do at the fake of GitHub, by its website and by git, and what follows from it."""

import base64
import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.github.asker import Asker, app_token
from tests.github.fake import FakeGitHub
from tests.github.hooks import sign
from tests.github.state import Delivery


@dataclass
class Clone:
    """A clone of the fake's repository, by git over HTTP."""

    host: FakeGitHub
    folder: Path
    token: str

    def __post_init__(self) -> None:
        """Clone."""
        self.folder.parent.mkdir(exist_ok=True)
        self.git("clone", "-q", self.host.git_url, str(self.folder), cwd=self.folder.parent)

    def git(self, *arguments: str, cwd: Path | None = None, check: bool = True) -> str:
        basic = base64.b64encode(f"x-access-token:{self.token}".encode()).decode()
        settings = {
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": f"http.{self.host.world.base}/.extraHeader",
            "GIT_CONFIG_VALUE_0": f"Authorization: Basic {basic}",
            "GIT_AUTHOR_NAME": "me", "GIT_AUTHOR_EMAIL": "me@me",
            "GIT_COMMITTER_NAME": "me", "GIT_COMMITTER_EMAIL": "me@me",
        }  # fmt: skip
        done = subprocess.run(
            ["git", *arguments],
            cwd=cwd or self.folder,
            env=dict(os.environ) | settings,
            check=check,
            capture_output=True,
            text=True,
        )
        return done.stdout if done.returncode == 0 else f"failed: {done.stderr}"

    def commit(self, name: str, content: bytes = b"x") -> None:
        (self.folder / name).write_bytes(content)
        self.git("add", name)
        self.git("commit", "-q", "-m", name)


@pytest.fixture
def clone(host: FakeGitHub, tmp_path: Path) -> Clone:
    return Clone(host, tmp_path / "clones" / "one", host.installation_token())


def open_pull(asker: Asker, head: str = "work") -> int:
    body = {"title": "T", "body": "B", "head": head, "base": "main"}
    answer = asker.ask("POST", ":/pulls", body)
    assert answer.status_code == 201, answer.text
    number: int = answer.json()["number"]
    return number


def events(host: FakeGitHub) -> list[str]:
    return ["/".join(filter(None, (d.event, d.action))) for d in host.deliveries]


def test_a_push_by_git_moves_the_pull_request(host: FakeGitHub, asker: Asker, clone: Clone) -> None:
    host.push("work", {"a": "a"}, "octo")
    number = open_pull(asker)
    clone.git("fetch", "-q")
    clone.git("checkout", "-q", "work")
    clone.commit("b", os.urandom(2_000_000))  # so large that git sends it in chunks

    clone.git("push", "-q", "origin", "work")

    head = asker.get(f":/pulls/{number}")["head"]["sha"]
    assert head == clone.git("rev-parse", "HEAD").strip()
    assert events(host)[-2:] == ["pull_request/synchronize", "push"]


def test_a_push_with_a_stale_lease_is_refused(host: FakeGitHub, clone: Clone) -> None:
    sha = host.push("work", {"a": "a"}, "octo")
    host.push("work", {"b": "b"}, "ann")
    clone.commit("c")

    told = clone.git("push", f"--force-with-lease=work:{sha}", "origin", "HEAD:work", check=False)

    assert "stale info" in told


def test_git_needs_a_good_token_to_push(host: FakeGitHub, clone: Clone) -> None:
    clone.commit("c")
    clone.token = host.installation_token(contents="read")
    assert "403" in clone.git("push", "origin", "HEAD:work", check=False)
    host.expire_tokens()

    assert "could not read Username" in clone.git("push", "origin", "HEAD:work", check=False)

    assert set(host.git.heads()) == {"main"}


def test_a_protected_branch_takes_no_push_but_an_administrators(
    host: FakeGitHub, clone: Clone
) -> None:
    host.world.protected.add("main")
    clone.commit("c")
    assert "403" in clone.git("push", "origin", "HEAD:main", check=False)

    clone.token = host.make_token("octo")

    assert clone.git("push", "-q", "origin", "HEAD:main", check=False) == ""


def test_merging_closes_it_and_moves_the_base(host: FakeGitHub, asker: Asker) -> None:
    host.push("work", {"a": "a"}, "octo")
    number = open_pull(asker)

    sha = host.merge(number, "ann")

    found = asker.get(f":/pulls/{number}")
    assert (found["state"], found["merged"], found["merged_by"]["login"]) == ("closed", True, "ann")
    assert host.git.heads()["main"] == sha == found["merge_commit_sha"]
    assert host.git.read("main", "a") == b"a"
    assert asker.ask("PATCH", f":/pulls/{number}", {"state": "open"}).status_code == 422


def test_a_merge_by_git_is_one_as_well(host: FakeGitHub, asker: Asker, clone: Clone) -> None:
    host.push("work", {"a": "a"}, "octo")
    number = open_pull(asker)
    clone.git("fetch", "-q")

    clone.git("push", "-q", "origin", "origin/work:main")

    assert asker.get(f":/pulls/{number}")["merged"]


def test_deleting_the_branch_closes_it_for_good(host: FakeGitHub, asker: Asker) -> None:
    host.push("work", {"a": "a"}, "octo")
    number = open_pull(asker)

    host.delete_branch("work", "ann")

    assert asker.get(f":/pulls/{number}")["state"] == "closed"
    assert asker.ask("PATCH", f":/pulls/{number}", {"state": "open"}).status_code == 422


def test_a_branch_has_one_open_pull_request(host: FakeGitHub, asker: Asker) -> None:
    host.push("work", {"a": "a"}, "octo")
    number = open_pull(asker)
    again = {"title": "T", "head": "work", "base": "main"}

    refused = asker.ask("POST", ":/pulls", again)
    host.close(number, "ann")

    assert "already exists for octo:work" in refused.json()["errors"][0]["message"]
    assert open_pull(asker) == number + 1


def test_a_conflict_is_told(host: FakeGitHub, asker: Asker) -> None:
    host.push("work", {"a": "mine\n"}, "octo")
    number = open_pull(asker)
    assert asker.get(f":/pulls/{number}")["mergeable"] is True

    host.push("main", {"a": "theirs\n"}, "ann")

    found = asker.get(f":/pulls/{number}")
    assert (found["mergeable"], found["mergeable_state"]) == (False, "dirty")


def test_a_fork_is_another_repository(host: FakeGitHub, asker: Asker) -> None:
    number = host.open_pull_request_from_fork("eve", {"a": "evil"})
    first = asker.get(f":/pulls/{number}")["head"]

    host.push_to_fork(number, {"a": "worse"})

    moved = asker.get(f":/pulls/{number}")["head"]
    assert first["repo"]["full_name"] == "eve/kernels"
    assert first["sha"] != moved["sha"]
    assert set(host.git.heads()) == {"main"}
    assert asker.list(":/pulls?head=octo:patch-1") == []
    assert len(asker.list(":/pulls?head=eve:patch-1")) == 1


def test_a_head_without_its_owner_filters_nothing(host: FakeGitHub, asker: Asker) -> None:
    host.push("work", {"a": "a"}, "octo")
    open_pull(asker)

    assert len(asker.list(":/pulls?head=other")) == 1
    assert asker.list(":/pulls?head=octo:other") == []


def test_comments_are_listed_by_when_they_changed(host: FakeGitHub, asker: Asker) -> None:
    number = host.open_issue("ann", "T")
    first = host.comment(number, "ann", "one")
    host.clock.now_s += 10  # type: ignore[attr-defined]
    second = host.comment(number, "bob", "two")
    since = asker.get(f":/issues/comments/{second}")["updated_at"]
    host.clock.now_s += 10  # type: ignore[attr-defined]
    host.edit_comment(first, "one, edited")

    found = asker.list(f":/issues/comments?sort=updated&direction=asc&since={since}")

    assert [comment["id"] for comment in found] == [second, first]


def test_the_same_reaction_again_is_the_first(host: FakeGitHub, asker: Asker) -> None:
    comment = host.comment(host.open_issue("ann", "T"), "ann", "hello")
    path = f":/issues/comments/{comment}/reactions"

    told = [asker.ask("POST", path, {"content": "eyes"}).status_code for _ in range(2)]

    assert told == [201, 200]
    assert host.reactions(comment) == [("kernelevolve[bot]", "eyes")]


def test_one_stranger_refuses_all_reviewers(host: FakeGitHub, asker: Asker) -> None:
    host.push("work", {"a": "a"}, "octo")
    path = f":/pulls/{open_pull(asker)}/requested_reviewers"
    host.set_role("ann", "write")

    refused = asker.ask("POST", path, {"reviewers": ["ann", "stranger"]})

    assert refused.status_code == 422
    assert asker.get(path)["users"] == []
    assert asker.ask("POST", path, {"reviewers": ["ann"]}).status_code == 201


def test_an_artefact_is_fetched_without_a_token(tmp_path: Path) -> None:
    workflow = "on: {workflow_dispatch: {inputs: {tag: {required: true}}}}\nname: s\n"
    files = {".github/workflows/s.yml": workflow}
    with FakeGitHub(tmp_path, files=files) as host, Asker(host, host.installation_token()) as asker:
        path = ":/actions/workflows/s.yml/dispatches"
        refused = asker.ask("POST", path, {"ref": "main"})
        asker.ask("POST", path, {"ref": "main", "inputs": {"tag": "t"}})
        (run,) = asker.get(":/actions/runs")["workflow_runs"]
        host.end_run(run["id"], "success", {"result": {"out.json": b"{}"}})
        (artefact,) = asker.get(f":/actions/runs/{run['id']}/artifacts")["artifacts"]

        sent_on = asker.ask("GET", f":/actions/artifacts/{artefact['id']}/zip")

        place = sent_on.headers["Location"]
        shown = asker.session.get(place, headers={"Authorization": "Bearer x"}, timeout=9)
        fetched = asker.session.get(place, timeout=9)
    assert (refused.status_code, sent_on.status_code) == (422, 302)
    assert (shown.status_code, fetched.content[:2]) == (400, b"PK")


@dataclass
class Receiver:
    url: str
    got: list[tuple[str, str, bytes]]
    """GUID, signature, body."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    got: list[tuple[str, str, bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = self.headers
            got.append((headers["X-GitHub-Delivery"], headers["X-Hub-Signature-256"], body))
            self.send_response(202)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield Receiver(f"http://127.0.0.1:{server.server_address[1]}/webhook", got)
        server.shutdown()
        thread.join()


def test_webhooks_are_signed_and_sent(host: FakeGitHub, receiver: Receiver) -> None:
    host.hook_url = receiver.url

    host.comment(host.open_issue("ann", "T"), "bob", "/help")
    host.drain_deliveries()

    (_, _, opened), (guid, signature, body) = receiver.got
    assert json.loads(opened)["action"] == "opened"
    assert json.loads(body)["comment"]["body"] == "/help"
    assert (guid, signature) == (host.deliveries[-1].guid, sign(host.hook_secret, body))
    assert [d.status_code for d in host.deliveries] == [202, 202]


def test_a_redelivery_keeps_its_guid(host: FakeGitHub, receiver: Receiver) -> None:
    host.open_issue("ann", "T")
    (missed,) = host.deliveries
    host.hook_url = receiver.url

    with Asker(host, app_token(host)) as app:
        (listed,) = app.list("/app/hook/deliveries")
        app.ask("POST", f"/app/hook/deliveries/{listed['id']}/attempts")
        host.drain_deliveries()
        again, first = app.list("/app/hook/deliveries")

    assert [guid for guid, _, _ in receiver.got] == [missed.guid]
    assert again["guid"] == first["guid"]
    assert (again["redelivery"], again["status_code"], first["status_code"]) == (True, 202, 0)


@pytest.mark.parametrize(
    ("switch", "order"),
    [
        ({}, "abcd"),
        ({"drop_deliveries_every": 2}, "ac"),
        ({"double_deliveries_every": 2}, "abbcdd"),
        ({"reorder_deliveries": True}, "badc"),
    ],
)
def test_deliveries_get_lost_doubled_and_out_of_order(
    host: FakeGitHub, switch: dict[str, object], order: str
) -> None:
    for name, value in switch.items():
        setattr(host.quirks, name, value)
    made = [Delivery(i, guid, "push", None, {}, b"", 0.0) for i, guid in enumerate("abcd")]

    sent = [one.guid for delivery in made for one in host.hooks.arrange(delivery)]

    assert "".join(sent) == order
