"""Whether people still look at what the bot proposes; where they don't, it goes easy on them.

Interest is a person's comment on a pull request of the bot's, a command anywhere, a tick on the
dashboard, a commit on one of its branches, a merge or a no. What the bot does itself is none.
"""

from daemon.forge import PullRequest
from daemon.marks import Marks
from daemon.pulls.watched import find_watched, opened_at

STALE_LABEL = "stale"
_DAY_S = 24 * 3600.0
STALE_S = 30 * _DAY_S
"""A pull request that nobody cared for so long is rebased no more unless somebody asks."""
SILENT_S = 90 * _DAY_S
"""Where nobody cared for any so long, nothing is searched for any more."""


def note_interest(memory: Marks, at: float, *, number: int | None = None) -> None:
    """Remember that a person showed interest, in one pull request or in the bot as such.

    Args:
        memory: The store.
        at: When, in seconds since 1970; an earlier one changes nothing.
        number: The pull request's.
    """
    marks = (_mark(None),) if number is None else (_mark(None), _mark(number))
    for mark in marks:
        if at > float(memory.recall(mark) or 0):
            memory.mark(mark, f"{at:.3f}")


def is_stale(memory: Marks, shown: PullRequest, now: float) -> bool:
    """Return whether nobody has cared for an open pull request for a month."""
    last = max(opened_at(shown), float(memory.recall(_mark(shown.number)) or 0))
    return now - last > STALE_S


def find_silence(memory: Marks, now: float) -> str | None:
    """Return that nobody cares for what is proposed; None where somebody does or nothing is."""
    opened = [request.opened_at for request in find_watched(memory) if request.opened_at]
    last = float(memory.recall(_mark(None)) or 0)
    if not opened or now - max(min(opened), last) <= SILENT_S:
        return None
    return (
        f"nobody has cared for a pull request of the bot's for {SILENT_S / _DAY_S:.0f} days; it "
        "goes on once somebody comments on one, merges or closes one, or ticks a box here"
    )


def _mark(number: int | None) -> str:
    return "interest" if number is None else f"interest/{number}"
