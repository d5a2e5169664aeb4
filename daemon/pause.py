"""The global pause: a mark in the store, so that it outlives every process.

While there is one, nothing is searched and nothing is written to the code host, but for what
``/stop`` and ``/status`` are answered with.
"""

from daemon.marks import Marks

_MARK = "pause"
_NO_REASON = "no reason given"


def find_pause(marks: Marks) -> str | None:
    """Return why all is paused; None where it is not."""
    return marks.recall(_MARK) or None


def pause(marks: Marks, reason: str) -> None:
    """Pause all, from the next look at the mark on; a later reason takes an earlier one's place."""
    marks.mark(_MARK, reason.strip() or _NO_REASON)


def resume(marks: Marks) -> None:
    """Go on; nothing happens where nothing is paused."""
    marks.mark(_MARK, "")
