"""The documents that ship: sound, of a readable length, and their code builds."""

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from knowledge.document import Document, RegionKind
from knowledge.library import BASE, INDEX, Library, make_index
from tests.knowledge.fragments import (
    Fragment,
    build_triton,
    check_cpp,
    fragments_of,
    kernels_of,
)

LIBRARY = Library.load()
FRAGMENTS = [fragment for document in LIBRARY.documents for fragment in fragments_of(document)]
LINES = (30, 125)
LONGEST_LINE = 160


def of(language: str) -> list[Fragment]:
    return [fragment for fragment in FRAGMENTS if fragment.language == language]


def named(document: Document) -> str:
    return document.name


def test_every_kind_has_documents() -> None:
    assert {document.kind for document in LIBRARY.documents} == {
        "constraints", "language", "hardware", "pattern", "debugging", "performance",
    }  # fmt: skip


def test_every_kind_of_region_has_a_pattern() -> None:
    covered = {r for d in LIBRARY.documents if d.kind == "pattern" for r in d.regions}

    assert covered == set(RegionKind.__args__)  # type: ignore[attr-defined]


@pytest.mark.parametrize("document", LIBRARY.documents, ids=named)
def test_a_document_has_a_readable_length(document: Document) -> None:
    lines = document.text.splitlines()

    assert LINES[0] <= len(lines) <= LINES[1]
    assert max(map(len, lines)) <= LONGEST_LINE or "|" in max(lines, key=len)


def test_the_constraints_leave_room_for_others() -> None:
    constraints = [d.size_bytes for d in LIBRARY.documents if d.kind == "constraints"]

    assert sum(constraints) < 8 * 1024


@pytest.mark.parametrize("fragment", of("json"), ids=str)
def test_plans_in_documents_are_json(fragment: Fragment) -> None:
    assert "steps" in json.loads(fragment.code)


@pytest.mark.parametrize("fragment", of("python"), ids=str)
def test_python_in_documents_parses(fragment: Fragment) -> None:
    assert ast.parse(fragment.code).body


@pytest.mark.drill
def test_every_kernel_in_documents_is_taken_by_triton(tmp_path: Path) -> None:
    kernels = [fragment for fragment in of("python") if list(kernels_of(fragment))]
    said = {str(f): build_triton(f, tmp_path / str(i)) for i, f in enumerate(kernels)}

    assert len(kernels) >= 15
    assert {place: log for place, log in said.items() if log} == {}


@pytest.mark.parametrize("fragment", of("cpp"), ids=str)
def test_cpp_in_documents_compiles(fragment: Fragment, tmp_path: Path) -> None:
    assert check_cpp(fragment, tmp_path) == ""


def test_code_in_documents_is_of_a_language_that_is_checked() -> None:
    assert {fragment.language for fragment in FRAGMENTS} <= {"python", "cpp", "json"}


def test_what_documents_refer_to_is_there() -> None:
    names = {document.name for document in LIBRARY.documents}
    told = {
        word.strip("`.,;()")
        for document in LIBRARY.documents
        for word in document.text.split()
        if word.strip("`.,;()").startswith(("hardware/", "languages/", "patterns/", "debugging/"))
    }

    assert told <= names


def test_the_index_is_up_to_date() -> None:
    """After a change of a document: ``kernelevolve knowledge > knowledge/base/index.md``."""
    assert (BASE / INDEX).read_text(encoding="utf-8") == make_index(LIBRARY)


@pytest.mark.drill
def test_the_wheel_holds_every_document(tmp_path: Path) -> None:
    root = BASE.parents[1]
    tree = tmp_path / "tree"
    for package in ("operator_registry", "knowledge", "optimizer", "daemon"):
        shutil.copytree(root / package, tree / package)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(root / name, tree)
    built = subprocess.run(
        (
            sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation",
            "--wheel-dir", str(tmp_path), str(tree),
        ),
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    target = tmp_path / "installed"
    subprocess.run((sys.executable, "-m", "zipfile", "-e", str(wheel), str(target)), check=True)
    code = "from knowledge.library import Library; print(len(Library.load().documents))"
    found = subprocess.run(
        (sys.executable, "-c", code), cwd=target, capture_output=True, text=True, check=True
    )

    assert int(found.stdout) == len(LIBRARY.documents)
