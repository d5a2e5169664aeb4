"""Markdown made of texts that strangers wrote: nothing in them pings, links or breaks a table."""

import re
from collections.abc import Iterable, Sequence

_SPACE = re.compile(r"\s+")
_UNSEEN = re.compile(
    r"[^\x20-\x7e\u00a1-\ud7ff\uf900-\ufffd]|[\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
)
_SPECIAL = re.compile(r"[\\`*_{}\[\]<>()#+!|~@&$:-]")
_LONGEST = 300


def plain(text: str) -> str:
    """Return the text as one line of Markdown that shows it and does nothing else."""
    return _SPECIAL.sub(lambda found: f"&#{ord(found[0])};", _line(text))


def code(text: str) -> str:
    """Return the text as a code span that is safe in a table as well."""
    return f"`{_line(text).replace('`', chr(39)).replace('|', '/') or ' '}`"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; its cells are Markdown already."""
    ruled = [f"| {' | '.join(row)} |" for row in (header, ["---"] * len(header), *rows)]
    return "\n".join(ruled)


def bullets(items: Iterable[str]) -> str:
    """Return a list; its items are Markdown already."""
    return "\n".join(f"- {item}" for item in items)


def _line(text: str) -> str:
    # Newlines are spaces first: what is unseen afterwards is dropped, direction marks included.
    return _UNSEEN.sub("", _SPACE.sub(" ", text)).strip()[:_LONGEST]
