"""A document of the library: what is known of devices, languages, patterns and errors."""

from typing import Literal

from pydantic import Field

from operator_registry.hardware import HardwareSpec, Language
from operator_registry.record import Record

Kind = Literal[
    "constraints", "language", "hardware", "pattern", "debugging", "performance"
]  # fmt: skip
"""What a document is of. Constraints hold for every candidate and come before all others."""
RegionKind = Literal[
    "pointwise", "row reduction", "table search", "jagged select", "matrix product", "convolution",
    "attention", "scan", "sort",
]  # fmt: skip
"""A region's loop structure; the first four as the synthesiser names them."""


class FrontMatter(Record):
    """What stands at the head of a document, between two lines of ``---``."""

    title: str = Field(min_length=1)
    kind: Kind
    languages: tuple[Language, ...] = ()
    """Of the code that it speaks of; empty for all."""
    hardware: tuple[str, ...] = ()
    """Patterns such as ``sm_9*`` or ``cpu``, of which one must match a device; empty for all."""
    regions: tuple[RegionKind, ...] = ()
    """The kinds of region that it is about."""
    answers: tuple[str, ...] = ()
    """Words of an error's message or of a diagnosis that it answers; ``*`` stands for anything."""
    sources: tuple[str, ...] = Field(min_length=1)
    """Where its facts are from."""


class Document(Record):
    """A document as proposers and people read it."""

    name: str
    """Its path below ``knowledge/base`` without the ending, such as ``hardware/nvidia/hopper``."""
    title: str
    text: str
    """Markdown."""
    sources: tuple[str, ...] = ()
    """Where its facts are from."""
    kind: Kind = "performance"
    languages: tuple[Language, ...] = ()
    hardware: tuple[str, ...] = ()
    regions: tuple[RegionKind, ...] = ()
    answers: tuple[str, ...] = ()
    """See `FrontMatter`."""

    @property
    def size_bytes(self) -> int:
        """Return how long the text is."""
        return len(self.text.encode())


def names_of(hardware: HardwareSpec) -> tuple[str, ...]:
    """Return the names by which a document's pattern may mean a device."""
    return (hardware.name, hardware.compile.arch, hardware.target, hardware.vendor)
