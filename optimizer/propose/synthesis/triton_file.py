"""Triton files from sketches of kernels."""

from collections.abc import Mapping, Sequence

from optimizer.propose.synthesis.cpp_file import joined_tunables, wrapped
from optimizer.propose.synthesis.sketch import Sketch
from optimizer.propose.synthesis.triton_math import functions_for


def write_triton(title: str, sketches: Sequence[Sketch]) -> str:
    """Return the text of a Triton file with the kernels of the sketches."""
    names = dict.fromkeys(name for sketch in sketches for name in sketch.functions)
    functions = [text.rstrip("\n") for text in functions_for(names)]
    code = [line for sketch in sketches for line in ("", "", *sketch.code)]
    return "\n".join((
        f'"""{title}"""',
        "",
        "import triton",
        "import triton.language as tl",
        "",
        *_tunables(joined_tunables(sketches)),
        *(part for text in functions for part in ("", "", text)),
        *wrapped(code, python=True),
        "",
    ))  # fmt: skip


def _tunables(tunables: Mapping[str, tuple[int, ...]]) -> list[str]:
    entries = [f'    "{name}": {values},' for name, values in sorted(tunables.items())]
    return ["TUNABLES = {", *entries, "}"] if entries else ["TUNABLES = {}"]
