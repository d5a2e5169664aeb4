"""JSON Schemas of the files that people write: by them editors complete and underline."""

import ast
import inspect
import textwrap
from itertools import pairwise
from typing import Any

from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from operator_registry.hardware import HardwareSpec
from operator_registry.model import ModelSpec
from operator_registry.record import Record
from operator_registry.registry import RegistryConfig
from operator_registry.spec import OperatorSpec

SCHEMAS: tuple[tuple[str, type[Record]], ...] = (
    ("operator", OperatorSpec),
    ("hardware", HardwareSpec),
    ("model", ModelSpec),
    ("registry", RegistryConfig),
)
"""What each kind of file of a registry holds."""
_DRAFT = "https://json-schema.org/draft/2020-12/schema"


def make_schema(kind: type[Record]) -> dict[str, Any]:
    """Return the schema of a file that holds a record, keys described as in the source."""
    schema = kind.model_json_schema(schema_generator=_Described)
    return {"$schema": _DRAFT, **schema}


class _Described(GenerateJsonSchema):
    """Adds what stands below each field in the source, where the source is at hand."""

    def model_schema(self, schema: core_schema.ModelSchema) -> dict[str, Any]:
        """Return the schema of a record."""
        made = super().model_schema(schema)
        fields = schema["cls"].model_fields
        for name, text in _describe(schema["cls"]).items():
            field = fields.get(name)
            key = name if field is None or field.alias is None else field.alias
            if key in made.get("properties", {}):
                made["properties"][key].setdefault("description", text)
        return made


def _describe(kind: type) -> dict[str, str]:
    """Return the texts below the fields of a class and of those that it is made from."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        if not (issubclass(each, Record) and each is not Record):
            continue
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(each))).body
        body = getattr(definition, "body", ())
        for field, below in pairwise(body):
            match field, below:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    found[name] = inspect.cleandoc(text)
    return found
