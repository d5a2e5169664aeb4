"""The dashboard: what an issue says of all that the bot does, and what its checkboxes ask (pure).

An issue's text can be changed by whoever may write to the repository, and by nobody else: a tick
in it is thus asked for by somebody with that permission, though nobody says by whom.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from daemon.forge import PullRequest
from daemon.markdown import bullets, code, details, plain, table
from daemon.report import End
from daemon.status import Ended, Waiting
from optimizer.spending import Spending

TITLE = "kernelevolve: what is searched, proposed and held back"
_MARKER = re.compile(r"\A<!-- kernelevolve-dashboard (\d{1,9}) -->")
_TICK = re.compile(
    r"^ {0,3}[-*+] \[[xX]\] <!-- kernelevolve:(search|reopen) "
    r"([a-z][a-z0-9_]{0,63}) ([a-z0-9][a-z0-9._-]{0,63}) -->",
    re.MULTILINE,
)
_MOST_TICKS = 20
"""At one time; more boxes are ticked by mistake than by wish."""
_LONGEST_BODY_BYTES = 60_000
_ROWS = (100, 25, 6)
"""How many rows each part has; fewer where the body would be too long."""


@dataclass(frozen=True)
class Box:
    """A checkbox: what is to be done where somebody ticks it, and for what."""

    wish: Literal["search", "reopen"]
    operator: str
    hardware: str


@dataclass(frozen=True)
class Used:
    """How much of a limit is used up."""

    what: str
    used: float
    limit: float


@dataclass(frozen=True)
class View:
    """All that the dashboard shows."""

    notices: Sequence[str] = ()
    """What keeps the bot from its work, in words; texts of strangers among them."""
    waiting: Sequence[Waiting] = ()
    open_requests: Sequence[PullRequest] = ()
    refused: Sequence[tuple[Box, int]] = ()
    """What people closed, each with its pull request's number."""
    ended: Sequence[Ended] = ()
    faults: Sequence[str] = ()
    """What failed when it was last tried."""
    used: Sequence[Used] = ()
    spent: Spending = field(default_factory=Spending)
    """By all searches today (UTC)."""
    searches: Sequence[Box] = ()
    """What a search can be started for."""
    has_boxes: bool = True


def find_round(body: str) -> int | None:
    """Return the number that a dashboard's text was written under; None where it is none."""
    found = _MARKER.match(body)
    return int(found[1]) if found else None


def find_ticks(body: str) -> tuple[Box, ...]:
    """Return what is ticked in a dashboard's text; nothing of it is known to be there."""
    ticked = (
        Box("reopen" if wish == "reopen" else "search", operator, hardware)
        for wish, operator, hardware in _TICK.findall(body.replace("\r\n", "\n"))
    )
    return tuple(dict.fromkeys(ticked))[:_MOST_TICKS]


def render(view: View, *, number: int) -> str:
    """Return the dashboard's text.

    Args:
        view: What it shows.
        number: What it is written under: ticks in an equal text under the same number are the same.
    """
    body = ""
    for rows in _ROWS:
        sections = (f"<!-- kernelevolve-dashboard {number} -->", *_sections(view, rows))
        body = "\n\n".join(sections) + "\n"
        if len(body.encode()) <= _LONGEST_BODY_BYTES:
            break
    return body


def _sections(view: View, rows: int) -> Iterator[str]:
    yield _INTRODUCTION
    for notice in view.notices[:rows]:
        yield f"> [!WARNING]\n> {plain(notice)}"
    yield "## Goals"
    yield _waiting(view.waiting, rows)
    yield "## Open pull requests"
    yield _requests(view.open_requests, rows)
    if view.refused:
        yield "## Closed by people"
        yield "Each was a no until its operator changes." + _TICK_TO_ASK * view.has_boxes
        yield bullets(
            f"{_box(box, view)}{_pair(box.operator, box.hardware)}: #{number}"
            for box, number in view.refused[:rows]
        )
    if view.faults:
        yield "## Errors"
        yield "These failed when they were last tried; the log says why."
        yield bullets(plain(fault) for fault in view.faults[:rows])
    yield "## Limits"
    limits = ((one.what, f"{one.used:.4g}", f"{one.limit:.4g}") for one in view.used)
    yield table(("limit", "used", "of"), limits, numbers=(1, 2))
    if view.spent.tokens:
        yield (
            f"Language models took {view.spent.tokens:,} tokens for ${view.spent.money_usd:,.2f} "
            "today (UTC); `kernelevolve status --costs` tells the rest."
        )
    if view.ended:
        yield "## How the last goals ended"
        past = view.ended[:rows]
        yield table(("when (UTC)", "goal", "how"), [(_time(e.at), *_end(e.end)) for e in past])
    if view.searches and view.has_boxes:
        yield "## Start a search"
        yield details("Tick what should be searched for", _searches(view, rows))


_INTRODUCTION = (
    "A program keeps this text up to date: what people write into it is lost, but what they tick "
    "is done. Where this issue is closed, it is left alone."
)
_TICK_TO_ASK = " Tick one to take it back."


def _waiting(goals: Sequence[Waiting], rows: int) -> str:
    if not goals:
        return "Nothing is wanted that has not been tried."
    listed = [
        (
            _pair(goal.operator, goal.hardware),
            goal.state,
            plain(goal.obstacle or "; ".join(goal.why)),
        )
        for goal in goals[:rows]
    ]
    return table(("goal", "state", "why"), listed) + _more(goals, rows)


def _requests(requests: Sequence[PullRequest], rows: int) -> str:
    if not requests:
        return "None."
    listed = [
        (
            f"#{p.number}",
            plain(p.title),
            "draft" if p.draft else "for review",
            plain(", ".join(p.labels)),
        )
        for p in requests[:rows]
    ]
    return table(("", "title", "state", "labels"), listed) + _more(requests, rows)


def _searches(view: View, rows: int) -> str:
    pairs = [
        f"{_box(box, view)}{_pair(box.operator, box.hardware)}" for box in view.searches[:rows]
    ]
    left = len(view.searches) - rows
    more = f"\n\n{left} more are not shown; ask for one in a comment." if left > 0 else ""
    return bullets(pairs) + more


def _box(box: Box, view: View) -> str:
    if not view.has_boxes:
        return ""
    return f"[ ] <!-- kernelevolve:{box.wish} {box.operator} {box.hardware} --> "


def _pair(operator: str, hardware: str) -> str:
    return f"{code(operator)} on {code(hardware)}"


def _end(end: End) -> tuple[str, str]:
    ratio = f" {end.ratio.estimate:.2f}x" if end.ratio else ""
    shown = getattr(end.publication, "number", None)
    request = f" #{shown}" if shown else ""
    why = f": {plain(end.why)}" if end.why else ""
    verdict = end.verdict.replace("_", " ")
    return _pair(end.operator, end.hardware), f"{verdict}{ratio}{request}{why}"


def _more(items: Sequence[object], rows: int) -> str:
    return f"\n\n{len(items) - rows} more." if len(items) > rows else ""


def _time(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M}"
