from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.document import Document, Kind
from knowledge.library import BASE, Library, LibraryError, Query, make_index
from tests.knowledge.situations import CPU, H200

SHIPPED = Library.load()
GOOD = """---
title: Sums
kind: debugging
languages: [triton]
hardware: ["sm_9*"]
regions: [row reduction]
answers: ["sums are * wrong"]
sources: ["https://example.org/sums"]
---
Add up in order.
"""


def document(name: str, text: str = "text", kind: Kind = "debugging", **how: object) -> Document:
    return Document(name=name, title=name, text=text, kind=kind, **how)


def names(found: tuple[Document, ...]) -> list[str]:
    return [each.name for each in found]


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def test_a_document_is_named_by_its_path(tmp_path: Path) -> None:
    (found,) = Library.load(write(tmp_path, debugging__sums=GOOD)).documents

    assert found == Document(
        name="debugging/sums",
        title="Sums",
        text="Add up in order.\n",
        sources=("https://example.org/sums",),
        kind="debugging",
        languages=("triton",),
        hardware=("sm_9*",),
        regions=("row reduction",),
        answers=("sums are * wrong",),
    )


def test_every_fault_of_every_file_has_its_line_and_a_remedy(tmp_path: Path) -> None:
    folder = write(
        tmp_path,
        a=GOOD.replace("kind: debugging", "kind: debuging"),
        b=GOOD.replace("title: Sums\n", ""),
        c="no front matter",
        d=GOOD.replace("https://example.org/sums", "a book"),
        e=GOOD.replace("Add up in order.", "```python\nx = 1"),
        f=GOOD.replace("regions: [row reduction]", "regions: [rows]"),
        g=GOOD.replace("languages", "langages"),
        h=GOOD.replace("Add up in order.", "word " * 3000),
        i="---\ntitle: [\n---\ntext\n",
        j=GOOD.replace("Add up in order.\n", ""),
        k="---\ntitle: never closed\n",
    )

    with pytest.raises(LibraryError) as raised:
        Library.load(folder)

    said = str(raised.value).splitlines()
    assert [line.split(": ")[0] for line in said] == [
        "a.md:3", "b.md:2", "c.md:1", "d.md:8", "e.md:10", "f.md:6", "g.md:4", "h.md:10", "i.md:3",
        "j.md:10", "k.md:1",
    ]  # fmt: skip
    assert "did you mean 'debugging'?" in said[0]
    assert "did you mean 'languages'?" in said[6]
    assert all("; " in line for line in said)


def test_constraints_come_first_whatever_is_asked() -> None:
    library = Library(
        (
            document("a", "softmax of rows", answers=("softmax",)),
            document("b", "rules", "constraints"),
        )
    )

    assert names(library.find(Query(text="softmax"))) == ["b", "a"]


def test_documents_of_other_languages_and_devices_are_left_out() -> None:
    library = Library(
        (
            document("cpp", "sum", languages=("cpp",)),
            document("triton", "sum", languages=("triton",)),
            document("hopper", "sum", hardware=("sm_9*",)),
            document("cdna3", "sum", hardware=("gfx942",)),
            document("any", "sum"),
        )
    )
    query = Query(text="sum", language="triton", hardware=("h200", "sm_90", "cuda", "nvidia"))

    assert set(names(library.find(query))) == {"triton", "hopper", "any"}


def test_an_answer_to_the_error_outweighs_the_words() -> None:
    library = Library(
        (
            document("wordy", "bytes of shared memory, shared memory, memory " * 5),
            document("answer", "other", answers=("wants * bytes of shared memory",)),
        )
    )
    query = Query(error="kernel wants 262144 bytes of shared memory, over 232448")

    assert library.rank(query)[0].document.name == "answer"


def test_what_does_not_fit_is_passed_over_for_what_does() -> None:
    library = Library((document("a", "sum " * 100), document("b", "sum")))

    assert names(library.find(Query(text="sum"), most_bytes=50)) == ["b"]


def test_nothing_that_speaks_for_a_document_finds_none() -> None:
    assert Library((document("a", "sum"),)).find(Query(text="zebra")) == ()


@given(
    st.text(max_size=200),
    st.text(max_size=200),
    st.sampled_from([None, "cpp", "triton"]),
    st.sampled_from([(), ("h200", "sm_90", "cuda", "nvidia"), ("cpu",)]),
    st.integers(0, 10),
    st.integers(0, 20000),
)
def test_any_query_is_answered_within_its_limits(  # noqa: PLR0913, PLR0917 - one for each part of a query
    text: str,
    error: str,
    language: str | None,
    hardware: tuple[str, ...],
    most: int,
    most_bytes: int,
) -> None:
    query = Query(text=text, error=error, language=language, hardware=hardware)
    found = SHIPPED.find(query, most, most_bytes)

    assert len(found) <= most
    assert sum(each.size_bytes for each in found) <= most_bytes
    kinds = [each.kind == "constraints" for each in found]
    assert kinds == sorted(kinds, reverse=True)
    assert len(set(names(found))) == len(found)


@pytest.mark.parametrize("hardware", [H200, CPU], ids=lambda hardware: hardware.name)
def test_a_first_draft_is_told_the_rules_and_the_device(hardware: object) -> None:
    spec = H200 if hardware is H200 else CPU
    query = Query(
        language=spec.languages[0],
        hardware=(spec.name, spec.compile.arch, spec.target),
        regions=("row reduction",),
    )
    found = SHIPPED.find(query)

    assert [each.kind for each in found[:2]] == ["constraints", "constraints"]
    assert "patterns/row_reduction" in names(found)
    assert any(each.kind == "hardware" for each in found)


def test_the_index_links_every_document() -> None:
    page = make_index(SHIPPED)

    assert all(f"({each.name}.md)" in page for each in SHIPPED.documents)
    assert len(list(BASE.rglob("*.md"))) == len(SHIPPED.documents) + 1
