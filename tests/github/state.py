"""What the fake of GitHub knows: plain records that its routes change."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

Json = dict[str, Any]
Role = Literal["none", "read", "triage", "write", "maintain", "admin"]
ROLES: tuple[Role, ...] = ("none", "read", "triage", "write", "maintain", "admin")


def iso(seconds: float) -> str:
    """Return a time, in seconds since 1970, as GitHub writes it: to the second, with a Z."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class User:
    id: int
    login: str
    kind: Literal["User", "Bot"] = "User"
    role: Role = "none"


@dataclass
class Reaction:
    id: int
    user: User
    content: str
    created_at: float


@dataclass
class Comment:
    id: int
    number: int
    user: User
    body: str
    created_at: float
    updated_at: float
    via_app: bool = False
    reactions: list[Reaction] = field(default_factory=list)


@dataclass
class Pull:
    """What a pull request has beside what an issue has."""

    id: int
    head: str
    base: str
    head_sha: str
    base_sha: str
    draft: bool = False
    fork: User | None = None
    """Whose repository holds the head, where it is not this one."""
    merged_at: float | None = None
    merged_by: User | None = None
    merge_sha: str | None = None
    reviewers: list[User] = field(default_factory=list)
    teams: list[str] = field(default_factory=list)
    looks: int = 0
    """How often it was asked for since its head or base changed."""


@dataclass
class Ticket:
    """An issue; with `pull`, a pull request, which is one too."""

    id: int
    number: int
    user: User
    title: str
    body: str | None
    created_at: float
    updated_at: float
    state: Literal["open", "closed"] = "open"
    labels: list[str] = field(default_factory=list)
    closed_at: float | None = None
    closed_by: User | None = None
    via_app: bool = False
    pull: Pull | None = None
    reactions: list[Reaction] = field(default_factory=list)


@dataclass
class Label:
    id: int
    name: str
    color: str = "ededed"
    description: str | None = ""


@dataclass
class CheckRun:
    id: int
    name: str
    head_sha: str
    status: str
    conclusion: str | None
    external_id: str
    details_url: str | None
    started_at: float
    completed_at: float | None
    output: Json


@dataclass
class CommitStatus:
    id: int
    sha: str
    state: str
    context: str
    description: str | None
    target_url: str | None
    creator: User
    created_at: float


@dataclass
class Run:
    """A run of a workflow."""

    id: int
    workflow: str
    """The file's name."""
    title: str
    branch: str
    sha: str
    inputs: dict[str, str]
    actor: User
    created_at: float
    updated_at: float
    status: Literal["queued", "in_progress", "completed"] = "queued"
    conclusion: str | None = None


@dataclass
class Artifact:
    id: int
    run_id: int
    name: str
    zipped: bytes
    created_at: float
    expired: bool = False


@dataclass
class Delivery:
    """A webhook that GitHub sends; its GUID stays the same when it is sent again."""

    id: int
    guid: str
    event: str
    action: str | None
    headers: dict[str, str]
    body: bytes
    delivered_at: float
    redelivery: bool = False
    status_code: int = 0
    """What the receiver answered; 0 where it was not sent, or not answered."""
