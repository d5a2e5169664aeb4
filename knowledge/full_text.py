"""Full-text search over a few texts: SQLite's FTS5 in memory, ranked by BM25."""

import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

_WORD: Final = re.compile(r"[A-Za-z][A-Za-z_]*[0-9]*|(?<![0-9])[0-9]*+[A-Za-z]+")
_SHORTEST: Final = 3
_MOST_WORDS: Final = 64
"""Of a query: an error's log may be long, and its first words say most."""
_STOP: Final = frozenset({
    "the", "and", "for", "not", "are", "was", "that", "this", "with", "from", "has", "have", "had",
    "but", "its", "than", "then", "which", "what", "where", "when", "who", "how", "all", "any",
    "one", "two", "can", "may", "must", "should", "will", "does", "did", "been", "into", "over",
    "under", "only", "there", "their", "they", "them", "your", "you", "our", "out", "such", "other",
    "def", "return", "const", "void", "int", "import", "kernel", "line", "ptr", "constexpr",
})  # fmt: skip


@dataclass(frozen=True)
class Field:
    """A part of each text, and how much a word in it counts."""

    name: str
    weight: float


class FullText:
    """An index of texts by name. It is built once and then only read, from any thread."""

    def __init__(
        self, fields: Sequence[Field], texts: Iterable[tuple[str, Mapping[str, str]]]
    ) -> None:
        """Index the texts.

        Args:
            fields: What each text consists of.
            texts: Names, each with the text of each field.
        """
        self._weights = ", ".join(str(field.weight) for field in fields)
        names = [field.name for field in fields]
        self._database = sqlite3.connect(":memory:", check_same_thread=False)
        columns = ", ".join(("name UNINDEXED", *names))
        self._database.execute(
            f"CREATE VIRTUAL TABLE texts USING fts5({columns}, tokenize='porter unicode61')"
        )
        holders = ", ".join("?" * (len(names) + 1))
        rows = [(name, *(parts[field] for field in names)) for name, parts in texts]
        self._database.executemany(f"INSERT INTO texts VALUES ({holders})", rows)  # noqa: S608 - question marks only

    def close(self) -> None:
        """Give the index's memory back."""
        self._database.close()

    def scores(self, query: str) -> dict[str, float]:
        """Return how well texts match: from 0 to 1, the best 1; those without a word are absent."""
        words = words_of(query)
        if not words:
            return {}
        # Each word in quotes: none is then taken for an operator of the query language.
        wanted = " OR ".join(f'"{word}"' for word in words)
        found = self._database.execute(
            f"SELECT name, bm25(texts, 0, {self._weights}) FROM texts WHERE texts MATCH ?",  # noqa: S608 - our numbers
            (wanted,),
        ).fetchall()
        best = min((score for _, score in found), default=0.0)
        return {name: score / best for name, score in found} if best < 0 else {}


def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a text that may tell texts apart, each once, in order."""
    words = (word.lower().strip("_") for word in _WORD.findall(text))
    kept = [word for word in words if len(word) >= _SHORTEST and word not in _STOP]
    return tuple(dict.fromkeys(kept))[:_MOST_WORDS]
