"""Issues, comments, reactions and labels."""

from tests.github.asking import Ask, Reply, problem, route
from tests.github.routes_pulls import change_ticket
from tests.github.shapes import label_json, reaction_json
from tests.github.shapes_tickets import comment_json, issue_json
from tests.github.state import Comment, Label, Ticket, iso
from tests.github.world import LONGEST_BODY, RefusedError

_REPO = "/repos/{owner}/{repo}"
_ISSUE = f"{_REPO}/issues/{{issue_number}}"
_COMMENT = f"{_REPO}/issues/comments/{{comment_id}}"
_READ = ("issues:read", "pull_requests:read")
_WRITE = ("issues:write", "pull_requests:write")
_CONTENTS = ("+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes")


def find_ticket(ask: Ask) -> Ticket:
    ticket = ask.world.tickets.get(ask.number("issue_number"))
    if ticket is None:
        raise RefusedError(404, "Not Found")
    return ticket


def find_comment(ask: Ask) -> Comment:
    comment = ask.world.comments.get(ask.number("comment_id"))
    if comment is None:
        raise RefusedError(404, "Not Found")
    return comment


@route("GET", f"{_REPO}/issues", *_READ)
def list_issues(ask: Ask) -> Reply:
    query = ask.query
    state = query.get("state", "open")
    names = {name.strip().lower() for name in query.get("labels", "").split(",") if name.strip()}
    found = [
        ticket
        for ticket in ask.world.tickets.values()
        if state in {"all", ticket.state}
        and names <= {label.lower() for label in ticket.labels}
        and iso(ticket.updated_at) >= query.get("since", "")
        and query.get("creator", ticket.user.login).lower() == ticket.user.login.lower()
    ]
    by = query.get("sort", "created")
    found.sort(
        key=lambda t: (t.updated_at if by == "updated" else t.number, t.number),
        reverse=query.get("direction", "desc") == "desc",
    )
    return ask.page([issue_json(ask.world, ticket) for ticket in found])


@route("POST", f"{_REPO}/issues", "issues:write")
def open_issue(ask: Ask) -> Reply:
    body = ask.body
    labels = [name if isinstance(name, str) else name["name"] for name in body.get("labels", [])]
    ticket = ask.world.open_issue(
        ask.user, body["title"], body.get("body"), labels=labels, via_app=ask.via_app
    )
    return Reply(201, issue_json(ask.world, ticket))


@route("GET", _ISSUE, *_READ)
def show_issue(ask: Ask) -> Reply:
    return Reply(200, issue_json(ask.world, find_ticket(ask)))


@route("PATCH", _ISSUE, *_WRITE)
def change_issue(ask: Ask) -> Reply:
    ticket = find_ticket(ask)
    change_ticket(ask, ticket)
    if "labels" in ask.body:
        ticket.labels = [ask.world.label(name).name for name in ask.body["labels"]]
    return Reply(200, issue_json(ask.world, ticket))


@route("GET", f"{_REPO}/issues/comments", *_READ)
def list_all_comments(ask: Ask) -> Reply:
    query = ask.query
    found = [c for c in ask.world.comments.values() if iso(c.updated_at) >= query.get("since", "")]
    # GitHub takes no notice of `direction` without `sort`.
    downwards = "sort" in query and query.get("direction") == "desc"
    by_update = query.get("sort") == "updated"
    found.sort(key=lambda c: (c.updated_at if by_update else c.id, c.id), reverse=downwards)
    return ask.page([comment_json(ask.world, comment) for comment in found])


@route("GET", f"{_ISSUE}/comments", *_READ)
def list_comments(ask: Ask) -> Reply:
    ticket = find_ticket(ask)
    found = [
        comment_json(ask.world, comment)
        for comment in ask.world.comments.values()
        if comment.number == ticket.number and iso(comment.updated_at) >= ask.query.get("since", "")
    ]
    return ask.page(found)


@route("POST", f"{_ISSUE}/comments", *_WRITE)
def add_comment(ask: Ask) -> Reply:
    ticket = find_ticket(ask)
    text = _checked(ask)
    comment = ask.world.add_comment(ticket.number, ask.user, text, via_app=ask.via_app)
    shown = comment_json(ask.world, comment)
    return Reply(201, shown, {"Location": shown["url"]})


@route("GET", _COMMENT, *_READ)
def show_comment(ask: Ask) -> Reply:
    return Reply(200, comment_json(ask.world, find_comment(ask)))


@route("PATCH", _COMMENT, *_WRITE)
def edit_comment(ask: Ask) -> Reply:
    comment = find_comment(ask)
    text = _checked(ask)
    if comment.user.id != ask.user.id and ask.world.role(ask.user) in {"none", "read", "triage"}:
        raise RefusedError(403, "Must have admin rights to Repository.")
    change_comment(ask, comment, text)
    return Reply(200, comment_json(ask.world, comment))


def change_comment(ask: Ask, comment: Comment, text: str) -> None:
    changes = {"body": {"from": comment.body}}
    comment.body, comment.updated_at = text, ask.world.clock()
    ask.world.announce_comment("edited", ask.user, comment, changes=changes)


@route("DELETE", _COMMENT, *_WRITE)
def delete_comment(ask: Ask) -> Reply:
    comment = find_comment(ask)
    del ask.world.comments[comment.id]
    ask.world.announce_comment("deleted", ask.user, comment)
    return Reply(204)


@route("GET", f"{_COMMENT}/reactions", *_READ)
def list_reactions(ask: Ask) -> Reply:
    wanted = ask.query.get("content")
    found = [r for r in find_comment(ask).reactions if wanted in {None, r.content}]
    return ask.page([reaction_json(ask.world, reaction) for reaction in found])


@route("POST", f"{_COMMENT}/reactions", *_WRITE)
def react(ask: Ask) -> Reply:
    return _react(ask, find_comment(ask))


@route("POST", f"{_ISSUE}/reactions", *_WRITE)
def react_to_issue(ask: Ask) -> Reply:
    return _react(ask, find_ticket(ask))


def _react(ask: Ask, to: Comment | Ticket) -> Reply:
    content = ask.body["content"]
    if content not in _CONTENTS:
        error = {"resource": "Reaction", "field": "content", "code": "invalid"}
        return problem(422, "Validation Failed", [error])
    reaction, is_new = ask.world.react(to, ask.user, content)
    return Reply(201 if is_new else 200, reaction_json(ask.world, reaction))


@route("DELETE", f"{_COMMENT}/reactions/{{reaction_id}}", *_WRITE)
def unreact(ask: Ask) -> Reply:
    comment = find_comment(ask)
    comment.reactions = [r for r in comment.reactions if r.id != ask.number("reaction_id")]
    return Reply(204)


@route("GET", f"{_ISSUE}/labels", *_READ)
def list_ticket_labels(ask: Ask) -> Reply:
    return ask.page(_labels_of(ask, find_ticket(ask)))


@route("POST", f"{_ISSUE}/labels", *_WRITE)
def add_labels(ask: Ask) -> Reply:
    ticket = find_ticket(ask)
    for name in _names(ask):
        label(ask, ticket, name)
    return Reply(200, _labels_of(ask, ticket))


@route("PUT", f"{_ISSUE}/labels", *_WRITE)
def set_labels(ask: Ask) -> Reply:
    ticket = find_ticket(ask)
    ticket.labels = []
    for name in _names(ask):
        label(ask, ticket, name)
    return Reply(200, _labels_of(ask, ticket))


def label(ask: Ask, ticket: Ticket, name: str) -> None:
    """Put a label on, made if there is none of its name, in capitals or not."""
    found = ask.world.label(name)
    if found.name not in ticket.labels:
        ticket.labels.append(found.name)
        ask.world.touch(ticket)
        if ticket.pull:
            shown = label_json(ask.world, found)
            ask.world.announce_pull("labeled", ask.user, ticket, label=shown)


@route("DELETE", f"{_ISSUE}/labels/{{name}}", *_WRITE)
def take_label(ask: Ask) -> Reply:
    ticket = find_ticket(ask)
    kept = [n for n in ticket.labels if n.lower() != ask.params["name"].lower()]
    if kept == ticket.labels:
        return problem(404, "Label does not exist")
    ticket.labels = kept
    return Reply(200, _labels_of(ask, ticket))


@route("DELETE", f"{_ISSUE}/labels", *_WRITE)
def take_labels(ask: Ask) -> Reply:
    find_ticket(ask).labels = []
    return Reply(204)


@route("GET", f"{_REPO}/labels", *_READ)
def list_labels(ask: Ask) -> Reply:
    return ask.page([label_json(ask.world, known) for known in ask.world.labels.values()])


@route("POST", f"{_REPO}/labels", *_WRITE)
def make_label(ask: Ask) -> Reply:
    body = ask.body
    if body["name"].lower() in ask.world.labels:
        error = {"resource": "Label", "code": "already_exists", "field": "name"}
        return problem(422, "Validation Failed", [error])
    made = ask.world.label(body["name"])
    _paint(made, ask)
    return Reply(201, label_json(ask.world, made))


@route("GET", f"{_REPO}/labels/{{name}}", *_READ)
def show_label(ask: Ask) -> Reply:
    return Reply(200, label_json(ask.world, _find_label(ask)))


@route("PATCH", f"{_REPO}/labels/{{name}}", *_WRITE)
def change_label(ask: Ask) -> Reply:
    found = _find_label(ask)
    _paint(found, ask)
    return Reply(200, label_json(ask.world, found))


def _paint(found: Label, ask: Ask) -> None:
    found.color = ask.body.get("color", found.color)
    found.description = ask.body.get("description", found.description)


def _find_label(ask: Ask) -> Label:
    found = ask.world.labels.get(ask.params["name"].lower())
    if found is None:
        raise RefusedError(404, "Not Found")
    return found


def _labels_of(ask: Ask, ticket: Ticket) -> list[object]:
    return [label_json(ask.world, ask.world.label(name)) for name in ticket.labels]


def _names(ask: Ask) -> list[str]:
    """Return the names in a body that is a list, or an object that holds one."""
    given = ask.json if isinstance(ask.json, list) else ask.body["labels"]
    return [name if isinstance(name, str) else str(name["name"]) for name in given]


def _checked(ask: Ask) -> str:
    text = str(ask.body["body"])
    if not text.strip() or len(text) > LONGEST_BODY:
        words = "body is too long (maximum is 65536 characters)" if text.strip() else "blank"
        error = {"resource": "IssueComment", "code": "unprocessable", "field": "data"}
        raise RefusedError(422, "Validation Failed", [error | {"message": words}])
    return text
