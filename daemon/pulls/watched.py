"""The open pull requests of ours, as the shepherd saw them last: for those who work on kernels."""

from datetime import datetime

from pydantic import Field, ValidationError

from daemon.forge import PullRequest
from daemon.marks import Marks
from operator_registry.record import Record

_MARK = "watched"


class Watched(Record):
    """An open pull request of ours."""

    number: int
    branch: str
    sha: str = Field(pattern=r"^[0-9a-f]{40,64}$")
    """Its head."""
    opened_at: float = 0.0
    """Seconds since 1970; 0 where nobody knows."""


class _All(Record):
    """All of them."""

    requests: tuple[Watched, ...] = ()


def note_watched(memory: Marks, requests: tuple[Watched, ...]) -> None:
    """Remember which there are."""
    memory.mark(_MARK, _All(requests=requests).to_json())


def find_watched(memory: Marks) -> tuple[Watched, ...]:
    """Return which there were at the last look."""
    text = memory.recall(_MARK)
    try:
        return _All.from_json(text).requests if text else ()
    except ValidationError:
        return ()  # of another version of this program; the next look notes it anew


def opened_at(shown: PullRequest) -> float:
    """Return when a pull request was opened, in seconds since 1970."""
    return datetime.fromisoformat(shown.created_at).timestamp()
