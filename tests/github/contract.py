"""GitHub's own description of its API, and what a request or an answer violates in it.

The description is OpenAPI 3.0 from npm's @octokit/openapi, cut to the operations that are asked.
"""

import json
from collections.abc import Iterator
from functools import cache
from http import HTTPStatus

import pytest

from tests.github.asking import Ask, Reply, Route
from tests.github.description import Description, load
from tests.github.npm import unpack
from tests.github.state import Delivery, Json

PACKAGE = "@octokit/openapi@23.0.2"
HOOKS = "@octokit/openapi-webhooks@12.1.0"
_FILE = "generated/api.github.com.json"
_NOT_REST = "/graphql"
_ERROR = {"$ref": "#/components/schemas/basic-error"}
_TYPES = {"integer": int, "number": float}
_LABELS = "/repos/{owner}/{repo}/issues/{issue_number}/labels"
_EVERYWHERE = frozenset({401, 403, 404, 422, 429})
"""Answers that GitHub may give to anything, though it does not describe them of each operation."""


@cache
def is_at_hand() -> bool:
    """Return whether the description is here, or npm brings it."""
    try:
        load_description()
        load_hooks()
    except pytest.skip.Exception:
        return False
    return True


@cache
def load_description() -> Description:
    """Return the whole description; skip the test where npm is absent."""
    loaded = load(unpack(PACKAGE, _FILE) / _FILE)
    _mend(loaded.whole["paths"])
    return loaded


@cache
def load_hooks() -> Description:
    """Return the description of webhooks."""
    return load(unpack(HOOKS, _FILE) / _FILE)


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


def find_faults_of_delivery(delivery: Delivery) -> list[str]:
    """Return what is not as GitHub describes its webhooks."""
    named = "-".join(part for part in (delivery.event, delivery.action) if part).replace("_", "-")
    webhook = load_hooks().whole["webhooks"].get(named)
    if webhook is None:
        return [f"there is no webhook {named}"]
    schema = webhook["post"]["requestBody"]["content"]["application/json"]["schema"]
    faults = load_hooks().find_faults(named, schema, json.loads(delivery.body))
    return [f"webhook {named}: {fault}" for fault in faults]


def cut(routes: list[Route]) -> Json:
    """Return the description of some routes only, with what it refers to."""
    whole = load_description().whole
    paths: Json = {}
    for route in routes:
        if route.template != _NOT_REST:
            item = whole["paths"][route.template]
            paths.setdefault(route.template, {})[route.method.lower()] = item[route.method.lower()]
    kept = {"openapi": whole["openapi"], "info": whole["info"], "paths": paths}
    return kept | {"components": load_description().components_of(paths)}


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
        faults = load_description().find_faults(f"{pointer} ?{name}", known[name], read)
        yield from (f"{name}: {fault}" for fault in faults)


def _check_body(method: str, template: str, schema: Json, raw: bytes) -> Iterator[str]:
    try:
        body = json.loads(raw)
    except ValueError:
        yield "the body is no JSON"
        return
    yield from load_description().find_faults(f"{method} {template} body", schema, body)
    names = load_description().property_names(schema)
    if isinstance(body, dict) and names:
        yield from (f"there is no field {name}" for name in body if name not in names)


def _check_reply(method: str, template: str, reply: Reply) -> Iterator[str]:
    described = _operation(method, template)["responses"]
    said = described.get(str(reply.status))
    if said is None and reply.status not in _EVERYWHERE:
        yield f"it answers with {', '.join(described)} only"
        return
    if isinstance(reply.body, bytes):
        return
    description = load_description()
    content = description.resolve(said or {}).get("content", {}).get("application/json")
    if content is not None:
        pointer = f"{method} {template} {reply.status}"
        yield from description.find_faults(pointer, content["schema"], reply.body)
    elif reply.status >= HTTPStatus.BAD_REQUEST:
        yield from description.find_faults("error", _ERROR, reply.body)
    elif reply.body not in (None, {}):
        yield "the answer has no body"


def _operation(method: str, template: str) -> Json:
    found: Json = load_description().whole["paths"][template][method.lower()]
    return found


def _parameters(operation: Json) -> list[Json]:
    return [load_description().resolve(parameter) for parameter in operation.get("parameters", [])]


def _read(value: str, schema: Json) -> object:
    """Return a query's value as its type says; as text where it is not of it."""
    kind = load_description().resolve(schema).get("type")
    try:
        if kind in _TYPES:
            return _TYPES[kind](value)
    except ValueError:
        return value
    return {"true": True, "false": False}.get(value, value) if kind == "boolean" else value
