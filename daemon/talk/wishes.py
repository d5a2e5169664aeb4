"""What people asked of a branch or a job, kept as marks until it is done."""

from typing import Literal

from pydantic import ValidationError

from daemon.marks import Marks
from operator_registry.record import Record

WishKind = Literal["rebase", "reopen", "verify"]


class Wish(Record):
    """What a person asked of a branch of ours."""

    by: str
    """A login."""
    at: float
    """Seconds since 1970."""
    sha: str | None = None
    """The commit that the branch had then; where it has another one now, the answer is no."""
    budget_s: float | None = None
    command: int = 0
    """The number of the command in the store."""


class Granted(Record):
    """What came of a wish."""

    well: bool
    told: str
    """In plain words, for the person."""
    command: int = 0
    """That of the wish."""


def wish(marks: Marks, kind: WishKind, branch: str, asked: Wish) -> None:
    """Ask for something; a later wish of the kind takes an earlier one's place."""
    marks.mark(_answer(kind, branch), "")
    marks.mark(f"{kind}/{branch}", asked.to_json())


def find_wish(marks: Marks, kind: WishKind, branch: str) -> Wish | None:
    """Return what is asked of a branch and not answered yet."""
    text = marks.recall(f"{kind}/{branch}")
    try:
        return Wish.from_json(text) if text else None
    except ValidationError:
        return None  # of another version of this program; the command that made it will be told


def answer_wish(marks: Marks, kind: WishKind, branch: str, told: str, *, well: bool) -> None:
    """Note what came of a wish; nothing happens where there is none."""
    if marks.recall(f"{kind}/{branch}"):
        asked = find_wish(marks, kind, branch)
        answer = Granted(well=well, told=told, command=asked.command if asked else 0)
        marks.mark(_answer(kind, branch), answer.to_json())
        marks.mark(f"{kind}/{branch}", "")


def find_answer(marks: Marks, kind: WishKind, branch: str) -> Granted | None:
    """Return what came of the last wish; None where it is not answered."""
    text = marks.recall(_answer(kind, branch))
    return Granted.from_json(text) if text else None


def hold(marks: Marks, branch: str, by: str) -> None:
    """Have a branch left as it is."""
    marks.mark(f"hold/{branch}", by)


def unhold(marks: Marks, branch: str) -> None:
    """Go on with a branch."""
    marks.mark(f"hold/{branch}", "")


def is_held(marks: Marks, branch: str) -> bool:
    """Return whether a branch is to be left as it is."""
    return bool(marks.recall(f"hold/{branch}"))


def stop_job(marks: Marks, key: str, by: str) -> None:
    """Have a job end, whether it waits or runs; `key` is its goal's, or ``verify/BRANCH``."""
    marks.mark(f"stop/{key}", by)


def forget_stop(marks: Marks, key: str) -> None:
    """Let a job of this key run again: for a branch's replays, which all have the same one."""
    marks.mark(f"stop/{key}", "")


def find_stop(marks: Marks, key: str) -> str | None:
    """Return who wants a job to end; None where nobody does."""
    return marks.recall(f"stop/{key}") or None


def _answer(kind: WishKind, branch: str) -> str:
    return f"answer/{kind}/{branch}"
