"""A reply as it arrives: the events of a stream, or one JSON body; no byte of it is trusted."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import ValidationError

from optimizer.propose.model import Answered, Unanswered, Usage

_FIELD: Final = b"data:"
_DONE: Final = "[DONE]"
_LONGEST_FAULT: Final = 1 << 16
"""As it is read; what is kept is cut once no key can be in it."""


@dataclass
class Assembly:
    """Puts a reply together from the bytes of a body."""

    whole: bool = False
    """Whether the body is one JSON value rather than a stream."""
    text: str = ""
    finish: str = ""
    """Why the model ended, as the server puts it; empty while it has not."""
    usage: Usage | None = None
    fault: str = ""
    """What the server says went wrong, where it does so in the body."""
    events: int = 0
    """How many could be read."""
    _line: bytearray = field(default_factory=bytearray, init=False)
    _parts: list[str] = field(default_factory=list, init=False)

    def feed(self, chunk: bytes) -> None:
        """Take in bytes; they may end anywhere."""
        self._line += chunk
        if self.whole:
            return
        *lines, rest = bytes(self._line).split(b"\n")
        self._line = bytearray(rest)
        for line in lines:
            self._take(line)

    def end(self) -> None:
        """Take in what the last line holds."""
        self._take(bytes(self._line))
        self._line.clear()
        self.text = "".join(self._parts)

    def _take(self, line: bytes) -> None:
        line = line.strip()
        if line.startswith(_FIELD):
            line = line[len(_FIELD) :].strip()
        text = line.decode(errors="replace")
        if text == _DONE:
            self.finish = self.finish or "stop"
        elif text.startswith("{"):
            self._read(text)

    def _read(self, text: str) -> None:
        try:
            event = json.loads(text)
        except (ValueError, RecursionError):
            return
        self.events += 1
        self.usage = _usage(event.get("usage")) or self.usage
        if event.get("error"):
            self.fault = self.fault or _told(event["error"])
        for choice in _dicts(event.get("choices")):
            self._parts.extend(_contents(choice))
            finish = choice.get("finish_reason")
            self.finish = str(finish) if finish else self.finish


def conclude(assembly: Assembly, *, cut: bool) -> Answered | Unanswered:
    """Return what was said.

    Args:
        assembly: All that came, `end` called.
        cut: Whether the rest was not waited for.
    """
    if assembly.fault:
        return Unanswered(why="broken", detail=assembly.fault, charged=True)
    if not assembly.events:
        return Unanswered(why="garbled", detail="the body holds no event", charged=True)
    complete = assembly.finish not in {"", "length"} and not cut
    return Answered(text=assembly.text, complete=complete, usage=assembly.usage)


def _contents(choice: dict[str, Any]) -> Iterator[str]:
    for name in ("delta", "message"):
        said = choice.get(name)
        if isinstance(said, dict) and isinstance(said.get("content"), str):
            # A lone half of a character can't be written to a file.
            yield said["content"].encode(errors="replace").decode()


def _usage(given: object) -> Usage | None:
    if not isinstance(given, dict):
        return None
    try:
        return Usage.model_validate(
            {
                "prompt_tokens": given.get("prompt_tokens"),
                "reply_tokens": given.get("completion_tokens"),
            },
            strict=True,
        )
    except ValidationError:
        return None


def _dicts(given: object) -> list[dict[str, Any]]:
    return [each for each in given if isinstance(each, dict)] if isinstance(given, list) else []


def _told(error: object) -> str:
    message = error.get("message", error) if isinstance(error, dict) else error
    return str(message).encode(errors="replace").decode()[:_LONGEST_FAULT]
