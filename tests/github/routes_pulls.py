"""Pull requests."""

from typing import Literal

from tests.github.asking import Ask, Reply, problem, route
from tests.github.shapes import commit_json, node_id
from tests.github.shapes_tickets import pull_json, whole_pull_json
from tests.github.state import Json, Pull, Ticket
from tests.github.world import RefusedError, World

_REPO = "/repos/{owner}/{repo}"
_PULL = f"{_REPO}/pulls/{{pull_number}}"


def find_pull(ask: Ask) -> tuple[Ticket, Pull]:
    ticket = ask.world.tickets.get(ask.number("pull_number"))
    if ticket is None or ticket.pull is None:
        raise RefusedError(404, "Not Found")
    return ticket, ticket.pull


@route("GET", f"{_REPO}/pulls", "pull_requests:read")
def list_pulls(ask: Ask) -> Reply:
    state = ask.query.get("state", "open")
    owner, colon, branch = ask.query.get("head", "").partition(":")
    base = ask.query.get("base")
    found = []
    for ticket in ask.world.tickets.values():
        pull = ticket.pull
        if pull is None or state not in {"all", ticket.state} or base not in {None, pull.base}:
            continue
        of = pull.fork or ask.world.owner
        # Without an owner before it, GitHub takes no notice of the branch.
        if colon and (of.login.lower(), pull.head) != (owner.lower(), branch):
            continue
        found.append(ticket)
    by = ask.query.get("sort", "created")
    downwards = ask.query.get("direction", "desc" if by == "created" else "asc") == "desc"
    found.sort(
        key=lambda t: (t.updated_at if by == "updated" else t.number, t.number), reverse=downwards
    )
    return ask.page([pull_json(ask.world, t, t.pull) for t in found if t.pull])


@route("POST", f"{_REPO}/pulls", "pull_requests:write")
def open_pull(ask: Ask) -> Reply:
    body = ask.body
    owner, colon, branch = body["head"].partition(":")
    if colon and owner.lower() != ask.world.owner.login.lower():
        raise RefusedError(422, "Validation Failed", [_invalid("head")])
    if body.get("draft") and not ask.world.quirks.knows_drafts:
        words = "Draft pull requests are not supported in this repository."
        raise RefusedError(422, words)
    ticket = ask.world.open_pull(
        ask.user,
        body["title"],
        body.get("body"),
        head=branch if colon else owner,
        base=body["base"],
        draft=body.get("draft", False),
        via_app=ask.via_app,
    )
    assert ticket.pull
    url = f"{ask.world.repo_url}/pulls/{ticket.number}"
    return Reply(201, whole_pull_json(ask.world, ticket, ticket.pull), {"Location": url})


@route("GET", _PULL, "pull_requests:read")
def show_pull(ask: Ask) -> Reply:
    ticket, pull = find_pull(ask)
    pull.looks += 1
    return Reply(200, whole_pull_json(ask.world, ticket, pull))


@route("PATCH", _PULL, "pull_requests:write")
def change_pull(ask: Ask) -> Reply:
    ticket, pull = find_pull(ask)
    change_ticket(ask, ticket)
    base = ask.body.get("base", pull.base)
    if base not in ask.world.git.heads():
        raise RefusedError(422, "Validation Failed", [_invalid("base")])
    pull.base = base
    return Reply(200, whole_pull_json(ask.world, ticket, pull))


def change_ticket(ask: Ask, ticket: Ticket) -> None:
    """Change title, body and state, as a PATCH of an issue or of a pull request says."""
    body = ask.body
    if len(body.get("body") or "") > 65536:
        words = "body is too long (maximum is 65536 characters)"
        error = {"resource": "Issue", "code": "custom", "field": "body", "message": words}
        raise RefusedError(422, "Validation Failed", [error])
    changes: Json = {}
    for name in ("title", "body"):
        if name in body and body[name] != getattr(ticket, name):
            changes[name] = {"from": getattr(ticket, name) or ""}
            setattr(ticket, name, body[name])
    if changes:
        ask.world.touch(ticket)
        if ticket.pull:
            ask.world.announce_pull("edited", ask.user, ticket, changes=changes)
    state: Literal["open", "closed"] = body.get("state", ticket.state)
    ask.world.change_state(ticket, state, ask.user)


@route("GET", f"{_PULL}/files", "pull_requests:read")
def list_files(ask: Ask) -> Reply:
    _, pull = find_pull(ask)
    world = ask.world
    files = [
        {
            "sha": change.blob,
            "filename": change.path,
            "status": change.status,
            "additions": change.additions,
            "deletions": change.deletions,
            "changes": change.additions + change.deletions,
            "blob_url": f"{world.page}/blob/{pull.head_sha}/{change.path}",
            "raw_url": f"{world.page}/raw/{pull.head_sha}/{change.path}",
            "contents_url": f"{world.repo_url}/contents/{change.path}?ref={pull.head_sha}",
        }
        for change in world.git.changes(pull.base_sha, pull.head_sha)
    ]
    return ask.page(files)


@route("GET", f"{_PULL}/reviews", "pull_requests:read")
def list_reviews(ask: Ask) -> Reply:
    find_pull(ask)
    return ask.page([])


@route("GET", f"{_PULL}/requested_reviewers", "pull_requests:read")
def list_reviewers(ask: Ask) -> Reply:
    ticket, pull = find_pull(ask)
    whole = pull_json(ask.world, ticket, pull)
    return Reply(200, {"users": whole["requested_reviewers"], "teams": whole["requested_teams"]})


@route("POST", f"{_PULL}/requested_reviewers", "pull_requests:write")
def ask_for_review(ask: Ask) -> Reply:
    """All or nothing, as at GitHub: one stranger among them refuses them all."""
    ticket, pull = find_pull(ask)
    people, teams = ask.body.get("reviewers", []), ask.body.get("team_reviewers", [])
    known = [ask.world.users.get(login.lower()) for login in people]
    strangers = [u for u in known if u is None or u.role == "none"]
    if strangers or not set(teams) <= ask.world.teams:
        words = "Reviews may only be requested from collaborators. One or more of the users or "
        words += (
            f"teams you specified is not a collaborator of the {ask.world.full_name} repository."
        )
        return problem(422, words)
    if any(user and user.id == ticket.user.id for user in known):
        return problem(422, "Review cannot be requested from pull request author.")
    pull.reviewers += [u for u in known if u is not None and u not in pull.reviewers]
    pull.teams += [team for team in teams if team not in pull.teams]
    ask.world.touch(ticket)
    return Reply(201, pull_json(ask.world, ticket, pull))


@route("PUT", f"{_PULL}/merge", "contents:write")
def merge_pull(ask: Ask) -> Reply:
    ticket, _ = find_pull(ask)
    sha = merge(ask.world, ticket, ask)
    return Reply(200, {"sha": sha, "merged": True, "message": "Pull Request successfully merged"})


def merge(world: World, ticket: Ticket, ask: Ask | None = None, by: str = "") -> str:
    """Merge with a merge commit and return its hash.

    Raises:
        RefusedError: It is not open, or conflicts.
    """
    pull = ticket.pull
    user = ask.user if ask else world.user(by)
    before = world.git.heads()
    if pull is None or ticket.state != "open" or not world.git.merges(
        before[pull.base], pull.head_sha
    ):  # fmt: skip
        raise RefusedError(405, "Pull Request is not mergeable")
    if ask and ask.body.get("sha", pull.head_sha) != pull.head_sha:
        raise RefusedError(409, "Head branch was modified. Review and try the merge again.")
    tree = world.git.merged_tree(before[pull.base], pull.head_sha)
    parents = (before[pull.base], pull.head_sha)
    message = f"Merge pull request #{ticket.number} from {pull.head}"
    at = world.clock()
    sha = world.git.commit_tree(tree, parents, by=user.login, message=message, at=at)
    world.git.point(f"refs/heads/{pull.base}", sha)
    world.moved(before, user)
    return sha


@route("POST", "/graphql", by=("installation", "user"))
def graphql(ask: Ask) -> Reply:
    """Answer the two mutations that REST lacks: to draft, and back."""
    wanted = str(ask.body["query"])
    given = ask.body["variables"]["input"]
    tickets = [
        ticket
        for ticket in ask.world.tickets.values()
        if ticket.pull and node_id("PullRequest", ticket.number) == given["pullRequestId"]
    ]
    draft = "convertPullRequestToDraft" in wanted
    name = "convertPullRequestToDraft" if draft else "markPullRequestReadyForReview"
    refused = not ask.world.quirks.knows_drafts
    if refused or name not in wanted or not tickets or not tickets[0].pull:
        path = [name]
        error = {"type": "NOT_FOUND", "path": path, "message": "Could not resolve to a node"}
        return Reply(200, {"data": {name: None}, "errors": [error]})
    (ticket,) = tickets
    assert ticket.pull
    if ticket.pull.draft != draft:
        ticket.pull.draft = draft
        ask.world.touch(ticket)
        action = "converted_to_draft" if draft else "ready_for_review"
        ask.world.announce_pull(action, ask.user, ticket)
    told = {"clientMutationId": None, "pullRequest": {"isDraft": draft}}
    return Reply(200, {"data": {name: told}})


def _invalid(field: str) -> Json:
    return {"resource": "PullRequest", "field": field, "code": "invalid"}


@route("GET", f"{_PULL}/commits", "pull_requests:read")
def list_commits(ask: Ask) -> Reply:
    _, pull = find_pull(ask)
    commits = ask.world.git.log(pull.head_sha, pull.base_sha)
    return ask.page([commit_json(ask.world, commit) for commit in commits])
