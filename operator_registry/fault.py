"""What is wrong in a registry, where, and what to do about it."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from operator_registry.record import Record

NAMES_SHOWN = 12


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


@dataclass(frozen=True)
class Finding:
    """A fault as a check sees it: at a place in the document, the line not known yet."""

    where: tuple[str | int, ...]
    """The keys and indices that lead there from the document's root."""
    message: str
    remedy: str


def dotted(where: Iterable[str | int]) -> str:
    """Return a place as people write it: ``workloads[0].sizes.rows``."""
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in where)
    return text.removeprefix(".")


def name_one_of(word: str, known: Collection[str]) -> str:
    """Return the remedy for an unknown word: the nearest of those known, or all of them."""
    if near := get_close_matches(word, known, n=1, cutoff=0.5):
        return f"did you mean {near[0]!r}?"
    if not known:
        return "remove it: there are none here"
    shown = sorted(known)[:NAMES_SHOWN]
    return f"use one of {', '.join(shown)}{', ...' if len(known) > len(shown) else ''}"
