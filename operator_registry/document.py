"""A YAML document whose every part knows its line; parsed with care, never constructed."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from operator_registry.fault import Fault

LARGEST_FILE_BYTES = 256 * 1024
DEEPEST_LEVEL = 32

Key = str | int
Path = tuple[Key, ...]

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml, where PyYAML has it
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
_INTEGER = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}
_LONGEST_NUMBER = 40


@dataclass(frozen=True)
class Node:
    """A part of a document: a scalar, a list of nodes or a mapping of keys to nodes."""

    value: "str | int | float | bool | list[Node] | dict[str, Node] | None"
    line: int
    key_lines: dict[str, int] = field(default_factory=dict)
    """For a mapping: the line of each key."""

    def plain(self) -> Any:  # noqa: ANN401 - whatever the document holds
        """Return the part as plain lists, dicts and scalars."""
        match self.value:
            case dict():
                return {key: node.plain() for key, node in self.value.items()}
            case list():
                return [node.plain() for node in self.value]
            case scalar:
                return scalar

    def child(self, key: Key) -> "Node | None":
        """Return the part under a key or an index, or None."""
        if isinstance(self.value, dict) and isinstance(key, str):
            return self.value.get(key)
        if isinstance(self.value, list) and isinstance(key, int) and key < len(self.value):
            return self.value[key]
        return None

    def line_of(self, path: Path) -> int:
        """Return the line of the part that the path leads to, or of the nearest above it."""
        node, line = self, self.line
        for key in path:
            found = node.child(key)
            line = node.key_lines.get(str(key), line if found is None else found.line)
            if found is None:
                return line
            node = found
        return line


class DocumentError(Exception):
    """The text is no document that can be looked at further; `faults` says why."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        super().__init__("; ".join(str(fault) for fault in faults))
        self.faults = faults


def parse_document(path: str, text: str) -> tuple[Node, tuple[Fault, ...]]:
    """Return the document and the faults that did not stop its parsing, such as a key given twice.

    Scalars are read as YAML 1.2 reads them: ``no`` is a text and ``1e-6`` is a number.

    Raises:
        DocumentError: The text is no YAML mapping, or it uses what can be abused (anchors, tags).
    """
    text = text.removeprefix("\ufeff")
    if fault := find_text_fault(path, text):
        raise DocumentError((fault,))
    composer = _Composer(path, text)
    try:
        root = composer.compose()
    except yaml.MarkedYAMLError as error:
        raise DocumentError((_syntax_fault(path, text, error),)) from error
    except yaml.YAMLError as error:
        fault = Fault(path=path, line=1, message=f"is no YAML: {error}", remedy="mend the syntax")
        raise DocumentError((fault,)) from error
    if composer.fatal:
        raise DocumentError(tuple(composer.fatal))
    if not isinstance(root.value, dict):
        message = "is empty" if root.value is None else "is no mapping of keys to values"
        fault = Fault(path=path, line=1, message=message, remedy="write `key: value` lines")
        raise DocumentError((fault,))
    return root, tuple(composer.duplicates)


def find_text_fault(path: str, text: str) -> Fault | None:
    """Return what makes a file unreadable as text, if anything does.

    Bytes that are no UTF-8 are expected as lone surrogates (``errors="surrogateescape"``).
    """
    if len(text.encode(errors="surrogateescape")) > LARGEST_FILE_BYTES:
        message = f"is larger than {LARGEST_FILE_BYTES // 1024} KiB"
        return Fault(path=path, line=1, message=message, remedy="shorten it")
    bad = _UNPRINTABLE.search(text)
    if bad is None:
        return None
    line = text.count("\n", 0, bad.start()) + 1
    code = ord(bad.group())
    if 0xDC80 <= code <= 0xDCFF:  # noqa: PLR2004 - the range of surrogateescape
        message = f"byte 0x{code - 0xDC00:02x} is no UTF-8"
        return Fault(path=path, line=line, message=message, remedy="save the file as UTF-8")
    message = f"holds the control character U+{code:04X}"
    return Fault(path=path, line=line, message=message, remedy="remove it")


class _Composer:
    """Builds nodes from the parser's events, which come one by one: abuse stops early."""

    def __init__(self, path: str, text: str) -> None:
        self.fatal: list[Fault] = []
        self.duplicates: list[Fault] = []
        self._path = path
        self._events: Iterator[Any] = yaml.parse(text, Loader=_LOADER)

    def compose(self) -> Node:
        root = Node(None, 1)
        documents = 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    self._refuse(event, "a second document begins", "keep one document a file")
                    return root
            elif isinstance(event, yaml.NodeEvent):
                root = self._node(event, 0)
                if self.fatal:
                    return root
        return root

    def _node(self, event: Any, level: int) -> Node:  # noqa: ANN401 - PyYAML's events
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            self._refuse(event, f"uses the alias *{event.anchor}", "write the value out")
            return Node(None, line)
        if event.anchor is not None:
            self._refuse(event, f"sets the anchor &{event.anchor}", "write each value out")
        if event.tag is not None and not event.tag.startswith("tag:yaml.org,2002:str"):
            self._refuse(event, f"uses the tag {event.tag}", "remove it")
        if level > DEEPEST_LEVEL:
            message = f"nests deeper than {DEEPEST_LEVEL} levels"
            self._refuse(event, message, "flatten it")
            raise DocumentError(tuple(self.fatal))
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(line, level)
        if isinstance(event, yaml.SequenceStartEvent):
            return Node(
                [self._node(e, level + 1) for e in self._until(yaml.SequenceEndEvent)], line
            )
        plain = not event.style and event.tag is None
        return Node(_scalar(event.value) if plain else event.value, line)

    def _mapping(self, line: int, level: int) -> Node:
        members: dict[str, Node] = {}
        lines: dict[str, int] = {}
        for key_event in self._until(yaml.MappingEndEvent):
            key_line = key_event.start_mark.line + 1
            if isinstance(key_event, yaml.ScalarEvent):
                key = key_event.value
            else:
                self._refuse(key_event, "has a key that is no plain word", "name it with a word")
                self._node(key_event, level + 1)
                key = ""
            value = self._node(next(self._events), level + 1)
            if key in members:
                self.duplicates.append(
                    Fault(
                        path=self._path,
                        line=key_line,
                        message=f"key {key!r} stands here again, first on line {lines[key]}",
                        remedy="keep one of the two",
                    )
                )
                continue
            members[key], lines[key] = value, key_line
        return Node(members, line, lines)

    def _until(self, end: type[Any]) -> Iterator[Any]:
        for event in self._events:
            if isinstance(event, end):
                return
            yield event

    def _refuse(self, event: Any, message: str, remedy: str) -> None:  # noqa: ANN401
        line = event.start_mark.line + 1
        self.fatal.append(Fault(path=self._path, line=line, message=message, remedy=remedy))


def _scalar(text: str) -> str | int | float | bool | None:
    if text.lower() in _WORDS and text in {text.lower(), text.upper(), text.title()}:
        return _WORDS[text.lower()]
    if len(text) <= _LONGEST_NUMBER:
        if _INTEGER.fullmatch(text):
            return int(text)
        if _FLOAT.fullmatch(text):
            return float(text)
    return text


def _syntax_fault(path: str, text: str, error: yaml.MarkedYAMLError) -> Fault:
    mark = error.problem_mark or error.context_mark
    line = mark.line + 1 if mark else 1
    lines = text.splitlines()
    here = lines[line - 1] if line <= len(lines) else ""
    if "\t" in here[: len(here) - len(here.lstrip())]:
        message, remedy = "is indented with a tab", "indent with spaces"
    else:
        message = f"is no YAML: {error.problem or error.context}"
        remedy = "mend the syntax here or on the line above (brackets, quotes, colons, indentation)"
    return Fault(path=path, line=line, message=message, remedy=remedy)
