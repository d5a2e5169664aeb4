"""All readings of a confirming run, kept under the hash of their text."""

from collections.abc import Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from operator_registry.record import Record, canonical_json
from optimizer.evaluate.summary import Pair, Reading
from optimizer.store.artefacts import Artefacts


class RawSamples(Record):
    """Readings pair by pair, by workload and by subject; of each, a number for each column."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    columns: tuple[str, ...]
    pairs: tuple[dict[str, dict[str, tuple[tuple[float, ...], ...]]], ...]

    def column(self, pair: int, workload: str, subject: str, *, name: str) -> list[float]:
        """Return one figure of a subject's readings in a pair.

        Raises:
            KeyError: Nothing was read of it there.
            ValueError: There is no such figure.
        """
        place = self.columns.index(name)
        return [reading[place] for reading in self.pairs[pair][workload][subject]]


def keep_samples(folder: Path, pairs: Sequence[Pair]) -> str:
    """Write all readings into a state folder and return the hash that is their name."""
    raw = RawSamples(
        columns=tuple(field.name for field in fields(Reading)),
        pairs=tuple(
            {
                workload: {
                    name: tuple(astuple(reading) for reading in found)
                    for name, found in readings.items()
                }
                for workload, readings in pair.items()
            }
            for pair in pairs
        ),
    )
    return Artefacts(folder).put(canonical_json(raw).encode())


def find_samples(folder: Path, name: str) -> RawSamples | None:
    """Return the readings of a hash; None where this machine does not hold them.

    Raises:
        ValueError: The file is not what its name says.
    """
    text = Artefacts(folder).find(name)
    return None if text is None else RawSamples.from_json(text)


def read_pairs(raw: RawSamples) -> list[Pair]:
    """Return the pairs whose readings were kept."""
    return [
        {
            workload: {
                subject: [_read(raw.columns, row) for row in rows]
                for subject, rows in subjects.items()
            }
            for workload, subjects in pair.items()
        }
        for pair in raw.pairs
    ]


def _read(columns: Sequence[str], row: Sequence[float]) -> Reading:
    told: dict[str, Any] = dict(zip(columns, row, strict=True))  # a count is a number like others
    return Reading(**told)
