"""What is known of errands while a run lasts: one that is killed goes on where it was."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from operator_registry.record import Record
from optimizer.redteam.attempt import Attempt


class _Line(Record):
    errand: str
    attempt: Attempt


@dataclass
class Logbook:
    """A file of attempts, a line each: the last of an errand counts. Nothing is kept without it."""

    file: Path | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def read(self) -> dict[str, Attempt]:
        """Return the attempts by errand; a line that was cut off is none.

        Nor is one in which the judge failed: to go on is to try it again.
        """
        return {line.errand: line.attempt for line in self._lines() if not line.attempt.broke}

    def note(self, errand: str, attempt: Attempt) -> None:
        """Write an attempt down, before anything else is tried."""
        if self.file is None:
            return
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self._lock, self.file.open("a", encoding="utf-8") as file:
            file.write(_Line(errand=errand, attempt=attempt).to_json() + "\n")

    def close(self) -> None:
        """Forget all: what it tells stands in the report."""
        if self.file is not None:
            self.file.unlink(missing_ok=True)

    def _lines(self) -> Iterator[_Line]:
        if self.file is None or not self.file.exists():
            return
        for text in self.file.read_text(encoding="utf-8").splitlines():
            try:
                yield _Line.from_json(text)
            except ValidationError:
                continue
