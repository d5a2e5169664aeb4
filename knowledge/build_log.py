"""A compiler's log, or a crash's: what it says, where, and what stays the same among like ones."""

import re
from dataclasses import dataclass
from typing import Final

_TRITON_PLACE: Final = re.compile(r"^\w+: at (\d{1,9}):(\d+):$")
_CPP_ERROR: Final = re.compile(r"^(?:[^\s:]+:(\d{1,9}):(?:\d+:)? )?(?:fatal )?error: (.*)$")
_CPP_HINT: Final = re.compile(r"note: (.*did you forget.*|\s+deduced conflicting.*|called from.*)$")
_RAISED: Final = re.compile(r"^(?:\w+\.)*(\w*(?:Error|Exception|Resources))\b:? ?(.*)$")
_WRAPPED: Final = re.compile(r"""^(\w+)\((["'])(.*)\2\)$""")
_NOISE: Final = re.compile(r"^(?:In file included from|\s+from |\s*\d* \|)")
# gcc quotes with U+2018 and U+2019, others with the plain marks.
_QUOTED: Final = re.compile(
    r"[\u2018'`\"][^\u2019'`\"\n]*[\u2019'`\"]|<[^<>\n]*>|\[[^\[\]\n]*\]|\([^()\n]*\)"
)
_OWN_NAME: Final = re.compile(r"^\w+(?= (?:is not defined|wants|takes)\b)|(?<=variable )\w+")
_NUMBER: Final = re.compile(r"\b0x[0-9a-f]+\b|-?\b\d+(?:\.\d+)?\b")
_LONGEST_SIGNATURE: Final = 120


@dataclass(frozen=True)
class LogReading:
    """What a log says in a few words."""

    message: str
    """Without source lines, headers and repetition."""
    line: int | None = None
    """In the candidate's code; for Triton in the function that is compiled."""
    source: str = ""
    """That line, where the log shows it."""

    @property
    def signature(self) -> str:
        """Return the message without names, shapes and numbers: equal for the same fault."""
        first = self.message.partition("\n")[0]
        plain = _NUMBER.sub("#", _OWN_NAME.sub("…", _QUOTED.sub("…", first)))
        return re.sub(r"\s+", " ", plain).strip()[:_LONGEST_SIGNATURE]


def read_log(log: str) -> LogReading:
    """Return what a build's or a run's log says; the log itself where nothing is recognised."""
    lines = log.splitlines()
    place = _TRITON_PLACE.match(lines[0]) if lines else None
    if place:
        return _read_triton(lines, line=int(place[1]))
    errors = [(_CPP_ERROR.match(line), line) for line in lines if not _NOISE.match(line)]
    if found := [match for match, _ in errors if match]:
        hints = [h[1].strip() for line in lines if (h := _CPP_HINT.search(line))]
        told = [*dict.fromkeys(match[2] for match in found[:3]), *dict.fromkeys(hints)]
        mine = next((int(m[1]) for m in found if m[1] and m[0].startswith("kernel.cpp")), None)
        return LogReading("\n".join(told), line=mine)
    return LogReading(_last_raised(lines) or log.strip())


def _read_triton(lines: list[str], *, line: int) -> LogReading:
    """Return what stands below the caret that marks the place."""
    carets = [place for place, text in enumerate(lines) if text.strip() == "^"]
    caret = carets[0] if carets else 0
    source = lines[caret - 1].strip() if caret else ""
    told = [_unwrapped(text) for text in lines[caret + 1 :] if text.strip()]
    return LogReading("\n".join(dict.fromkeys(told)), line=line, source=source)


def _unwrapped(text: str) -> str:
    """Return an exception's own words: ``ValueError: so`` and ``ValueError('so')`` say ``so``."""
    if found := _WRAPPED.match(text):
        return found[3]
    kind, _, rest = text.partition(": ")
    return rest if re.fullmatch(r"\w+Error", kind) else text


def _last_raised(lines: list[str]) -> str:
    """Return the last exception of a traceback, its causes' words before it."""
    raised = [m for line in lines if (m := _RAISED.match(line))]
    return "\n".join(dict.fromkeys(f"{m[1]}: {m[2]}".rstrip(": ") for m in raised[-2:]))
