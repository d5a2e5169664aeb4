"""GitHub's own description of its API, and what a request or an answer violates in it.

The description is OpenAPI 3.0 from npm's @octokit/openapi, cut to the operations that are asked.
"""

import json
import shutil
from collections.abc import Iterator
from functools import cache

import jsonschema_rs

from tests.github.asking import Ask, Reply, Route
from tests.github.npm import unpack
from tests.github.state import Json

PACKAGE = "@octokit/openapi@23.0.2"
_FILE = "generated/api.github.com.json"
_NOT_REST = "/graphql"
_ERROR = {"$ref": "#/components/schemas/basic-error"}
_TYPES = {"integer": int, "number": float}
_LABELS = "/repos/{owner}/{repo}/issues/{issue_number}/labels"
_EVERYWHERE = frozenset({401, 403, 404, 422, 429})
"""Answers that GitHub may give to anything, though it does not describe them of each operation."""


def is_at_hand() -> bool:
    """Return whether there is npm, which brings the description."""
    return shutil.which("npm") is not None


@cache
def load_description() -> Json:
    """Return the whole description; skip the test where npm is absent."""
    text = (unpack(PACKAGE, _FILE) / _FILE).read_text(encoding="utf-8")
    loaded: Json = json.loads(text)
    _mend(loaded["paths"])
    return loaded


def _mend(paths: Json) -> None:
    """Put right where the schemas contradict what the text beside them says, and GitHub does."""
    listed = paths["/app/installations"]["get"]["responses"]["200"]["content"]["application/json"]
    # An account is a person or an enterprise; the list wants it to be both at once.
    listed["schema"]["items"] = {"$ref": "#/components/schemas/installation"}
    for method in ("post", "put"):
        # The names may come as a bare list and, to PUT, there may be none.
        content = paths[_LABELS][method]["requestBody"]["content"]["application/json"]
        forms = content["schema"]["oneOf"]
        forms.append({"type": "array", "items": {"type": "string"}})
        if method == "put":
            forms[0]["properties"]["labels"].pop("minItems")


def find_violations(route: Route, ask: Ask, reply: Reply) -> list[str]:
    """Return what is not as GitHub describes it, each with the operation's name before it."""
    if route.template == _NOT_REST:
        return []
    named = f"{route.method} {route.template}"
    found = [f"request: {fault}" for fault in _check_request(route.method, route.template, ask)]
    answer = _check_reply(route.method, route.template, reply)
    found += [f"answer {reply.status}: {fault}" for fault in answer]
    return [f"{named}: {fault}" for fault in found]


def cut(routes: list[Route]) -> Json:
    """Return the description of some routes only, with what it refers to."""
    whole = load_description()
    paths: Json = {}
    for route in routes:
        if route.template != _NOT_REST:
            item = whole["paths"][route.template]
            paths.setdefault(route.template, {})[route.method.lower()] = item[route.method.lower()]
    kept = {"openapi": whole["openapi"], "info": whole["info"], "paths": paths}
    return kept | {"components": _components(paths)}


def _check_request(method: str, template: str, ask: Ask) -> Iterator[str]:
    operation = _operation(method, template)
    yield from _check_query(f"{method} {template}", operation, ask.query)
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if content is None:
        if ask.raw not in {b"", b"{}"}:
            yield "it takes no body"
    elif ask.raw:
        yield from _check_body(method, template, content["schema"], ask.raw)
    elif operation["requestBody"].get("required"):
        yield "the body is missing"


def _check_query(pointer: str, operation: Json, query: dict[str, str]) -> Iterator[str]:
    known = {p["name"]: p["schema"] for p in _parameters(operation) if p["in"] == "query"}
    for name, value in query.items():
        if name not in known:
            yield f"there is no parameter {name}"
            continue
        read = _read(value, known[name])
        faults = _faults(f"{pointer} ?{name}", known[name], read)
        yield from (f"{name}: {fault}" for fault in faults)


def _check_body(method: str, template: str, schema: Json, raw: bytes) -> Iterator[str]:
    try:
        body = json.loads(raw)
    except ValueError:
        yield "the body is no JSON"
        return
    yield from _faults(f"{method} {template} body", schema, body)
    names = _property_names(schema)
    if isinstance(body, dict) and names:
        yield from (f"there is no field {name}" for name in body if name not in names)


def _check_reply(method: str, template: str, reply: Reply) -> Iterator[str]:
    described = _operation(method, template)["responses"]
    said = described.get(str(reply.status))
    if said is None:
        if reply.status not in _EVERYWHERE:
            yield f"it answers with {', '.join(described)} only"
        elif not isinstance(reply.body, bytes):
            yield from _faults("error", _ERROR, reply.body)
        return
    content = _resolve(said).get("content", {}).get("application/json")
    if isinstance(reply.body, bytes):
        return
    if content is None:
        if reply.body not in (None, {}):
            yield "the answer has no body"
        return
    yield from _faults(f"{method} {template} {reply.status}", content["schema"], reply.body)


def _operation(method: str, template: str) -> Json:
    found: Json = load_description()["paths"][template][method.lower()]
    return found


def _parameters(operation: Json) -> list[Json]:
    return [_resolve(parameter) for parameter in operation.get("parameters", [])]


def _resolve(part: Json) -> Json:
    while "$ref" in part:
        found = load_description()
        for step in part["$ref"].removeprefix("#/").split("/"):
            found = found[step]
        part = found
    return part


def _read(value: str, schema: Json) -> object:
    """Return a query's value as its type says; as text where it is not of it."""
    kind = _resolve(schema).get("type")
    try:
        if kind in _TYPES:
            return _TYPES[kind](value)
    except ValueError:
        return value
    return {"true": True, "false": False}.get(value, value) if kind == "boolean" else value


def _property_names(schema: Json) -> set[str]:
    """Return the fields of an object in any of its forms."""
    schema = _resolve(schema)
    names = set(schema.get("properties", {}))
    for word in ("oneOf", "anyOf", "allOf"):
        for form in schema.get(word, []):
            names |= _property_names(form)
    return names


_validators: dict[str, jsonschema_rs.Draft4Validator] = {}


def _faults(pointer: str, schema: Json, value: object) -> Iterator[str]:
    """Say where a value is not as a schema of the description wants it, the deepest first."""
    if pointer not in _validators:
        whole = {"allOf": [_translated(schema)], "components": _translated(_components(schema))}
        _validators[pointer] = jsonschema_rs.Draft4Validator(whole, validate_formats=True)
    for error in _validators[pointer].iter_errors(value):
        where = "/".join(str(step) for step in error.instance_path)
        yield f"{where or 'body'}: {error.message[-300:]}"


def _components(part: object) -> Json:
    """Return the components that a part of the description refers to, at any remove."""
    kept: Json = {}
    left = list(_references(part))
    while left:
        _, _, kind, name = left.pop().split("/")
        if name not in kept.setdefault(kind, {}):
            kept[kind][name] = load_description()["components"][kind][name]
            left += _references(kept[kind][name])
    return kept


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
    if part.get("nullable") is not True:
        return made
    return {"anyOf": [made, {"enum": [None]}]}
