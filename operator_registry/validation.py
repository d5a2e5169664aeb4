"""A document against a record class: every error in words, each with a remedy."""

import json
import re
from collections.abc import Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, TypeGuard, TypeVar, Union, get_args, get_origin

from pydantic import Tag, ValidationError
from pydantic_core import ErrorDetails

from operator_registry.document import Node
from operator_registry.fault import Finding, dotted, name_one_of
from operator_registry.record import Record

AnyRecord = TypeVar("AnyRecord", bound=Record)
_Where = tuple[str | int, ...]

_WANTED = {
    "string_type": "a text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing_size": "a smaller number",
    "float_type": "a number",
    "bool_type": "true or false",
    "dict_type": "a mapping of keys to values",
    "model_type": "a mapping of keys to values",
    "model_attributes_type": "a mapping of keys to values",
    "tuple_type": "a list",
}
_NAMES = {  # the first characters of the patterns in record.py and spec.py
    "^[a-z][": "lower-case letters, digits and _, a letter first, 64 at most",
    "^[a-z0-9][": "lower-case letters, digits, dots, dashes and _, 64 at most",
    "^[A-Z][": "capital letters, digits and _, a letter first, 16 at most",
}


def validate(kind: type[AnyRecord], root: Node) -> tuple[AnyRecord | None, tuple[Finding, ...]]:
    """Return the record that the document holds, or None and every reason why it holds none."""
    try:
        return kind.model_validate_json(json.dumps(root.plain()), strict=True), ()
    except ValidationError as error:
        errors = error.errors(include_url=False)
    # A union tells one error for each of its members, all at the same place.
    groups: dict[_Where, list[ErrorDetails]] = {}
    for each in errors:
        groups.setdefault(_walk(kind, each["loc"])[0], []).append(each)
    findings = (_explain(kind, root, where, group) for where, group in groups.items())
    return None, tuple(finding for finding in findings if finding)


def _explain(  # noqa: PLR0911 - one case for each sort of error
    kind: type[Record], root: Node, where: _Where, group: Sequence[ErrorDetails]
) -> Finding | None:
    first = group[0]
    context: Mapping[str, Any] = first.get("ctx", {})
    match first["type"]:
        case "missing":
            return Finding(where, f"{dotted(where)} is missing", "add it")
        case "extra_forbidden":
            keys = _keys(_walk(kind, first["loc"][:-1])[1])
            remedy = name_one_of(str(where[-1]), keys)
            return Finding(where, f"unknown key {dotted(where)}", remedy)
        case "literal_error" | "union_tag_invalid":
            return _unknown_word(root, where, context, with_variable=len(group) > 1)
        case "union_tag_not_found":
            tags = ", ".join(_members(_walk(kind, first["loc"])[1]))
            return Finding(where, f"{dotted(where)} has no kind", f"add `kind:`, one of {tags}")
        case "string_pattern_mismatch":
            pattern = str(context["pattern"])
            allowed = next(words for start, words in _NAMES.items() if pattern.startswith(start))
            word = where[-1] if first["loc"][-1] == "[key]" else _at(root, where)
            return Finding(where, f"{dotted(where)}: {word!r} is no valid name", f"use {allowed}")
        case name if name in _WANTED:
            return _wrong_type(root, where, [_WANTED.get(e["type"], "") for e in group])
        case "too_short" if _at(root, where):
            return None  # pydantic says so of a list whose members are all faulty
        case "too_short":
            return Finding(where, f"{dotted(where)} is empty", "add at least one entry")
        case "value_error":
            message = f"{dotted(where)}: {context['error']}"
            return Finding(where, message, "change one of these numbers")
        case _:
            text = first["msg"].removeprefix("Input should be ")
            message = f"{dotted(where)} is {_at(root, where)!r}, must be {text}"
            return Finding(where, message, "change the value")


def _unknown_word(
    root: Node, where: _Where, context: Mapping[str, Any], *, with_variable: bool
) -> Finding:
    if "tag" in context:
        where = (*where, str(context["discriminator"]).strip("'"))
    expected = str(context.get("expected_tags", context.get("expected", "")))
    words = re.findall(r"'([^']*)'", expected) or [expected]  # quoted, unless it is a number
    value = _at(root, where)
    remedy = name_one_of(str(value), words)
    if with_variable and "did you mean" not in remedy:
        remedy += ", or a dtype variable such as T"
    return Finding(where, f"{dotted(where)} is {_describe(value)}, which is not known", remedy)


def _wrong_type(root: Node, where: _Where, wanted: Sequence[str]) -> Finding:
    value = _at(root, where)
    words = " or ".join(dict.fromkeys(word for word in wanted if word))
    remedy = f"write {words}"
    match value:
        case None:
            remedy = "fill it in, or remove the key"
        case bool() | int() | float() if words == "a text":
            remedy = f'write it in quotes: "{json.dumps(value)}"'
        case str() if "number" in words and value.replace("_", "").isdigit():
            remedy = f"write {value.replace('_', '')}, without quotes or underscores"
    message = f"{dotted(where)} should be {words}, is {_describe(value)}"
    return Finding(where, message, remedy)


def _describe(value: object) -> str:
    match value:
        case None:
            return "empty"
        case bool():
            return json.dumps(value)
        case str():
            return f"the text {value!r}"
        case int() | float():
            return f"the number {value!r}"
        case list():
            return "a list"
        case _:
            return "a mapping"


def _at(root: Node, where: _Where) -> Any:  # noqa: ANN401 - whatever the document holds
    node: Node | None = root
    for key in where:
        node = node.child(key) if node else None
    return node.plain() if node else None


def _walk(kind: type[Record], location: Sequence[str | int]) -> tuple[_Where, Any]:
    """Return the keys of an error's location, without pydantic's tags, and the type found there."""
    where: list[str | int] = []
    here: Any = kind
    for element in location:
        members = _members(here)
        only = next(iter(members.values())) if len(members) == 1 else None
        if element == "[key]":
            continue
        if _is_record(only):
            where.append(element)
            here = _fields(only).get(str(element))
        elif get_origin(only) in {dict, tuple}:
            where.append(element)
            here = get_args(only)[1 if get_origin(only) is dict else 0]
        elif element in members:
            here = members[str(element)]
    return tuple(where), here


def _members(annotation: Any, tag: str = "") -> dict[str, Any]:  # noqa: ANN401 - types have no type
    """Return the members of a union by pydantic's tag for each; anything else is its only one."""
    origin = get_origin(annotation)
    if origin is Annotated:
        tags = [note.tag for note in get_args(annotation)[1:] if isinstance(note, Tag)]
        return _members(get_args(annotation)[0], *tags)
    if origin in {Union, UnionType}:
        arms = (arm for arm in get_args(annotation) if arm is not NoneType)
        return {t: member for arm in arms for t, member in _members(arm).items()}
    if _is_record(annotation) and not tag and "kind" in annotation.model_fields:
        tag = annotation.model_fields["kind"].default
    return {tag or str(annotation): annotation}


def _is_record(annotation: object) -> TypeGuard[type[Record]]:
    return isinstance(annotation, type) and issubclass(annotation, Record)


def _fields(kind: type[Record]) -> dict[str, Any]:
    return {field.alias or name: field.annotation for name, field in kind.model_fields.items()}


def _keys(annotation: Any) -> list[str]:  # noqa: ANN401 - types have no type
    records = [member for member in _members(annotation).values() if _is_record(member)]
    return list(dict.fromkeys(key for record in records for key in _fields(record)))
