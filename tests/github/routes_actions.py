"""Workflows, their runs and what these leave behind."""

import io
import re
import zipfile
from collections.abc import Mapping

import yaml

from tests.github.asking import Ask, Reply, problem, route
from tests.github.shapes import node_id, repository_json, user_json
from tests.github.state import Artifact, Json, Run, iso
from tests.github.world import RefusedError, World

_REPO = "/repos/{owner}/{repo}"
_FOLDER = ".github/workflows"
_RUN = f"{_REPO}/actions/runs/{{run_id}}"
_WORKFLOW = f"{_REPO}/actions/workflows/{{workflow_id}}"
_KEPT_S = 90 * 86400


def _workflow_id(file: str) -> int:
    return 1 + sum(file.encode())


def _workflow_json(world: World, file: str) -> Json:
    number = _workflow_id(file)
    return {
        "id": number,
        "node_id": node_id("Workflow", number),
        "name": file.rpartition(".")[0],
        "path": f"{_FOLDER}/{file}",
        "state": "active",
        "created_at": iso(world.born),
        "updated_at": iso(world.born),
        "url": f"{world.repo_url}/actions/workflows/{number}",
        "html_url": f"{world.page}/blob/main/{_FOLDER}/{file}",
        "badge_url": f"{world.page}/workflows/{file}/badge.svg",
    }


def _files(world: World) -> list[str]:
    head = world.git.heads().get("main")
    names = () if head is None else world.git.names(head, _FOLDER)
    return [name for _, _, name in names if name.endswith((".yml", ".yaml"))]


def _find_workflow(ask: Ask) -> str:
    wanted = ask.params["workflow_id"]
    for file in _files(ask.world):
        if wanted in {file, str(_workflow_id(file))}:
            return file
    raise RefusedError(404, "Not Found")


def run_json(world: World, run: Run) -> Json:
    url = f"{world.repo_url}/actions/runs/{run.id}"
    commit = world.git.show(run.sha)
    repository = repository_json(world)
    number = _workflow_id(run.workflow)
    person = {"name": commit.author, "email": commit.email}
    actor = user_json(world, run.actor)
    return {
        "id": run.id,
        "node_id": node_id("WorkflowRun", run.id),
        "name": run.workflow.rpartition(".")[0],
        "display_title": run.title,
        "head_branch": run.branch,
        "head_sha": run.sha,
        "path": f"{_FOLDER}/{run.workflow}",
        "run_number": run.id,
        "run_attempt": 1,
        "event": "workflow_dispatch",
        "status": run.status,
        "conclusion": run.conclusion,
        "workflow_id": number,
        "check_suite_id": run.id,
        "check_suite_node_id": node_id("CheckSuite", run.id),
        "url": url,
        "html_url": f"{world.page}/actions/runs/{run.id}",
        "pull_requests": [],
        "created_at": iso(run.created_at),
        "updated_at": iso(run.updated_at),
        "run_started_at": iso(run.created_at),
        "actor": actor,
        "triggering_actor": actor,
        "jobs_url": f"{url}/jobs",
        "logs_url": f"{url}/logs",
        "check_suite_url": f"{world.repo_url}/check-suites/{run.id}",
        "artifacts_url": f"{url}/artifacts",
        "cancel_url": f"{url}/cancel",
        "rerun_url": f"{url}/rerun",
        "previous_attempt_url": None,
        "workflow_url": f"{world.repo_url}/actions/workflows/{number}",
        "head_commit": {
            "id": commit.sha,
            "tree_id": commit.tree,
            "message": commit.message,
            "timestamp": commit.date,
            "author": person,
            "committer": person,
        },
        "repository": repository,
        "head_repository": repository,
    }


@route("GET", f"{_REPO}/actions/workflows", "actions:read")
def list_workflows(ask: Ask) -> Reply:
    found = [_workflow_json(ask.world, file) for file in _files(ask.world)]
    shown, links = ask.cut(found)
    return Reply(200, {"total_count": len(found), "workflows": list(shown)}, links)


@route("GET", _WORKFLOW, "actions:read")
def show_workflow(ask: Ask) -> Reply:
    return Reply(200, _workflow_json(ask.world, _find_workflow(ask)))


@route("POST", f"{_WORKFLOW}/dispatches", "actions:write")
def dispatch(ask: Ask) -> Reply:
    """Start a run; GitHub does not say which."""
    file, world = _find_workflow(ask), ask.world
    branch = ask.body["ref"].removeprefix("refs/heads/")
    sha = world.git.heads().get(branch)
    if sha is None:
        return problem(422, f"No ref found for: {branch}")
    text = world.git.read(sha, f"{_FOLDER}/{file}") or b"{}"
    workflow = yaml.safe_load(text)
    # `on` without quotes is YAML 1.1's word for true.
    triggers = workflow.get("on", workflow.get(True))
    if "workflow_dispatch" not in triggers:
        return problem(422, "Workflow does not have 'workflow_dispatch' trigger")
    given = {name: str(value) for name, value in ask.body.get("inputs", {}).items()}
    known = ((triggers["workflow_dispatch"] if isinstance(triggers, dict) else {}) or {}).get(
        "inputs", {}
    )
    if strange := sorted(set(given) - set(known)):
        return problem(422, f"Unexpected inputs provided: {strange}")
    for name, said in known.items():
        if said.get("required") and "default" not in said and name not in given:
            return problem(422, f"Required input '{name}' not provided")
    inputs = {name: str(said.get("default", "")) for name, said in known.items()} | given
    title = re.sub(
        r"\$\{\{\s*(?:github\.event\.)?inputs\.([\w-]+)\s*\}\}",
        lambda match: inputs.get(match[1], ""),
        str(workflow.get("run-name", workflow.get("name", file))),
    )
    now = world.clock()
    run = Run(next(world.new_id), file, title, branch, sha, inputs, ask.user, now, now)
    world.runs[run.id] = run
    announce_run(world, "requested", run)
    return Reply(204)


@route("GET", f"{_WORKFLOW}/runs", "actions:read")
def list_runs_of(ask: Ask) -> Reply:
    file = _find_workflow(ask)
    return _page_of_runs(ask, [r for r in ask.world.runs.values() if r.workflow == file])


@route("GET", f"{_REPO}/actions/runs", "actions:read")
def list_runs(ask: Ask) -> Reply:
    return _page_of_runs(ask, list(ask.world.runs.values()))


def _page_of_runs(ask: Ask, runs: list[Run]) -> Reply:
    query = ask.query
    found = [
        r
        for r in reversed(runs)
        if query.get("status", r.status) in {r.status, r.conclusion}
        and query.get("branch", r.branch) == r.branch
        and query.get("event", "workflow_dispatch") == "workflow_dispatch"
    ]
    shown, links = ask.cut([run_json(ask.world, r) for r in found])
    return Reply(200, {"total_count": len(found), "workflow_runs": list(shown)}, links)


def _find_run(ask: Ask) -> Run:
    run = ask.world.runs.get(ask.number("run_id"))
    if run is None:
        raise RefusedError(404, "Not Found")
    return run


@route("GET", _RUN, "actions:read")
def show_run(ask: Ask) -> Reply:
    return Reply(200, run_json(ask.world, _find_run(ask)))


@route("POST", f"{_RUN}/cancel", "actions:write")
def cancel_run(ask: Ask) -> Reply:
    return _cancel(ask)


@route("POST", f"{_RUN}/force-cancel", "actions:write")
def force_cancel_run(ask: Ask) -> Reply:
    return _cancel(ask)


def _cancel(ask: Ask) -> Reply:
    run = _find_run(ask)
    if run.status == "completed":
        return problem(409, "Cannot cancel a workflow run that is completed.")
    end_run(ask.world, run, "cancelled")
    return Reply(202, {})


def end_run(
    world: World, run: Run, conclusion: str, artifacts: Mapping[str, Mapping[str, bytes]] = {}
) -> None:  # fmt: skip
    """End a run; each artefact of it holds files by name."""
    run.status, run.conclusion, run.updated_at = "completed", conclusion, world.clock()
    for name, files in artifacts.items():
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for file, content in files.items():
                archive.writestr(file, content)
        number = next(world.new_id)
        made = Artifact(number, run.id, name, packed.getvalue(), world.clock())
        world.artifacts[number] = made
    announce_run(world, "completed", run)


def announce_run(world: World, action: str, run: Run) -> None:
    payload = {
        "workflow_run": run_json(world, run),
        "workflow": _workflow_json(world, run.workflow),
    }
    world.announce("workflow_run", action, run.actor, payload)


def _artifact_json(world: World, artifact: Artifact) -> Json:
    url = f"{world.repo_url}/actions/artifacts/{artifact.id}"
    run = world.runs[artifact.run_id]
    return {
        "id": artifact.id,
        "node_id": node_id("Artifact", artifact.id),
        "name": artifact.name,
        "size_in_bytes": len(artifact.zipped),
        "url": url,
        "archive_download_url": f"{url}/zip",
        "expired": artifact.expired,
        "created_at": iso(artifact.created_at),
        "updated_at": iso(artifact.created_at),
        "expires_at": iso(artifact.created_at + _KEPT_S),
        "workflow_run": {
            "id": run.id,
            "repository_id": repository_json(world)["id"],
            "head_repository_id": repository_json(world)["id"],
            "head_branch": run.branch,
            "head_sha": run.sha,
        },
    }


@route("GET", f"{_RUN}/artifacts", "actions:read")
def list_artifacts(ask: Ask) -> Reply:
    run, name = _find_run(ask), ask.query.get("name")
    found = [
        _artifact_json(ask.world, artifact)
        for artifact in ask.world.artifacts.values()
        if artifact.run_id == run.id and name in {None, artifact.name}
    ]
    shown, links = ask.cut(found)
    return Reply(200, {"total_count": len(found), "artifacts": list(shown)}, links)


@route("GET", f"{_REPO}/actions/artifacts/{{artifact_id}}/{{archive_format}}", "actions:read")
def download(ask: Ask) -> Reply:
    """Send on to where the archive lies: another place, where our token must not be shown."""
    artifact = ask.world.artifacts.get(ask.number("artifact_id"))
    if artifact is None:
        return problem(404, "Not Found")
    if artifact.expired:
        return problem(410, "Artifact has expired")
    where = f"{ask.world.base}/blobs/{artifact.id}?sig={node_id('Artifact', artifact.id)}"
    return Reply(302, None, {"Location": where})
