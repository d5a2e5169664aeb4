"""A draft of ``hardware/NAME.yaml``: each limit with where it is from, and what is left to do."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from operator_registry.spec import TargetName

Source = Literal["read", "derived", "stand-in"]
_ABOUT: Mapping[Source, str] = {
    "read": "read from the machine",
    "derived": "derived, compare with the data sheet",
    "stand-in": "FILL IN from the data sheet",
}
_SCHEMA = "# yaml-language-server: $schema=../schemas/hardware.json"


@dataclass(frozen=True)
class Limit:
    """A limit as it stands in a draft."""

    value: float
    source: Source
    how: str
    """From what it was read or derived, or what stands in for it."""


@dataclass(frozen=True)
class Draft:
    """A hardware as far as a machine can describe it."""

    name: str
    summary: str
    vendor: str
    target: TargetName
    arch: str
    language: Literal["cpp", "triton"]
    limits: Mapping[str, Limit]
    peaks: Mapping[str, Limit]
    """By dtype, in TFLOP/s."""
    warp_size: int = 1
    labels: Sequence[str] = field(default=("self-hosted",))

    @property
    def is_complete(self) -> bool:
        """Return whether nothing is left that a person must fill in."""
        limits = (*self.limits.values(), *self.peaks.values())
        return all(limit.source != "stand-in" for limit in limits)

    def to_yaml(self) -> str:
        """Return the file, which `registry validate` takes as it is."""
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        yield _SCHEMA
        if not self.is_complete:
            yield "# A draft. Numbers marked FILL IN are no data-sheet values: a bandwidth that is"
            yield "# too low takes honest kernels for broken measurements."
        yield "schema: 1"
        yield f"name: {self.name}"
        yield f"summary: {_quoted(self.summary)}"
        yield f"vendor: {self.vendor}"
        yield f"target: {self.target}"
        warp = f", warp_size: {self.warp_size}" if self.warp_size > 1 else ""
        yield f"compile: {{arch: {self.arch}{warp}}}"
        yield f"languages: [{self.language}]"
        yield "limits:"
        for name, limit in self.limits.items():
            yield f"  {name}: {_line(limit)}"
        if self.peaks:
            yield "  peak_tflop_s:"
        for dtype, limit in self.peaks.items():
            yield f"    {dtype}: {_line(limit)}"
        yield "runner:"
        yield f"  labels: [{', '.join(self.labels)}]"


def slug(name: str) -> str:
    """Return what a GPU is called in a registry: the part of its name that says which it is."""
    words = re.split(r"[\s-]+", name.lower())
    numbered = [word for word in words if re.search(r"\d", word) and word[0].isalnum()]
    found = numbered[0] if numbered else words[-1]
    return re.sub(r"[^a-z0-9._]", "", found) or "gpu"


def _line(limit: Limit) -> str:
    value = f"{limit.value:.6g}" if limit.value != int(limit.value) else f"{int(limit.value)}"
    return f"{value} # {_ABOUT[limit.source]}: {limit.how}"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
