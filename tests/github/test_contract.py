"""The fake of GitHub is held to GitHub's own description, and so is whoever asks it."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.github.asker import Asker, app_token
from tests.github.asking import ROUTES, Ask, Reply, find_route
from tests.github.contract import (
    cut,
    find_faults_of_delivery,
    find_violations,
    is_at_hand,
    load_description,
)
from tests.github.fake import FakeGitHub

WORKFLOW = """\
name: search
run-name: search ${{ inputs.tag }}
on:
  workflow_dispatch:
    inputs:
      tag: {required: true, type: string}
"""


@pytest.fixture
def host(tmp_path: Path) -> Iterator[FakeGitHub]:
    if not is_at_hand():
        pytest.skip("npm is not installed: it brings GitHub's description of its API")
    files = {".github/workflows/search.yml": WORKFLOW, "README.md": "# kernels\n"}
    with FakeGitHub(tmp_path, files=files) as host:
        yield host


@pytest.fixture
def asker(host: FakeGitHub) -> Iterator[Asker]:
    host.world.permissions["administration"] = "read"
    with Asker(host, host.installation_token()) as asker:
        yield asker


def see_repository(asker: Asker, sha: str) -> None:
    asker.get(":")
    for path in (
        "/users/octo", "/rate_limit", "/installation/repositories", ":/branches/main",
        ":/branches/main/protection", ":/git/ref/heads/main", f":/commits/{sha}",
        ":/compare/main...work", ":/contents/README.md", ":/contents/.github",
        ":/collaborators/octo/permission",
    ):  # fmt: skip
        assert asker.ask("GET", path).status_code == 200, path
    for path in (":/branches", ":/rules/branches/main", ":/git/matching-refs/heads/m", ":/commits"):
        assert asker.list(path), path
    ref = {"ref": "refs/heads/other", "sha": sha}
    assert asker.ask("POST", ":/git/refs", ref).status_code == 201
    assert asker.ask("DELETE", ":/git/refs/heads/other").status_code == 204
    assert asker.ask("GET", "/user").status_code == 403
    with Asker(asker.host, asker.host.make_token("octo")) as person:
        person.get("/user")


def talk(asker: Asker) -> None:
    made = asker.ask("POST", ":/issues", {"title": "T", "body": "B", "labels": ["a"]}).json()
    issue = f":/issues/{made['number']}"
    asker.get(issue)
    asker.ask("PATCH", issue, {"title": "U", "labels": ["a", "b"]})
    comment = asker.ask("POST", f"{issue}/comments", {"body": "hello"}).json()
    one = f":/issues/comments/{comment['id']}"
    asker.get(one)
    asker.ask("PATCH", one, {"body": "hello again"})
    reaction = asker.ask("POST", f"{one}/reactions", {"content": "eyes"}).json()
    asker.ask("POST", f"{issue}/reactions", {"content": "+1"})
    assert asker.list(f"{one}/reactions")
    assert asker.list(":/issues?labels=a&state=all")
    assert asker.list(":/issues/comments?sort=updated&direction=asc&per_page=2")
    assert asker.list(f"{issue}/comments")
    assert asker.ask("DELETE", f"{one}/reactions/{reaction['id']}").status_code == 204
    assert asker.ask("DELETE", one).status_code == 204
    asker.ask("POST", ":/labels", {"name": "fast", "color": "00ff00", "description": "quick"})
    asker.get(":/labels/fast")
    asker.ask("PATCH", ":/labels/fast", {"color": "00ff01"})
    assert asker.list(":/labels")
    asker.ask("POST", f"{issue}/labels", {"labels": ["fast"]})
    asker.ask("PUT", f"{issue}/labels", {"labels": ["fast", "b"]})
    assert asker.list(f"{issue}/labels")
    asker.ask("DELETE", f"{issue}/labels/b")
    assert asker.ask("DELETE", f"{issue}/labels").status_code == 204


def review(asker: Asker, sha: str) -> None:
    asker.host.set_role("ann", "write")
    asker.host.world.teams.add("kernels")
    draft = {"title": "T", "body": "B", "head": "work", "base": "main", "draft": True}
    made = asker.ask("POST", ":/pulls", draft).json()
    pull = f":/pulls/{made['number']}"
    asker.get(pull)
    asker.ask("PATCH", pull, {"title": "U"})
    asker.ask("PATCH", pull, {"state": "closed"})
    asker.ask("PATCH", pull, {"state": "open"})
    assert asker.list(":/pulls?state=all&head=octo:work&base=main&sort=created&direction=desc")
    assert asker.list(f"{pull}/files")
    assert asker.list(f"{pull}/commits")
    assert asker.list(f"{pull}/reviews") == []
    wanted = {"reviewers": ["ann"], "team_reviewers": ["kernels"]}
    assert asker.ask("POST", f"{pull}/requested_reviewers", wanted).status_code == 201
    asker.get(f"{pull}/requested_reviewers")
    mutation = "mutation($input: X!) { markPullRequestReadyForReview(input: $input) { x } }"
    given = {"query": mutation, "variables": {"input": {"pullRequestId": made["node_id"]}}}
    assert asker.ask("POST", "/graphql", given).status_code == 200
    check(asker, sha)
    assert asker.ask("PUT", f"{pull}/merge", {"merge_method": "merge"}).status_code == 200
    asker.get(pull)


def check(asker: Asker, sha: str) -> None:
    output = {"title": "t", "summary": "s"}
    queued = {"name": "verify", "head_sha": sha, "status": "queued", "output": output}
    made = asker.ask("POST", ":/check-runs", queued).json()
    done = {"status": "completed", "conclusion": "success", "output": output | {"text": "x"}}
    asker.ask("PATCH", f":/check-runs/{made['id']}", done)
    asker.get(f":/check-runs/{made['id']}")
    assert asker.get(f":/commits/{sha}/check-runs?check_name=verify")["total_count"] == 1
    status = {"state": "pending", "context": "verify", "description": "d"}
    assert asker.ask("POST", f":/statuses/{sha}", status).status_code == 201
    assert asker.list(f":/commits/{sha}/statuses")
    asker.get(f":/commits/{sha}/status")


def dispatch(asker: Asker) -> None:
    asker.get(":/actions/workflows")
    asker.get(":/actions/workflows/search.yml")
    wanted = {"ref": "main", "inputs": {"tag": "abc"}}
    path = ":/actions/workflows/search.yml/dispatches"
    assert asker.ask("POST", path, wanted).status_code == 204
    assert asker.ask("POST", path, wanted).status_code == 204
    assert asker.ask("POST", path, wanted).status_code == 204
    runs = asker.get(":/actions/workflows/search.yml/runs?per_page=50")["workflow_runs"]
    asker.get(":/actions/runs?event=workflow_dispatch")
    first, second, third = (f":/actions/runs/{run['id']}" for run in runs)
    assert asker.get(first)["display_title"] == "search abc"
    assert asker.ask("POST", f"{first}/cancel").status_code == 202
    assert asker.ask("POST", f"{second}/force-cancel").status_code == 202
    asker.host.start_run(runs[2]["id"])
    asker.host.end_run(runs[2]["id"], "success", {"result": {"out.json": b"{}"}})
    (artefact,) = asker.get(f"{third}/artifacts?name=result")["artifacts"]
    assert asker.ask("GET", f":/actions/artifacts/{artefact['id']}/zip").status_code == 302


def see_app(host: FakeGitHub) -> None:
    with Asker(host, app_token(host)) as app:
        app.get("/app")
        assert app.list("/app/installations")
        here = f"/app/installations/{host.installation_id}"
        app.get(here)
        app.get(":/installation")
        wanted = {"permissions": {"contents": "read"}}
        assert app.ask("POST", f"{here}/access_tokens", wanted).status_code == 201
        app.get("/app/hook/config")
        newest, *_ = app.list("/app/hook/deliveries?per_page=5")
        app.get(f"/app/hook/deliveries/{newest['id']}")
        assert app.ask("POST", f"/app/hook/deliveries/{newest['id']}/attempts").status_code == 202


def test_each_route_answers_as_github_describes_it(host: FakeGitHub, asker: Asker) -> None:
    host.world.protected.add("main")
    sha = host.push("work", {"a.txt": "a"}, "octo")

    see_repository(asker, sha)
    talk(asker)
    review(asker, sha)
    dispatch(asker)
    see_app(host)

    good = {_template(r.method, r.path) for r in host.requests if r.done}
    assert {(r.method, r.template) for r in ROUTES} - good == set()
    assert host.violations == []


def _template(method: str, path: str) -> tuple[str, str]:
    found = find_route(method, path)
    return (method, found[0].template) if found else (method, path)


def test_errors_are_as_github_describes_them(host: FakeGitHub, asker: Asker) -> None:
    asker.ask("GET", ":/pulls/99")
    asker.ask("POST", ":/pulls", {"title": "T", "head": "nowhere", "base": "main"})
    asker.ask("POST", ":/labels", {"name": "a"})
    asker.ask("POST", ":/labels", {"name": "a"})

    assert {r.status for r in host.requests if not r.done} == {404, 422}
    assert host.violations == []


@pytest.mark.parametrize(
    ("path", "body", "told"),
    [
        (":/issues", {"body": "no title"}, "title"),
        (":/issues/1/comments", {"body": "x", "colour": "red"}, "no field colour"),
        (":/issues/1/comments", {"body": 3}, "body"),
        (":/issues/1/comments?page=2", {"body": "x"}, "no parameter page"),
        (":/check-runs", {"name": "n", "head_sha": "s", "status": "sleeping"}, "sleeping"),
    ],
)
def test_a_bad_request_is_a_violation(
    host: FakeGitHub, asker: Asker, path: str, body: object, told: str
) -> None:
    host.open_issue("ann", "T")

    asker.ask("POST", path, body)

    assert told in "".join(host.violations)
    host.violations.clear()


def test_a_bad_answer_is_a_violation(host: FakeGitHub, asker: Asker) -> None:
    host.open_issue("ann", "T")
    found = find_route("GET", "/repos/octo/kernels/issues/1")
    assert found
    shown = asker.get(":/issues/1")
    ask = Ask("GET", "/repos/octo/kernels/issues/1", {}, {}, b"", host.world)

    assert find_violations(found[0], ask, Reply(200, shown)) == []
    assert find_violations(found[0], ask, Reply(200, shown | {"number": "one"}))
    assert find_violations(found[0], ask, Reply(200, {k: shown[k] for k in shown if k != "user"}))
    assert find_violations(found[0], ask, Reply(202, shown))


def test_a_violation_fails_the_test_that_made_it(tmp_path: Path) -> None:
    if not is_at_hand():
        pytest.skip("npm is not installed: it brings GitHub's description of its API")

    with (
        pytest.raises(AssertionError, match="title"),
        FakeGitHub(tmp_path) as host,
        Asker(host, host.installation_token()) as asker,
    ):
        asker.ask("POST", ":/issues", {})


def test_the_cut_holds_all_that_it_refers_to(host: FakeGitHub) -> None:
    described = cut(ROUTES)

    assert len(described["paths"]) < 80 < len(load_description().whole["paths"])
    text = str(described)
    for kind, parts in load_description().whole["components"].items():
        for name in parts:
            if f"'#/components/{kind}/{name}'" in text:
                assert name in described["components"][kind]


def test_a_bad_webhook_is_a_violation(host: FakeGitHub) -> None:
    host.open_issue("ann", "T")
    delivery = host.deliveries[-1]
    payload = json.loads(delivery.body)

    assert find_faults_of_delivery(delivery) == []
    for name in ("issue", "sender", "repository"):
        lacking = json.dumps({k: v for k, v in payload.items() if k != name}).encode()
        assert name in "".join(find_faults_of_delivery(replace(delivery, body=lacking)))
    assert find_faults_of_delivery(replace(delivery, action="exploded"))
