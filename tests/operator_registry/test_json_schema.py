"""Editors are told what the program itself asks for."""

import json
import os
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from operator_registry.document import parse_document
from operator_registry.json_schema import SCHEMAS, make_schema
from operator_registry.record import Record
from operator_registry.registry import CATALOG, PATTERNS

FILES = sorted(
    path for pattern in PATTERNS for path in CATALOG.glob(pattern) if path.suffix == ".yaml"
)
KIND_OF = {"operators": "operator", "hardware": "hardware", "models": "model"}


@pytest.mark.parametrize(("name", "kind"), SCHEMAS)
def test_the_schemas_that_ship_are_those_of_the_records(name: str, kind: type[Record]) -> None:
    shipped = (CATALOG / "schemas" / f"{name}.json").read_text(encoding="utf-8")

    assert json.loads(shipped) == make_schema(kind)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(CATALOG)))
def test_every_file_of_the_catalogue_names_its_schema(path: Path) -> None:
    kind = KIND_OF.get(path.relative_to(CATALOG).parts[0], "registry")
    schema = os.path.relpath(CATALOG / "schemas" / f"{kind}.json", path.parent)

    first = path.read_text(encoding="utf-8").splitlines()[0]

    assert first == f"# yaml-language-server: $schema={schema}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(CATALOG)))
def test_every_file_of_the_catalogue_agrees_with_its_schema(path: Path) -> None:
    schema = path.parent / path.read_text(encoding="utf-8").splitlines()[0].partition("$schema=")[2]
    root, faults = parse_document(path.name, path.read_text(encoding="utf-8"))

    jsonschema_rs.validate(json.loads(schema.read_text(encoding="utf-8")), root.plain())

    assert faults == ()


def test_unknown_keys_are_underlined_on_every_level() -> None:
    def closed(part: Any) -> bool:  # noqa: ANN401 - any part of a schema
        if isinstance(part, list):
            return all(closed(each) for each in part)
        if not isinstance(part, dict):
            return True
        is_open = part.get("type") == "object" and "properties" in part
        return (not is_open or part["additionalProperties"] is False) and all(
            closed(each) for each in part.values()
        )

    assert all(closed(make_schema(kind)) for _, kind in SCHEMAS)


def test_a_key_is_described_by_what_stands_below_it_in_the_source() -> None:
    schema = make_schema(dict(SCHEMAS)["operator"])

    described = schema["$defs"]["Workload"]["properties"]["targets"]["description"]

    assert described == "Where it is measured; empty for everywhere."


def test_keys_stand_under_the_names_that_files_use() -> None:
    keys = {name: set(make_schema(kind)["properties"]) for name, kind in SCHEMAS}

    assert all("schema" in found and "schema_version" not in found for found in keys.values())
