"""GitHub's JSON read into the forge's records.

Addresses in it are not followed: a mirror, a proxy or a copy may hold another host's.
"""

import base64
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, get_args

from pydantic import ValidationError

from daemon.forge import (
    Check,
    Comment,
    Conclusion,
    ForgeRefusedError,
    ForgeUnavailableError,
    Issue,
    Permission,
    Person,
    PullRequest,
    State,
    WorkflowRun,
)

# GitHub's JSON comes from `json.loads`: nothing is known of its types before it is read.
Json = Any
_STATUS_OF: Mapping[str, str] = {
    "success": "success",
    "failure": "failure",
    "neutral": "success",  # a commit status knows no neutral, and what is no failure must not block
    "cancelled": "error",
}


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Turn the faults of an answer that is not what it should be into the forge's error.

    Raises:
        ForgeUnavailableError: It can't be read.
    """
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, ValidationError) as error:
        msg = f"GitHub's answer is no {what}: {type(error).__name__}: {error}"
        raise ForgeUnavailableError(msg) from error


def read_person(json: Json) -> Person:
    """Return an account; one that is deleted is GitHub's ghost."""
    with reading("account"):
        if json is None:
            return Person(id=10137, login="ghost")
        return Person(id=json["id"], login=json["login"], is_bot=json.get("type") == "Bot")


def read_pull_request(json: Json, repository: str) -> PullRequest:
    """Return a pull request, of a list or whole."""
    with reading("pull request"):
        state: State = "open" if json["state"] == "open" else "closed"
        if json.get("merged_at") or json.get("merged"):
            state = "merged"
        home = (json["head"].get("repo") or {}).get("full_name", "")
        return PullRequest(
            number=json["number"],
            title=json["title"],
            body=json.get("body") or "",
            head=json["head"]["ref"],
            base=json["base"]["ref"],
            labels=tuple(label["name"] for label in json.get("labels") or ()),
            state=state,
            head_sha=json["head"]["sha"],
            created_at=json["created_at"],
            updated_at=json["updated_at"],
            draft=bool(json.get("draft")),
            author=read_person(json.get("user")),
            from_fork=home.lower() != repository.lower(),
            mergeable=json.get("mergeable") if state == "open" else None,
        )


def read_issue(json: Json) -> Issue:
    """Return an issue."""
    with reading("issue"):
        return Issue(
            number=json["number"],
            title=json["title"],
            body=json.get("body") or "",
            labels=tuple(
                label if isinstance(label, str) else label["name"]
                for label in json.get("labels") or ()
            ),
            state=json["state"],
            author=read_person(json.get("user")),
        )


def read_comment(json: Json) -> Comment:
    """Return a comment."""
    with reading("comment"):
        return Comment(
            id=json["id"],
            number=int(json["issue_url"].rstrip("/").rsplit("/", 1)[1]),
            author=read_person(json.get("user")),
            body=json.get("body") or "",
            created_at=json["created_at"],
            updated_at=json["updated_at"],
            via_app=json.get("performed_via_github_app") is not None,
        )


def read_permission(json: Json) -> Permission:
    """Return what somebody may do; of a company's own role, what it is built on."""
    with reading("permission"):
        known = get_args(Permission)
        for name in (json.get("role_name"), json.get("permission")):
            if name in known:
                found: Permission = name
                return found
    return "none"


def read_check(json: Json) -> Check:
    """Return a check run."""
    with reading("check run"):
        output = json.get("output") or {}
        return Check(
            name=json["name"],
            head_sha=json["head_sha"],
            status=_progress(json["status"]),
            conclusion=_conclusion(json.get("conclusion")),
            title=output.get("title") or "",
            summary=output.get("summary") or "",
            text=output.get("text") or "",
            external_id=json.get("external_id") or "",
        )


def read_status(json: Json, head_sha: str) -> Check:
    """Return a check that stands as a commit status, which holds less."""
    with reading("commit status"):
        states: Mapping[str, Conclusion | None] = {
            "success": "success",
            "failure": "failure",
            "error": "cancelled",
            "pending": None,
        }
        conclusion = states[json["state"]]
        return Check(
            name=json["context"],
            head_sha=head_sha,
            status="in_progress" if conclusion is None else "completed",
            conclusion=conclusion,
            title=json.get("description") or "",
            summary="",
        )


def status_state(check: Check) -> str:
    """Return a commit status's word for how a check stands."""
    return _STATUS_OF[check.conclusion] if check.conclusion else "pending"


def read_run(json: Json) -> WorkflowRun:
    """Return a run of a workflow; its own title holds the tag, where it has one."""
    with reading("workflow run"):
        return WorkflowRun(
            id=json["id"],
            name=json.get("display_title") or json.get("name") or "",
            status=_progress(json["status"]),
            conclusion=json.get("conclusion"),
            url=json["html_url"],
        )


def read_file(json: Json) -> str | None:
    """Return a file's text; None for a folder or a submodule.

    Raises:
        ForgeRefusedError: It is no text, or larger than the megabyte that GitHub hands out.
    """
    if not isinstance(json, dict) or json.get("type") != "file":
        return None
    with reading("file"):
        if json["encoding"] != "base64":
            msg = f"a file is too large: {json['size']} bytes"
            raise ForgeRefusedError(msg)
        content = base64.b64decode(json["content"])
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        msg = "a file is no text"
        raise ForgeRefusedError(msg) from error


def _progress(status: str) -> Any:  # noqa: ANN401 - a literal, which pydantic checks
    """Return one of three for GitHub's seven: what waits for whatever reason is queued."""
    return status if status in {"in_progress", "completed"} else "queued"


def _conclusion(text: str | None) -> Conclusion | None:
    """Return one of ours: what is neither good nor bad by GitHub's own word is neutral."""
    match text:
        case None | "success" | "failure" | "neutral" | "cancelled":
            return text
        case "timed_out" | "startup_failure" | "action_required":
            return "failure"
        case _:
            return "neutral"
