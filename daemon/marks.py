"""Marks: what is remembered across restarts under a name, one text each."""

from typing import Protocol


class Marks(Protocol):
    """Where marks are kept: `optimizer.store.Store`."""

    def mark(self, key: str, value: str) -> None:
        """Remember a value."""
        ...

    def recall(self, key: str) -> str | None:
        """Return a remembered value."""
        ...
