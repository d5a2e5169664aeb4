"""What a built library takes from the process that loads it (pure, but for `readelf`)."""

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_UNDEFINED: Final = re.compile(r"\b(?:GLOBAL|WEAK)\s+\w+\s+UND\s+(\S+)")
_HARMLESS: Final = frozenset(
    {
        "__cxa_finalize",
        "__gmon_start__",
        "_ITM_deregisterTMCloneTable",
        "_ITM_registerTMCloneTable",
    }
)
"""What every library refers to, even one that is linked against nothing."""
_LOOKING: Final = frozenset({"dlopen", "dlmopen", "dlsym", "dlvsym", "dl_iterate_phdr", "dladdr"})
"""Functions that find others at run time: with them, a library can call whatever is loaded."""


def foreign_symbols(library: Path) -> tuple[str, ...]:
    """Return the symbols that a library expects of its host process, in order of their names.

    What is linked against (C, C++ and OpenMP run times) carries a version. A symbol without one was
    found nowhere, and is bound to whatever the host happens to hold: PyTorch's kernels, say.
    """
    done = subprocess.run(
        ("readelf", "--dyn-syms", "--wide", str(library)),
        capture_output=True,
        text=True,
        check=False,
    )
    return tuple(sorted(_foreign(_UNDEFINED.findall(done.stdout))))


def _foreign(symbols: Iterable[str]) -> set[str]:
    found = set()
    for symbol in symbols:
        name, _, version = symbol.partition("@")
        if name in _LOOKING or (not version and name not in _HARMLESS):
            found.add(name)
    return found
