"""Check runs, which only an App may write, and commit statuses."""

from tests.github.asking import Ask, Reply, route
from tests.github.routes_repository import find_sha
from tests.github.shapes import node_id, repository_json, user_json
from tests.github.state import CheckRun, CommitStatus, Json, iso
from tests.github.world import RefusedError, World

_REPO = "/repos/{owner}/{repo}"
_RUN = f"{_REPO}/check-runs/{{check_run_id}}"
_LONGEST = 65535
_MOST_ANNOTATIONS = 50


def check_json(world: World, check: CheckRun) -> Json:
    url = f"{world.repo_url}/check-runs/{check.id}"
    output = {"title": None, "summary": None, "text": None} | check.output
    return {
        "id": check.id,
        "node_id": node_id("CheckRun", check.id),
        "name": check.name,
        "head_sha": check.head_sha,
        "external_id": check.external_id,
        "url": url,
        "html_url": f"{world.page}/runs/{check.id}",
        "details_url": check.details_url or f"{world.page}/runs/{check.id}",
        "status": check.status,
        "conclusion": check.conclusion,
        "started_at": iso(check.started_at),
        "completed_at": None if check.completed_at is None else iso(check.completed_at),
        "output": output | {"annotations_count": 0, "annotations_url": f"{url}/annotations"},
        "check_suite": {"id": int(check.head_sha[:7], 16)},
        "app": world.app_json(),
        "pull_requests": [],
    }


@route("POST", f"{_REPO}/check-runs", "checks:write", by=("installation",))
def make_check(ask: Ask) -> Reply:
    body, now = ask.body, ask.world.clock()
    check = CheckRun(
        next(ask.world.new_id),
        body["name"],
        find_sha(ask, body["head_sha"]),
        status="queued",
        conclusion=None,
        external_id="",
        details_url=None,
        started_at=now,
        completed_at=None,
        output={},
    )
    _change(ask, check)
    ask.world.checks[check.id] = check
    shown = check_json(ask.world, check)
    ask.world.announce("check_run", "created", ask.user, {"check_run": shown})
    return Reply(201, shown)


@route("PATCH", _RUN, "checks:write", by=("installation",))
def change_check(ask: Ask) -> Reply:
    check = _find(ask)
    was = check.status
    _change(ask, check)
    shown = check_json(ask.world, check)
    if check.status == "completed" != was:
        ask.world.announce("check_run", "completed", ask.user, {"check_run": shown})
    return Reply(200, shown)


def _change(ask: Ask, check: CheckRun) -> None:
    body = ask.body
    output = body.get("output", {})
    for name in ("summary", "text"):
        if len(output.get(name) or "") > _LONGEST:
            raise RefusedError(422, f"Invalid request.\n\n{name} exceeds a maximum of {_LONGEST}.")
    if len(output.get("annotations", ())) > _MOST_ANNOTATIONS:
        raise RefusedError(422, "Invalid request.\n\nNo more than 50 annotations are allowed.")
    check.output |= {k: v for k, v in output.items() if k in {"title", "summary", "text"}}
    check.name = body.get("name", check.name)
    check.external_id = body.get("external_id", check.external_id)
    check.details_url = body.get("details_url", check.details_url)
    if "conclusion" in body:
        check.status, check.conclusion = "completed", body["conclusion"]
        check.completed_at = ask.world.clock()
    elif "status" in body:
        if body["status"] == "completed":
            raise RefusedError(422, 'Invalid request.\n\n"conclusion" wasn\'t supplied.')
        check.status, check.conclusion, check.completed_at = body["status"], None, None


@route("GET", _RUN, "checks:read")
def show_check(ask: Ask) -> Reply:
    return Reply(200, check_json(ask.world, _find(ask)))


@route("GET", f"{_REPO}/commits/{{ref}}/check-runs", "checks:read")
def list_checks(ask: Ask) -> Reply:
    """List the newest of each name, unless all are asked for; newest first."""
    sha = find_sha(ask, ask.params["ref"])
    query = ask.query
    found = [c for c in ask.world.checks.values() if c.head_sha == sha]
    if query.get("filter", "latest") == "latest":
        found = list({c.name: c for c in found}.values())
    found = [
        c
        for c in found
        if query.get("check_name", c.name) == c.name
        and query.get("status", c.status) == c.status
        and query.get("app_id", str(ask.world.app_id)) == str(ask.world.app_id)
    ]
    shown, links = ask.cut([check_json(ask.world, c) for c in reversed(found)])
    return Reply(200, {"total_count": len(found), "check_runs": list(shown)}, links)


def _find(ask: Ask) -> CheckRun:
    check = ask.world.checks.get(ask.number("check_run_id"))
    if check is None:
        raise RefusedError(404, "Not Found")
    return check


def _status_json(world: World, status: CommitStatus) -> Json:
    return {
        "url": f"{world.repo_url}/statuses/{status.sha}",
        "avatar_url": f"{world.web}/avatars/{status.creator.id}",
        "id": status.id,
        "node_id": node_id("StatusContext", status.id),
        "state": status.state,
        "description": status.description,
        "target_url": status.target_url,
        "context": status.context,
        "created_at": iso(status.created_at),
        "updated_at": iso(status.created_at),
    }


@route("POST", f"{_REPO}/statuses/{{sha}}", "statuses:write")
def add_status(ask: Ask) -> Reply:
    body = ask.body
    made = CommitStatus(
        next(ask.world.new_id),
        find_sha(ask, ask.params["sha"]),
        body["state"],
        body.get("context", "default"),
        body.get("description"),
        body.get("target_url"),
        ask.user,
        ask.world.clock(),
    )
    ask.world.statuses.append(made)
    creator = {"creator": user_json(ask.world, made.creator)}
    return Reply(201, _status_json(ask.world, made) | creator)


@route("GET", f"{_REPO}/commits/{{ref}}/statuses", "statuses:read")
def list_statuses(ask: Ask) -> Reply:
    sha = find_sha(ask, ask.params["ref"])
    found = [
        _status_json(ask.world, s) | {"creator": user_json(ask.world, s.creator)}
        for s in reversed(ask.world.statuses)
        if s.sha == sha
    ]
    return ask.page(found)


@route("GET", f"{_REPO}/commits/{{ref}}/status", "statuses:read")
def combine_statuses(ask: Ask) -> Reply:
    sha = find_sha(ask, ask.params["ref"])
    latest = {s.context: s for s in ask.world.statuses if s.sha == sha}
    states = {s.state for s in latest.values()}
    worst = next((s for s in ("error", "failure", "pending") if s in states), "success")
    state = {"error": "failure"}.get(worst, worst) if states else "pending"
    shown, links = ask.cut([_status_json(ask.world, s) for s in latest.values()])
    url = f"{ask.world.repo_url}/commits/{sha}"
    body = {
        "state": state,
        "sha": sha,
        "total_count": len(latest),
        "statuses": list(shown),
        "repository": repository_json(ask.world),
        "commit_url": url,
        "url": f"{url}/status",
    }
    return Reply(200, body, links)
