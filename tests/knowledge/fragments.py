"""The code in the documents: cut out, and built as far as a machine without a device can."""

import ast
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from knowledge.document import Document
from optimizer.candidate import load_tunables
from optimizer.targets.cpu import COMPILER, FLAGS
from optimizer.targets.cuda import CudaTarget
from optimizer.targets.target import Artefact, Build, BuildError, Constant, Instance
from optimizer.targets.translation_unit import PRELUDE

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_CONSTANTS: dict[str, Constant] = {
    "BLOCK": 128, "ROWS": 4, "EVEN": False, "M": 64, "N": 64, "K": 32, "D": 64, "GROUP": 8,
    "TAPS": 3, "SCANNED": 1024, "SPLITS": 4, "STEPS": 12, "DIES": 8,
}  # fmt: skip
_HALVES = frozenset({"attend", "conv1d", "product"})
"""Kernels whose tensors are in float16."""
_WHOLE = ("ids_ptr", "lengths_ptr", "starts_ptr", "places_ptr", "sizes_ptr", "place_ptr")


@dataclass(frozen=True)
class Fragment:
    """A piece of code in a document."""

    document: str
    number: int
    language: str
    code: str

    def __str__(self) -> str:
        """Return where it stands."""
        return f"{self.document}:{self.number}"


def fragments_of(document: Document) -> Iterator[Fragment]:
    """Yield the document's pieces of code."""
    for number, found in enumerate(_BLOCK.finditer(document.text), start=1):
        yield Fragment(document.name, number, found[1], found[2])


def kernels_of(fragment: Fragment) -> Iterator[ast.FunctionDef]:
    """Yield the Triton kernels of a piece: jitted functions that return nothing."""
    for node in ast.parse(fragment.code).body:
        jitted = isinstance(node, ast.FunctionDef) and node.decorator_list
        if jitted and not any(isinstance(part, ast.Return) for part in ast.walk(node)):
            assert isinstance(node, ast.FunctionDef)
            yield node


def build_triton(fragment: Fragment, folder: Path) -> str:
    """Return what Triton says against a piece's kernels; empty where it takes them all."""
    instances = tuple(_instance(kernel) for kernel in kernels_of(fragment))
    build = Build(code=fragment.code, instances=instances)
    (built,) = CudaTarget("sm_90", shared_limit_bytes=232448).build([build], [folder])
    match built:
        case BuildError():
            return str(built)
        case Artefact():
            return ""


def check_cpp(fragment: Fragment, folder: Path) -> str:
    """Return what g++ says against a piece of C++; empty where it takes it."""
    tunables = load_tunables(fragment.code, language="cpp")
    macros = [f"#define {name} {values[0]}" for name, values in tunables.items()]
    macros += ["#define T bf16"] if re.search(r"\bT\b", fragment.code) else []
    text = "\n".join((PRELUDE, *macros, "#define KERNEL(name) name", fragment.code))
    path = folder / "fragment.cpp"
    path.write_text(text, encoding="utf-8")
    done = subprocess.run(
        (COMPILER, *FLAGS, "-march=x86-64-v4", "-fsyntax-only", str(path)),
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr


def _instance(kernel: ast.FunctionDef) -> Instance:
    constants, types = [], []
    for parameter in kernel.args.args:
        if parameter.annotation is not None:
            constants.append((parameter.arg, _CONSTANTS[parameter.arg]))
        else:
            types.append(_type_of(parameter.arg, kernel.name))
    return Instance(
        kernel=kernel.name,
        types=tuple(types),
        divisible=tuple(False for _ in types),
        constants=tuple(constants),
        warps=4,
        stages=1,
    )


def _type_of(name: str, kernel: str) -> str:
    if name in _WHOLE:
        return "*i64"
    if name.endswith("_ptr"):
        return "*fp16" if kernel in _HALVES else "*fp32"
    return "fp32" if name == "scale" else "i32"
