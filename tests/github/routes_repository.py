"""The repository itself: branches, commits, files, and who may do what in it."""

import base64

from tests.github.asking import Ask, Reply, problem, route
from tests.github.shapes import commit_json, node_id, repository_json, user_json, whole_user_json
from tests.github.state import Json, iso
from tests.github.world import RefusedError

_REPO = "/repos/{owner}/{repo}"
_BIG = 1_000_000
_LEGACY = {"maintain": "write", "triage": "read"}


def find_sha(ask: Ask, revision: str) -> str:
    sha = ask.world.git.find(revision.removeprefix("heads/"))
    if sha is None:
        raise RefusedError(422, f"No commit found for SHA: {revision}")
    return sha


@route("GET", _REPO, "metadata:read", by=("installation", "user", "nobody"))
def show_repository(ask: Ask) -> Reply:
    return Reply(200, repository_json(ask.world))


@route("GET", "/user", by=("user", "installation"))
def show_me(ask: Ask) -> Reply:
    if ask.caller.kind == "installation":
        return problem(403, "Resource not accessible by integration")
    return Reply(200, whole_user_json(ask.world, ask.user))


@route("GET", "/users/{username}", by=("user", "installation", "nobody"))
def show_user(ask: Ask) -> Reply:
    found = ask.world.users.get(ask.params["username"].lower())
    if found is None:
        return problem(404, "Not Found")
    return Reply(200, whole_user_json(ask.world, found))


@route("GET", f"{_REPO}/collaborators/{{username}}/permission", "metadata:read")
def show_permission(ask: Ask) -> Reply:
    """Tell it in GitHub's two ways: `permission` knows neither maintain nor triage."""
    found = ask.world.users.get(ask.params["username"].lower())
    if found is None:
        return problem(404, f"{ask.params['username']} is not a user")
    role = ask.world.role(found)
    body: Json = {
        "permission": _LEGACY.get(role, role),
        "role_name": "" if role == "none" else role,
        "user": user_json(ask.world, found) | {"role_name": role},
    }
    return Reply(200, body)


@route("GET", f"{_REPO}/branches", "contents:read")
def list_branches(ask: Ask) -> Reply:
    found = [
        {
            "name": name,
            "commit": {"sha": sha, "url": f"{ask.world.repo_url}/commits/{sha}"},
            "protected": name in ask.world.protected,
        }
        for name, sha in sorted(ask.world.git.heads().items())
    ]
    return ask.page(found)


@route("GET", f"{_REPO}/branches/{{branch}}", "contents:read")
def show_branch(ask: Ask) -> Reply:
    world, name = ask.world, ask.params["branch"]
    sha = world.git.heads().get(name)
    if sha is None:
        return problem(404, "Branch not found")
    url = f"{world.repo_url}/branches/{name}"
    body = {
        "name": name,
        "commit": commit_json(world, world.git.show(sha)),
        "_links": {"html": f"{world.page}/tree/{name}", "self": url},
        "protected": name in world.protected,
        "protection": {"enabled": name in world.protected},
        "protection_url": f"{url}/protection",
    }
    return Reply(200, body)


@route("GET", f"{_REPO}/branches/{{branch}}/protection", "administration:read")
def show_protection(ask: Ask) -> Reply:
    if ask.params["branch"] not in ask.world.protected:
        return problem(404, "Branch not protected")
    url = f"{ask.world.repo_url}/branches/{ask.params['branch']}/protection"
    return Reply(200, {"url": url, "enforce_admins": {"url": f"{url}/admins", "enabled": False}})


@route("GET", f"{_REPO}/rules/branches/{{branch}}", "metadata:read")
def list_rules(ask: Ask) -> Reply:
    rules: list[object] = []
    if ask.params["branch"] in ask.world.protected:
        source = {
            "ruleset_source_type": "Repository",
            "ruleset_source": ask.world.full_name,
            "ruleset_id": 1,
        }
        rules = [{"type": "pull_request", **source}, {"type": "non_fast_forward", **source}]
    return ask.page(rules)


def _ref_json(ask: Ask, branch: str, sha: str) -> Json:
    git_url = f"{ask.world.repo_url}/git"
    return {
        "ref": f"refs/heads/{branch}",
        "node_id": node_id("Ref", int(sha[:8], 16)),
        "url": f"{git_url}/refs/heads/{branch}",
        "object": {"type": "commit", "sha": sha, "url": f"{git_url}/commits/{sha}"},
    }


@route("GET", f"{_REPO}/git/ref/{{ref}}", "contents:read")
def show_ref(ask: Ask) -> Reply:
    branch = ask.params["ref"].removeprefix("heads/")
    sha = ask.world.git.heads().get(branch)
    return problem(404, "Not Found") if sha is None else Reply(200, _ref_json(ask, branch, sha))


@route("GET", f"{_REPO}/git/matching-refs/{{ref}}", "contents:read")
def list_refs(ask: Ask) -> Reply:
    start = ask.params["ref"].removeprefix("heads/")
    heads = sorted(ask.world.git.heads().items())
    return ask.page([_ref_json(ask, name, sha) for name, sha in heads if name.startswith(start)])


@route("POST", f"{_REPO}/git/refs", "contents:write")
def make_ref(ask: Ask) -> Reply:
    branch = ask.body["ref"].removeprefix("refs/heads/")
    before = ask.world.git.heads()
    sha = ask.world.git.find(ask.body["sha"])
    if sha is None:
        return problem(422, "Object does not exist")
    if branch in before:
        return problem(422, "Reference already exists")
    ask.world.git.point(f"refs/heads/{branch}", sha)
    ask.world.moved(before, ask.user)
    return Reply(201, _ref_json(ask, branch, sha))


@route("DELETE", f"{_REPO}/git/refs/{{ref}}", "contents:write")
def delete_ref(ask: Ask) -> Reply:
    branch = ask.params["ref"].removeprefix("heads/")
    before = ask.world.git.heads()
    if branch not in before:
        return problem(422, "Reference does not exist")
    if branch in ask.world.protected or branch == "main":
        return problem(422, "Cannot delete this protected branch")
    ask.world.git.point(f"refs/heads/{branch}", None)
    ask.world.moved(before, ask.user)
    return Reply(204)


@route("GET", f"{_REPO}/commits", "contents:read")
def list_commits(ask: Ask) -> Reply:
    sha = find_sha(ask, ask.query.get("sha", "main"))
    commits = ask.world.git.log(sha)
    return ask.page([commit_json(ask.world, commit) for commit in reversed(commits)])


@route("GET", f"{_REPO}/commits/{{ref}}", "contents:read")
def show_commit(ask: Ask) -> Reply:
    commit = ask.world.git.show(find_sha(ask, ask.params["ref"]))
    return Reply(200, commit_json(ask.world, commit))


@route("GET", f"{_REPO}/compare/{{basehead}}", "contents:read")
def compare(ask: Ask) -> Reply:
    world = ask.world
    left, dots, right = ask.params["basehead"].partition("...")
    old, new = world.git.find(left), world.git.find(right)
    if not dots or old is None or new is None:
        return problem(404, "Not Found")
    middle = world.git.merge_base(old, new)
    if middle is None:
        return problem(404, f"No common ancestor between {left} and {right}.")
    ahead, behind = world.git.log(new, old), world.git.log(old, new)
    status = {(0, 0): "identical", (1, 0): "ahead", (0, 1): "behind"}
    url = f"{world.repo_url}/compare/{ask.params['basehead']}"
    page = f"{world.page}/compare/{ask.params['basehead']}"
    shown, links = ask.cut([commit_json(world, commit) for commit in ahead])
    body = {
        "url": url,
        "html_url": page,
        "permalink_url": page,
        "diff_url": f"{page}.diff",
        "patch_url": f"{page}.patch",
        "base_commit": commit_json(world, world.git.show(old)),
        "merge_base_commit": commit_json(world, world.git.show(middle)),
        "status": status.get((min(len(ahead), 1), min(len(behind), 1)), "diverged"),
        "ahead_by": len(ahead),
        "behind_by": len(behind),
        "total_commits": len(ahead),
        "commits": list(shown),
        "files": [],
    }
    return Reply(200, body, links)


@route("GET", f"{_REPO}/contents/{{path}}", "contents:read")
def show_contents(ask: Ask) -> Reply:
    world, path = ask.world, ask.params["path"]
    ref = ask.query.get("ref", "main")
    sha = world.git.find(ref.removeprefix("refs/heads/"))
    if sha is None:
        return problem(404, f"No commit found for the ref {ref}")
    content = world.git.read(sha, path)
    if content is None:
        names = world.git.names(sha, path)
        return (
            Reply(200, [_entry(ask, sha, path, n) for n in names])
            if names
            else problem(404, "Not Found")
        )
    if "raw" in ask.headers.get("accept", ""):
        return Reply(200, content, {"Content-Type": "application/vnd.github.raw+json"})
    entry = _entry(ask, sha, path, ("blob", world.git.blob_of(sha, path), ""), size=len(content))
    small = len(content) <= _BIG
    text = base64.encodebytes(content).decode() if small else ""
    return Reply(200, entry | {"content": text, "encoding": "base64" if small else "none"})


def _entry(ask: Ask, sha: str, folder: str, item: tuple[str, str, str], *, size: int = 0) -> Json:
    kind, blob, name = item
    path = f"{folder}/{name}" if name else folder
    url = f"{ask.world.repo_url}/contents/{path}?ref={sha}"
    page = f"{ask.world.page}/blob/{sha}/{path}"
    git_url = f"{ask.world.repo_url}/git/blobs/{blob}"
    return {
        "name": path.rpartition("/")[2],
        "path": path,
        "sha": blob,
        "size": size,
        "type": "file" if kind == "blob" else "dir",
        "url": url,
        "html_url": page,
        "git_url": git_url,
        "download_url": f"{ask.world.page}/raw/{sha}/{path}",
        "_links": {"self": url, "git": git_url, "html": page},
    }


@route("GET", "/rate_limit", by=("installation", "user", "nobody"))
def show_limits(ask: Ask) -> Reply:
    limit = ask.world.quirks.requests_per_hour
    reset = int(ask.world.clock()) + 3600
    rate = {"limit": limit, "used": 0, "remaining": limit, "reset": reset}
    return Reply(200, {"resources": {"core": rate, "search": rate}, "rate": rate})


__all__ = ["find_sha", "iso"]
