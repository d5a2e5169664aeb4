"""A process that ends at a chosen step: before or after a call that reaches the world."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


class Crash(BaseException):
    """Stands for the end of the process."""


@dataclass
class Steps:
    """Counts steps, and ends the process at one of them."""

    crash_at: int | None = None
    taken: int = 0

    def __call__(self) -> None:
        """Take a step."""
        self.taken += 1
        if self.taken == self.crash_at:
            raise Crash


READS = frozenset(
    {
        "commands", "due_effects", "evidence", "fetch", "files", "find_effect", "find_heads",
        "holds", "is_ancestor", "pending_goals", "permission", "pull_request", "pull_requests",
        "recall", "tree",
    }
)  # fmt: skip
"""Calls that change nothing: dying at one is dying at the next one that does."""


@dataclass
class Crashing:
    """A part of the world behind which the process dies at one call, before it or after it."""

    real: Any
    step: Callable[[], None]
    but: frozenset[str] = frozenset()
    """Calls that are no steps."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as the real part has it
        """Return the real method between two steps; what is no method as it is."""
        method = getattr(self.real, name)
        if not callable(method) or name in self.but:
            return method

        def call(*arguments: object, **named: object) -> Any:  # noqa: ANN401 - as the method
            self.step()
            found = method(*arguments, **named)
            self.step()
            return found

        return call
