"""Markdown made of texts that strangers wrote: nothing in them pings, links or breaks a table."""

import re
from collections.abc import Collection, Iterable, Sequence

_SPACE = re.compile(r"\s+")
_UNSEEN = re.compile(
    r"[^\x20-\x7e\u00a1-\ud7ff\uf900-\ufffd]|[\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
)
# What GitHub's Markdown reads as more than text, each only where it does: as a mark, an entity, a
# mention, a reference to an issue (#1, GH-1), an address, a shortcode, or the start of a block.
_SPECIAL = re.compile(
    r"[\\`*\[\]<>|~@$]|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w)|#(?=\w)|(?<=[Gg][Hh])-|:(?=\S)"
    r"|(?<=[Ww]{3})\.|^[-+#=:]"
)
_TICKS = re.compile(r"`+")
_NUMBERED = re.compile(r"^(\d{1,9})([.)])")
_LONGEST = 300


def plain(text: str) -> str:
    """Return the text as one line of Markdown that shows it and does nothing else."""
    line = _SPECIAL.sub(lambda found: _entity(found[0]), _line(text))
    return _NUMBERED.sub(lambda found: found[1] + _entity(found[2]), line)


def code(text: str) -> str:
    """Return the text as a code span that is safe in a table as well."""
    return f"`{_line(text).replace('`', chr(39)).replace('|', '/') or ' '}`"


def table(
    header: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Collection[int] = ()
) -> str:
    """Return a table; its cells are Markdown already.

    Args:
        header: What stands above the columns.
        rows: The cells.
        numbers: Which columns are set to the right.
    """
    rule = ["---:" if place in numbers else "---" for place in range(len(header))]
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, rule, *rows))


def bullets(items: Iterable[str]) -> str:
    """Return a list; its items are Markdown already."""
    return "\n".join(f"- {item}" for item in items)


def fenced(language: str, text: str) -> str:
    """Return a text of several lines as a block of code that it can't break out of."""
    lines = (_UNSEEN.sub("", line.expandtabs(4)) for line in text.splitlines())
    longest = max((len(run) for run in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join((f"{fence}{language}", *lines, fence))


def details(summary: str, body: str) -> str:
    """Return a part that readers unfold; both are Markdown or HTML already."""
    return f"<details>\n<summary>{summary}</summary>\n\n{body}\n\n</details>"


def _entity(character: str) -> str:
    return f"&#{ord(character)};"


def _line(text: str) -> str:
    # Newlines are spaces first: what is unseen afterwards is dropped, direction marks included.
    return _UNSEEN.sub("", _SPACE.sub(" ", text)).strip()[:_LONGEST]
