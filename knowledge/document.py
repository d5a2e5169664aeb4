"""A document of the library: what is known of devices, languages, patterns and errors."""

from operator_registry.record import Record


class Document(Record):
    """A document as proposers and people read it."""

    name: str
    """Its path below ``knowledge/base`` without the ending, such as ``hardware/nvidia/hopper``."""
    title: str
    text: str
    """Markdown."""
    sources: tuple[str, ...] = ()
    """Where its facts are from."""
