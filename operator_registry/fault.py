"""What is wrong in a registry, where, and what to do about it."""

from collections.abc import Iterable

from operator_registry.record import Record


class Fault(Record):
    """One fault of one file."""

    path: str
    """Relative to the registry's folder."""
    line: int
    message: str
    remedy: str

    def __str__(self) -> str:
        """Return ``path:line: message; remedy``."""
        return f"{self.path}:{self.line}: {self.message}; {self.remedy}"


class RegistryError(Exception):
    """The registry can't be used; `faults` holds every fault of every file, in order."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(sorted(set(faults), key=lambda f: (f.path, f.line, f.message)))
        super().__init__("\n".join(str(fault) for fault in self.faults))
