"""A draft of the synthesiser with more values for each tunable than a search is offered."""

import ast
import re
from collections.abc import Mapping
from typing import Final

from optimizer.candidate import Candidate, load_tunables
from optimizer.landscapes.space import Tunables

_BOUNDS: Final[Mapping[str, tuple[int, int]]] = {
    "BLOCK": (16, 16384),
    "GRAIN": (256, 1 << 20),
    "LANES": (8, 512),
    "PER_BUCKET": (1, 64),
    "PER_WARP": (32, 4096),
    "PIECE": (128, 16384),
    "PROGRAMS": (66, 8448),
    "SCANNED": (64, 16384),
    "SPAN": (32, 8192),
    "TILE": (128, 16384),
    "WARPS": (1, 32),
}
"""The least and greatest value that makes sense for each of the synthesiser's tunables."""
_CPP_LINE = re.compile(r"^//\s*TUNABLES\s*=.*$", re.MULTILINE)


def widened(draft: Candidate, *, by: int) -> str:
    """Return the draft's code with `by` values more at each end of every tunable, within reason.

    Args:
        draft: The draft.
        by: How often the greatest value is doubled, and the least halved.

    Raises:
        KeyError: A tunable that no bounds are known for.
    """
    language = draft.plan.language
    tunables = load_tunables(draft.code, language=language)
    wide = {name: _widened(name, values, by) for name, values in tunables.items()}
    return _with_tunables(draft.code, wide, language=language)


def _widened(name: str, values: tuple[int, ...], by: int) -> tuple[int, ...]:
    least, greatest = _BOUNDS[name]
    below = (min(values) >> shift for shift in range(by, 0, -1))
    above = (max(values) << shift for shift in range(1, by + 1))
    return (
        *(value for value in below if value >= least),
        *values,
        *(value for value in above if value <= greatest),
    )


def _with_tunables(code: str, tunables: Tunables, *, language: str) -> str:
    literal = "{" + ", ".join(f'"{n}": {_tuple(v)}' for n, v in tunables.items()) + "}"
    if language == "cpp":
        return _CPP_LINE.sub(lambda _: f"// TUNABLES = {literal}", code, count=1)
    lines = code.splitlines(keepends=True)
    for node in ast.parse(code).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "TUNABLES":
            end = node.end_lineno or node.lineno
            lines[node.lineno - 1 : end] = [f"TUNABLES = {literal}\n"]
    return "".join(lines)


def _tuple(values: tuple[int, ...]) -> str:
    return f"({values[0]},)" if len(values) == 1 else f"({', '.join(map(str, values))})"
