"""A document's file: its front matter, checked, and the Markdown below (pure)."""

import re
from collections.abc import Iterator
from typing import Final

from knowledge.document import Document, FrontMatter
from operator_registry.document import DocumentError, find_text_fault, parse_document
from operator_registry.fault import Fault
from operator_registry.validation import validate

LONGEST_TEXT_BYTES: Final = 12 * 1024
"""A document is read whole, among others, by models with small windows."""
_FENCE: Final = "---"
_URL: Final = re.compile(r"https?://[^\s/]+\.[^\s/]+(/\S*)?")
_CODE_FENCE: Final = re.compile(r"^```", re.MULTILINE)


def read_document(path: str, content: str) -> tuple[Document | None, tuple[Fault, ...]]:
    """Return the document of a file, None where it has none, and every fault that was found.

    Args:
        path: Below the library's folder, with the ending ``.md``.
        content: The file's text.
    """
    if fault := find_text_fault(path, content):
        return None, (fault,)
    head, text, line = _split(content)
    if head is None:
        message = "has no front matter"
        remedy = f"begin with `{_FENCE}`, `key: value` lines and `{_FENCE}`"
        return None, (Fault(path=path, line=1, message=message, remedy=remedy),)
    try:
        # A line for the fence, so that faults tell the file's own lines.
        root, faults = parse_document(path, f"\n{head}")
    except DocumentError as error:
        return None, error.faults
    front, findings = validate(FrontMatter, root)
    faults += tuple(
        Fault(path=path, line=root.line_of(f.where), message=f.message, remedy=f.remedy)
        for f in findings
    )
    faults += tuple(_text_faults(path, text, line))
    if front is None:
        return None, faults
    for place, source in enumerate(front.sources):
        if not _URL.fullmatch(source):
            where = root.line_of(("sources", place))
            message = f"the source {source!r} is no address"
            remedy = "write where it can be read: https://..."
            faults += (Fault(path=path, line=where, message=message, remedy=remedy),)
    name = path.removesuffix(".md")
    return Document(name=name, text=text.strip() + "\n", **dict(front)), faults


def _split(content: str) -> tuple[str | None, str, int]:
    """Return the front matter, the text below it, and the line at which that begins."""
    lines = content.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].rstrip() != _FENCE:
        return None, content, 1
    ends = [place for place, line in enumerate(lines) if place and line.rstrip() == _FENCE]
    if not ends:
        return None, content, 1
    return "\n".join(lines[1 : ends[0]]), "\n".join(lines[ends[0] + 1 :]), ends[0] + 2


def _text_faults(path: str, text: str, line: int) -> Iterator[Fault]:
    if not text.strip():
        yield Fault(path=path, line=line, message="has no text", remedy="write it")
    if (size := len(text.encode())) > LONGEST_TEXT_BYTES:
        message = f"has {size} bytes of text, over {LONGEST_TEXT_BYTES}"
        yield Fault(path=path, line=line, message=message, remedy="make two documents of it")
    fences = list(_CODE_FENCE.finditer(text))
    if len(fences) % 2:
        where = line + text.count("\n", 0, fences[-1].start())
        message = "a code fence is not closed"
        yield Fault(path=path, line=where, message=message, remedy="close it with ```")
