"""C++ files and their plans from sketches of kernels."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from optimizer.candidate import Candidate
from optimizer.plan import Buffer, Launch, Plan
from optimizer.propose.synthesis.cpp_loops import CppPointwise
from optimizer.propose.synthesis.cpp_math import functions_for
from optimizer.propose.synthesis.cpp_rows import CppRows
from optimizer.propose.synthesis.cpp_text import type_of
from optimizer.propose.synthesis.emission import indented
from optimizer.propose.synthesis.formula import formula
from optimizer.propose.synthesis.regions import LoopRegion
from optimizer.propose.synthesis.signature import Signature
from optimizer.propose.synthesis.sketch import Sketch

_WIDTH = 96
_HEADERS = (("_mm256", "immintrin.h"), ("std::unique_ptr", "memory"), ("numeric_limits", "limits"))


@dataclass(frozen=True)
class CppForm:
    """How a loop region is written."""

    kept: bool = False
    streamed: bool = False
    interleaved: bool = False

    @property
    def note(self) -> str:
        """Return the form in words."""
        parts = [
            "keeps costly values of a row" if self.kept else "",
            "writes past the cache" if self.streamed else "",
            "searches for many at a time" if self.interleaved else "",
        ]
        return ", ".join(part for part in parts if part)


def sketch_loop(name: str, region: LoopRegion, signature: Signature, form: CppForm) -> Sketch:
    """Return a loop region's kernel."""
    loop: CppRows | CppPointwise
    if region.reduces:
        loop = CppRows(region, signature, streamed=form.streamed, kept=form.kept)
    else:
        loop = CppPointwise(region, signature, streamed=form.streamed, interleaved=form.interleaved)
    body = loop.lines()
    return Sketch(
        code=(
            *documented(formula(region), signature),
            f'extern "C" void KERNEL({name})({parameters(signature)}) {{',
            *indented(body, 2),
            "}",
        ),
        steps=(Launch(kernel=name, arguments=signature.names),),
        functions=tuple(loop.printer.functions),
        tunables=loop.tunables,
        chosen=default_choice(loop.tunables),
        note=", ".join(part for part in (region.kind, form.note) if part),
    )


def default_choice(tunables: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    """Return the middle of each tunable's values, the likeliest without any measurement."""
    return {name: values[(len(values) - 1) // 2] for name, values in tunables.items()}


def documented(lines: Iterable[str], signature: Signature) -> list[str]:
    """Return a comment with a kernel's formula and what it reads and writes."""
    reads = ", ".join(f"{name} {dtype}" for name, dtype in signature.reads.items())
    writes = ", ".join(f"{name} {dtype}" for name, dtype in signature.writes.items())
    return [f"// {line}" for line in (*lines, f"reads {reads or 'nothing'}; writes {writes}")]


def parameters(signature: Signature) -> str:
    """Return the parameters of a kernel."""
    return ", ".join((
        *(f"const {type_of(d)}* __restrict {name}" for name, d in signature.reads.items()),
        *(f"{type_of(d)}* __restrict {name}" for name, d in signature.writes.items()),
        *(f"int64_t {name}" for name in signature.sizes),
        *(f"double {name}" for name in signature.numbers),
    ))  # fmt: skip


def write_cpp(title: str, sketches: Sequence[Sketch]) -> str:
    """Return the text of a C++ file with the kernels of the sketches."""
    code = [line for sketch in sketches for line in ("", *sketch.code)]
    names = [name for sketch in sketches for name in sketch.functions]
    functions = [text.rstrip("\n") for text in functions_for(dict.fromkeys(names))]
    everything = "\n".join((*functions, *code))
    headers = ["cmath", "cstdint", "cstdlib", "cstring"]
    headers += [header for token, header in _HEADERS if token in everything]
    tunables = joined_tunables(sketches)
    literal = ", ".join(f'"{name}": {values}' for name, values in sorted(tunables.items()))
    return "\n".join((
        *(f"// {line}" for line in textwrap.wrap(title, _WIDTH - 3)),
        f"// TUNABLES = {{{literal}}}",
        *(f"#include <{header}>" for header in sorted(headers)),
        *(part for text in functions for part in ("", text)),
        *wrapped(code),
        "",
    ))  # fmt: skip


def joined_tunables(sketches: Sequence[Sketch]) -> dict[str, tuple[int, ...]]:
    """Return the tunables of all kernels of a file; those of one name are one."""
    joined: dict[str, tuple[int, ...]] = {}
    for sketch in sketches:
        for name, values in sketch.tunables.items():
            joined[name] = tuple(sorted({*joined.get(name, ()), *values}))
    return joined


def make_candidate(
    sketches: Sequence[Sketch],
    *,
    language: str,
    code: str,
    buffers: Mapping[str, Buffer],
) -> Candidate:
    """Return the candidate that runs the sketches' kernels one after another."""
    chosen: dict[str, int] = {}
    for sketch in reversed(sketches):
        chosen |= sketch.chosen
    plan = Plan.model_validate({
        "language": language,
        "let": {k: v for sketch in sketches for k, v in sketch.let.items()},
        "buffers": {**buffers, **{k: v for s in sketches for k, v in s.buffers.items()}},
        "steps": tuple(step for sketch in sketches for step in sketch.steps),
    })  # fmt: skip
    note = "; ".join(dict.fromkeys(sketch.note for sketch in sketches if sketch.note))
    return Candidate(code=code, plan=plan, chosen=chosen, origin="synthesis", note=note)


def wrapped(lines: Iterable[str], *, python: bool = False) -> list[str]:
    """Return lines of code with long ones broken; in Python only within brackets."""
    return [part for line in lines for part in _broken(line, python=python)]


def _broken(line: str, *, python: bool) -> list[str]:
    if line.startswith("//"):
        return textwrap.wrap(line, _WIDTH, subsequent_indent="//   ")
    parts: list[str] = []
    indent = len(line) - len(line.lstrip())
    depth = 0
    while len(line) > _WIDTH and not line.lstrip().startswith("#"):
        if python and not parts and _cut(line, indent, depth if python else 1) is None:
            line = _bracketed(line)
        cut = _cut(line, indent, depth if python else 1)
        if cut is None:
            break
        depth += _nesting(line[:cut])[-1]
        parts.append(line[:cut].rstrip())
        line = " " * (indent + 4) + line[cut:].lstrip()
    return [*parts, line]


def _bracketed(line: str) -> str:
    """Return an assignment with its right side in brackets, so that it can be broken."""
    name, sign, value = line.partition(" = ")
    return f"{name} = ({value})" if sign and name.strip().isidentifier() else line


def _cut(line: str, indent: int, depth: int) -> int | None:
    """Return where to break a line: after the last comma that fits, else at another sign."""
    least = indent + (_WIDTH - indent) // 3
    nesting = _nesting(line)
    for tokens in ((", ",), (" = ", " + ", " - ", " * ", " / ", " ? ", " : ", " & ", " | ")):
        places = [
            place + len(token)
            for token in tokens
            for place in _all(line, token)
            if least < place + len(token) <= _WIDTH and depth + nesting[place] > 0
        ]
        if places:
            return max(places)
    return None


def _nesting(line: str) -> list[int]:
    """Return for each character how many brackets are open after it."""
    deep = 0
    found = []
    for character in line:
        deep += (character in "([{") - (character in ")]}")
        found.append(deep)
    return found


def _all(line: str, token: str) -> Iterable[int]:
    place = line.find(token)
    while place >= 0:
        yield place
        place = line.find(token, place + 1)
