"""What must be known of a compiled Triton kernel to launch it, and how its parameters are laid."""

import re
import struct
from collections.abc import Sequence
from typing import Final

from operator_registry.record import Record

_FORMATS: Final = {"i32": "i", "i64": "q", "fp32": "f"}
_SCRATCH_POINTERS: Final = "QQ"
_ENTRY = re.compile(r"\.entry\s+(\w+)\s*\((.*?)\)", re.DOTALL)
_PARAM = re.compile(r"\.param\s+\.[a-z](\d+)\b")


class CubinFacts(Record):
    """A compiled kernel, as ``SYMBOL.json`` tells it beside ``SYMBOL.cubin``."""

    name: str
    """The function's name in the cubin."""
    warps: int
    shared_bytes: int
    """Dynamic shared memory."""
    scratch_bytes: int
    """Global scratch memory of one program instance."""


class Parameters:
    """A kernel's parameters: its arguments in order, then two pointers to scratch memory.

    Each stands at a multiple of its own size, as in a C struct.
    """

    def __init__(self, types: Sequence[str]) -> None:
        self.formats = [_format(kind) for kind in types] + list(_SCRATCH_POINTERS)
        self.packed = struct.Struct("@" + "".join(self.formats))

    @property
    def sizes(self) -> list[int]:
        """Bytes of each parameter."""
        return [struct.calcsize(kind) for kind in self.formats]

    @property
    def offsets(self) -> list[int]:
        """Where each parameter begins in the packed form."""
        ends = [
            struct.calcsize("@" + "".join(self.formats[: i + 1])) for i in range(len(self.formats))
        ]
        return [end - size for end, size in zip(ends, self.sizes, strict=True)]


def entry_parameter_sizes(ptx: str) -> list[int]:
    """Return the bytes of each parameter that a PTX entry declares."""
    entry = _ENTRY.search(ptx)
    declared = entry.group(2).split(",") if entry else []
    return [int(found.group(1)) // 8 for line in declared if (found := _PARAM.search(line))]


def _format(kind: str) -> str:
    return "Q" if kind.startswith("*") else _FORMATS[kind]
