"""The one status comment below an issue or a pull request: how it reads, how it is found. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from daemon.forge import Comment, Person
from daemon.markdown import bullets, code, details, plain, table
from daemon.talk.commands import USAGE, about
from optimizer.store import CommandState

_SHOWN = 10
_STATES = {
    "received": "received",
    "running": "running",
    "done": "done",
    "refused": "refused",
    "failed": "failed",
    "misunderstood": "not understood",
}


@dataclass(frozen=True)
class Row:
    """A command, and what has become of it."""

    at: float
    """When it was received, in seconds since 1970."""
    who: str
    text: str
    """As it was written."""
    state: CommandState
    told: str
    """In plain words."""


@dataclass(frozen=True)
class JobRow:
    """What waits or runs here."""

    name: str
    """By which it can be stopped."""
    what: str
    state: str


def status_marker(number: int) -> str:
    """Return the line by which the status comment of an issue or pull request is found again."""
    return f"<!-- kernelevolve status {number} -->"


def find_own(comments: Iterable[Comment], marker: str, me: Person) -> Comment | None:
    """Return the first comment of one's own with a marker: anybody can write a marker."""
    for comment in comments:
        if comment.author.id == me.id and marker in comment.body.splitlines():
            return comment
    return None


def render_status(
    rows: Sequence[Row], jobs: Sequence[JobRow], *, notices: Sequence[str], is_request: bool
) -> str:
    """Return the status comment, without its marker.

    Args:
        rows: The commands here, the newest first.
        jobs: What waits or runs here.
        notices: Lines of ours that stand above all, in plain words.
        is_request: Whether it stands below a pull request of the bot's.
    """
    parts = ["### kernelevolve: status"]
    parts += [f"> **Note:** {plain(notice)}" for notice in notices if notice]
    if jobs:
        cells = ((code(job.name), plain(job.what), plain(job.state)) for job in jobs)
        parts.append(table(("job", "what", "state"), cells))
    if rows:
        parts.append(
            table(("when (UTC)", "who", "asked", "state", "what came of it"), _cells(rows))
        )
    else:
        parts.append("Nothing was asked here yet.")
    if len(rows) > _SHOWN:
        parts.append(f"{len(rows) - _SHOWN} earlier commands are in the bot's log.")
    return "\n\n".join((*parts, details("Commands", _help(is_request=is_request))))


def _cells(rows: Sequence[Row]) -> Iterable[tuple[str, ...]]:
    for row in rows[:_SHOWN]:
        at = f"{datetime.fromtimestamp(row.at, UTC):%m-%d %H:%M}"
        # A code span pings nobody, whoever's name it is.
        yield at, code(row.who), code(row.text), _STATES[row.state], plain(row.told)


def _help(*, is_request: bool) -> str:
    where = "this pull request" if is_request else "an operator and a hardware, by op= and hw="
    lines = (f"{code(f'/{usage}')}: {plain(about(name))}" for name, usage in USAGE.items())
    return (
        f"A comment asks with a line that begins with one of these; it is about {where}. "
        "Lines in code and quotes are not read, nor are comments that were edited: write a new "
        f"one. {code('/kernel stop')} is the same as {code('/stop')}, where other bots listen "
        f"too.\n\n{bullets(lines)}"
    )
