"""Which lines of a comment speak to the program: those that a reader sees as plain lines. Pure.

What is shown as code, quote, heading or not at all is none. Where this file and a Markdown reader
disagree, a line is rather left out.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches

NAMES = (
    "optimize", "retry", "benchmark", "verify", "stop", "explain", "status", "rebase", "reopen",
    "hold", "unhold", "help",
)  # fmt: skip
PREFIXES = frozenset({"kernel", "kernelevolve"})
"""``/kernel stop`` is ours for certain, where other programs know a ``/stop`` as well."""
MOST_LINES = 5
_SCANNED = 4096
_LONGEST_LINE = 300
_NEAR = 0.75
# Split where Markdown does and nowhere else: `str.splitlines` knows line ends that nobody sees.
_LINE_END = re.compile(r"\r\n|\r|\n")
_UNSEEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5"
                     r"\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
                     r"\ufff0-\uffff\U000e0000-\U000e0fff]")  # fmt: skip
_SPOKEN = re.compile(
    r"(?:@(?P<name>[A-Za-z0-9-]{1,60}(?:\[bot\])?)[,:]?\s+/?|/)(?P<word>[A-Za-z]+)[.!,;:]*(?=\s|$)"
)
_FENCE = re.compile(r"( {0,3})(?:(?:[-*+]|\d{1,9}[.)]) +)*(`{3,}(?=[^`]*$)|~{3,})")
_CODE_SPAN = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-{3,})\s*$")
_SHELTER = re.compile(r"<(?:!--|(pre|code|blockquote)(?=[\s>]))")
"""What opens a part that is no plain text."""


@dataclass(frozen=True)
class Line:
    """A line that speaks to the program, whether it can be understood or not."""

    number: int
    """In the comment, from 1."""
    text: str


def find_lines(body: str, *, me: str) -> tuple[Line, ...]:
    """Return the lines of a comment that speak to the program; one more than it may have at most.

    A word that is nearly one of ours counts; other programs' words don't.

    Args:
        body: The comment, as it was written.
        me: The program's login on the code host.
    """
    found = [
        Line(number, text.strip()[:_LONGEST_LINE])
        for number, text in _plain_lines(body)
        if _speaks_to(me, text)
    ]
    return tuple(found[: MOST_LINES + 1])


def has_unseen(text: str) -> bool:
    """Return whether a text holds characters that a reader does not see."""
    return _UNSEEN.search(text) is not None


def words_of(text: str) -> tuple[str, ...]:
    """Return a line's command, in lower case, and its arguments, without what addresses us."""
    spoken = _SPOKEN.match(text)
    if spoken is None:
        return ()
    words = [spoken["word"].lower(), *text[spoken.end() :].split()]
    return tuple(words[1:] if words[0] in PREFIXES else words)


def find_near(word: str) -> str | None:
    """Return the command that a word is nearly."""
    near = get_close_matches(word, NAMES, n=1, cutoff=_NEAR)
    return near[0] if near else None


def _speaks_to(me: str, text: str) -> bool:
    spoken = _SPOKEN.match(_UNSEEN.sub("", text))
    if spoken is None:
        return False
    if spoken["name"] is not None and _bare(spoken["name"]) != _bare(me):
        return False
    word = spoken["word"].lower()
    return (word in PREFIXES and spoken["name"] is None) or find_near(word) is not None


def _bare(login: str) -> str:
    return login.lower().removesuffix("[bot]")


def _plain_lines(body: str) -> Iterator[tuple[int, str]]:
    """Yield number and text of the lines that are shown as plain text."""
    lines = _LINE_END.split(body[:_SCANNED])
    if len(body) > _SCANNED:
        lines.pop()  # half a line may say something else than the whole
    fence: str | None = None
    indent = 0
    shelter: str | None = None
    quoted = False
    for number, line in enumerate(lines, start=1):
        if fence is not None:
            fence = None if _closes(line, fence, indent) else fence
            continue
        was, shelter = shelter, _shelter_after(line, shelter)
        if was is not None:
            continue
        if opened := _FENCE.match(line):
            fence, indent = opened[2], len(line) - len(line.lstrip())
            continue
        # A line below a quoted one goes on with the quote until a blank one ends it.
        quoted = line.lstrip().startswith(">") or (quoted and bool(line.strip()))
        heading = number < len(lines) and _UNDERLINE.match(lines[number])
        if not (quoted or heading):
            yield number, line


def _closes(line: str, fence: str, indent: int) -> bool:
    text = line.strip()
    inner = len(line) - len(line.lstrip())
    return len(text) >= len(fence) and not text.strip(fence[0]) and inner <= indent + 3


def _shelter_after(line: str, shelter: str | None) -> str | None:
    """Return what ends the part that a line leaves open; None where it leaves none open."""
    rest = line.lower() if shelter else _CODE_SPAN.sub("", line.lower())
    while True:
        if shelter is not None:
            _, ended, rest = rest.partition(shelter)
            if not ended:
                return shelter
        if (opened := _SHELTER.search(rest)) is None:
            return None
        shelter = f"</{opened[1]}>" if opened[1] else "-->"
        rest = rest[opened.end() :]
