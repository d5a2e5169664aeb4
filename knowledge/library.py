"""The library: documents of a folder, and which of them help in a situation.

A document's front matter says which devices and languages it is for (others never see it), and
which errors, bottlenecks and kinds of region it answers (those that do come first). Among equals
the words of the diagnosis and of the error's log decide, by full-text search.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Final, Self

from knowledge.document import Document, Kind
from knowledge.front_matter import read_document
from knowledge.full_text import Field, FullText
from operator_registry.fault import Fault

BASE: Final = Path(__file__).parent / "base"
"""The documents that ship with this package."""
INDEX: Final = "index.md"
"""The page that lists them all; it is no document."""
MOST: Final = 6
MOST_BYTES: Final = 48 * 1024
_FIELDS: Final = (
    Field("title", 4.0), Field("answers", 6.0), Field("headings", 2.0), Field("body", 1.0),
)  # fmt: skip
_TITLES: Final[dict[Kind, str]] = {
    "constraints": "What the judge accepts",
    "debugging": "When a candidate fails",
    "performance": "When a candidate is slow",
    "pattern": "Patterns by kind of region",
    "language": "Languages",
    "hardware": "Devices",
}
_HEADING: Final = re.compile(r"^#+ +(.*)$", re.MULTILINE)
# What each kind of match adds. An answer to the very error outweighs all else together.
_ANSWER: Final = 4.0
_REGION: Final = 1.5
_PATTERN: Final = 1.5
"""What a pattern of the operator's own region has in addition."""
_WORDS: Final = 2.0
_OWN_DEVICE: Final = 0.6
_OWN_LANGUAGE: Final = 0.5


class LibraryError(Exception):
    """The folder's documents can't be used; `faults` holds every fault of every file."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(sorted(set(faults), key=lambda f: (f.path, f.line, f.message)))
        super().__init__("\n".join(str(fault) for fault in self.faults))


@dataclass(frozen=True)
class Query:
    """A situation in which documents may help; all parts may be absent."""

    text: str = ""
    """What is known of it in words: a diagnosis and its terms, or what a person asks."""
    error: str = ""
    """The log of a build or a run."""
    language: str | None = None
    hardware: tuple[str, ...] = ()
    """The names of the device, as `knowledge.document.names_of` returns them."""
    regions: tuple[str, ...] = ()
    """The kinds of the operator's regions."""


@dataclass(frozen=True)
class Match:
    """A document, and how well it fits a query; only comparable within one query."""

    document: Document
    score: float


@dataclass(frozen=True)
class Library:
    """Documents by name, in order of their names."""

    documents: tuple[Document, ...]

    @classmethod
    def load(cls, folder: Path = BASE) -> Self:
        """Return the library of a folder.

        Raises:
            LibraryError: A document is faulty; holds every fault of every file.
        """
        documents: list[Document] = []
        faults: list[Fault] = []
        for path in sorted(folder.rglob("*.md")):
            place = path.relative_to(folder).as_posix()
            if place == INDEX:
                continue
            content = path.read_text(encoding="utf-8", errors="surrogateescape")
            document, found = read_document(place, content)
            faults += found
            documents += [document] if document else []
        if faults:
            raise LibraryError(faults)
        return cls(tuple(sorted(documents, key=lambda document: document.name)))

    def find(
        self, query: Query, most: int = MOST, most_bytes: int = MOST_BYTES
    ) -> tuple[Document, ...]:
        """Return the documents that help most: constraints first, then the rest by rank.

        A document that does not fit into what is left is passed over for the next.

        Args:
            query: The situation.
            most: How many documents at most.
            most_bytes: How many bytes of text at most, in UTF-8.
        """
        kept: list[Document] = []
        left = most_bytes
        for document in self._in_order(query):
            if len(kept) < most and document.size_bytes <= left:
                kept.append(document)
                left -= document.size_bytes
        return tuple(kept)

    def rank(self, query: Query) -> tuple[Match, ...]:
        """Return all documents that may concern a query, the best first.

        Those that nothing speaks for are left out.
        """
        words = self._full_text.scores(f"{query.text}\n{query.error}")
        told = f"{query.text}\n{query.error}".lower()
        matches = (
            Match(document, self._score(document, query, told, words.get(document.name, 0.0)))
            for document in self._admitted(query)
        )
        found = [match for match in matches if match.score > 0]
        return tuple(sorted(found, key=lambda match: (-match.score, match.document.name)))

    def find_document(self, name: str) -> Document | None:
        """Return the document of a name."""
        return next((d for d in self.documents if d.name == name), None)

    @cached_property
    def _full_text(self) -> FullText:
        return FullText(_FIELDS, ((document.name, _parts(document)) for document in self.documents))

    @cached_property
    def _answers(self) -> dict[str, tuple[re.Pattern[str], ...]]:
        return {d.name: tuple(map(_pattern, d.answers)) for d in self.documents}

    def _in_order(self, query: Query) -> Iterator[Document]:
        yield from (d for d in self._admitted(query) if d.kind == "constraints")
        ranked = (match.document for match in self.rank(query))
        yield from (d for d in ranked if d.kind != "constraints")

    def _admitted(self, query: Query) -> Iterator[Document]:
        """Yield the documents that are not for another language or device."""
        for document in self.documents:
            if query.language and document.languages and query.language not in document.languages:
                continue
            if not query.hardware or is_for(document, query.hardware):
                yield document

    def _score(self, document: Document, query: Query, told: str, words: float) -> float:
        answered = sum(bool(answer.search(told)) for answer in self._answers[document.name])
        speaks = _ANSWER * min(answered, 2) + _WORDS * words
        if set(document.regions) & set(query.regions):
            speaks += _REGION + _PATTERN * (document.kind == "pattern")
        # Alone, being for this device or this language is a reason too: for a first draft.
        own = _OWN_DEVICE * bool(query.hardware and document.hardware)
        own += _OWN_LANGUAGE * bool(query.language and document.languages)
        return speaks + own * (document.kind in {"hardware", "language"} or speaks > 0)


def is_for(document: Document, hardware: Sequence[str]) -> bool:
    """Return whether a document concerns a device of these names."""
    if not document.hardware:
        return True
    return any(fnmatchcase(name, glob) for name in hardware for glob in document.hardware)


def make_index(library: Library) -> str:
    """Return the page that lists a library's documents, as Markdown."""
    lines = [
        "# Index of the knowledge base",
        "",
        "Written by `kernelevolve knowledge`. Each document says in its front matter for which",
        "languages, devices and kinds of region it is, and which errors it answers.",
    ]
    for kind, title in _TITLES.items():
        rows = [_row(document) for document in library.documents if document.kind == kind]
        if rows:
            lines += ["", f"## {title}", "", "| document | title | for |", "| --- | --- | --- |"]
            lines += rows
    return "\n".join(lines) + "\n"


def scope_of(document: Document) -> str:
    """Return what a document is for, in a few words."""
    parts = (document.languages, document.hardware, document.regions)
    return "; ".join(", ".join(part) for part in parts if part) or "all"


def _row(document: Document) -> str:
    scope = scope_of(document).replace("*", "\\*").replace("_", "\\_")
    return f"| [{document.name}]({document.name}.md) | {document.title} | {scope} |"


def _parts(document: Document) -> dict[str, str]:
    return {
        "title": document.title,
        "answers": "\n".join((*document.answers, *document.regions)),
        "headings": "\n".join(_HEADING.findall(document.text)),
        "body": document.text,
    }


def _pattern(answer: str) -> re.Pattern[str]:
    """Return the pattern of an answer: its words at the borders of words, ``*`` within a line."""
    inner = r"[^\n]*".join(re.escape(part) for part in answer.lower().split("*"))
    before = r"\b" if answer[:1].isalnum() else ""
    after = r"\b" if answer[-1:].isalnum() else ""
    return re.compile(f"{before}{inner}{after}")
