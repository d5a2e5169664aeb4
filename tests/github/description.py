"""A description in OpenAPI, and where a value is not as its schemas want it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import jsonschema_rs

from tests.github.state import Json

_Validator = jsonschema_rs.Draft202012Validator


@dataclass
class Description:
    whole: Json
    _validators: dict[str, jsonschema_rs.Draft202012Validator] = field(default_factory=dict)

    def resolve(self, part: Json) -> Json:
        """Return a part itself where it only refers to one."""
        while "$ref" in part:
            found = self.whole
            for step in part["$ref"].removeprefix("#/").split("/"):
                found = found[step]
            part = found
        return part

    def find_faults(self, pointer: str, schema: Json, value: object) -> Iterator[str]:
        """Say where a value is not as a schema wants it.

        Args:
            pointer: Names the schema, which is read once.
            schema: A part of the description.
            value: As JSON.
        """
        if pointer not in self._validators:
            components = _translated(self.components_of(schema))
            whole = {"allOf": [_translated(schema)], "components": components}
            self._validators[pointer] = _Validator(whole, validate_formats=True)
        for error in self._validators[pointer].iter_errors(value):
            where = "/".join(str(step) for step in error.instance_path)
            yield f"{where or 'body'}: {error.message[-300:]}"

    def components_of(self, part: object) -> Json:
        """Return the components that a part refers to, at any remove."""
        kept: Json = {}
        left = list(_references(part))
        while left:
            _, _, kind, name = left.pop().split("/")
            if name not in kept.setdefault(kind, {}):
                kept[kind][name] = self.whole["components"][kind][name]
                left += _references(kept[kind][name])
        return kept

    def property_names(self, schema: Json) -> set[str]:
        """Return the fields of an object in any of its forms."""
        schema = self.resolve(schema)
        names = set(schema.get("properties", {}))
        for word in ("oneOf", "anyOf", "allOf"):
            for form in schema.get(word, []):
                names |= self.property_names(form)
        return names


def load(file: Path) -> Description:
    return Description(json.loads(file.read_text(encoding="utf-8")))


def _references(part: object) -> Iterator[str]:
    if isinstance(part, dict):
        reference = part.get("$ref")
        if isinstance(reference, str):
            yield reference
        for inner in part.values():
            yield from _references(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from _references(inner)


def _translated(part: object) -> object:
    """Return a schema of OpenAPI 3.0 as JSON Schema: `nullable` is a type, examples are none."""
    if isinstance(part, list):
        return [_translated(inner) for inner in part]
    if not isinstance(part, dict):
        return part
    made = {k: _translated(v) for k, v in part.items() if k not in {"example", "examples"}}
    if isinstance(made.get("properties"), dict):
        made["properties"] = {k: _translated(v) for k, v in part["properties"].items()}
    for bound in ("Maximum", "Minimum"):
        # In OpenAPI 3.0 it says whether the bound itself is out; since then it is the bound.
        if made.get(f"exclusive{bound}") is True:
            made[f"exclusive{bound}"] = made.pop(bound.lower())
        elif made.get(f"exclusive{bound}") is False:
            del made[f"exclusive{bound}"]
    return {"anyOf": [made, {"enum": [None]}]} if part.get("nullable") is True else made
