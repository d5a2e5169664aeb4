"""Windows of time in which searches may start, written as cron does, in a zone's own time (pure).

A window is open in each minute that its five fields name. An instant becomes the zone's own time,
never the other way round, so that the hour which a zone repeats or leaves out is no special case.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_MONTHS = (
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
)  # fmt: skip
_FIELDS = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of the month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of the week", 0, 7, _DAYS),
)
"""What each field is called, its least and greatest number, and names for the first numbers."""
_SUNDAY = 7
_MONTH, _DAY_OF_MONTH, _DAY_OF_WEEK = 3, 2, 4


class WindowError(ValueError):
    """The text is no cron expression; the message says which field can't be."""


def is_open(windows: Iterable[tuple[str, str]], now: float) -> bool:
    """Return whether searches may start at a time; they always may where there are no windows.

    Args:
        windows: A cron expression and the name of a zone, each.
        now: Seconds since 1970.

    Raises:
        WindowError: An expression is none.
    """
    listed = tuple(windows)
    return not listed or any(_is_open(parse_cron(cron), zone, now) for cron, zone in listed)


@lru_cache(maxsize=256)
def parse_cron(text: str) -> tuple[frozenset[int], ...]:
    """Return the numbers that each of the five fields allows.

    Fields hold ``*``, numbers, ``a-b`` (which may go round: ``22-5``), ``/step``, lists of these by
    commas, and the English names of months and days by three letters. 0 and 7 are Sunday.

    Raises:
        WindowError: The text is something else.
    """
    words = text.lower().split()
    if len(words) != len(_FIELDS):
        msg = f"{text!r} has {len(words)} fields, not the five: minute hour day month weekday"
        raise WindowError(msg)
    fields = [_parse_field(*field, word) for field, word in zip(_FIELDS, words, strict=True)]
    fields[_DAY_OF_WEEK] = frozenset(day % _SUNDAY for day in fields[_DAY_OF_WEEK])
    return tuple(fields)


def _is_open(fields: tuple[frozenset[int], ...], zone: str, now: float) -> bool:
    there = datetime.fromtimestamp(now, UTC).astimezone(ZoneInfo(zone))
    weekday = there.isoweekday() % _SUNDAY
    parts = (there.minute, there.hour, there.day, there.month, weekday)
    return all(part in field for part, field in zip(parts, fields, strict=True))


def _parse_field(
    what: str, least: int, greatest: int, names: tuple[str, ...], word: str
) -> frozenset[int]:
    found: set[int] = set()
    for part in word.split(","):
        span, slash, step_text = part.partition("/")
        step = _number(step_text, what, 1, greatest, ()) if slash else 1
        first, dash, last = span.partition("-")
        start, end = least, greatest
        if span != "*":
            start = _number(first, what, least, greatest, names)
            end = _number(last, what, least, greatest, names) if dash else start
            end = greatest if slash and not dash else end
        allowed = [*range(start, end + 1)]
        if start > end:
            allowed = [*range(start, greatest + 1), *range(least, end + 1)]
        found.update(allowed[::step])
    return frozenset(found)


def _number(text: str, what: str, least: int, greatest: int, names: tuple[str, ...]) -> int:
    if text in names:
        return names.index(text) + least
    if text.isascii() and text.isdigit() and least <= int(text[:3]) <= greatest:
        return int(text[:3])
    msg = f"{text!r} is no {what}: {least} to {greatest}" + (
        f", or {', '.join(names)}" * bool(names)
    )
    raise WindowError(msg)
