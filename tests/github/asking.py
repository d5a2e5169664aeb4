"""A request to the fake of GitHub, its answer, and the table of its routes."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from tests.github.state import Json, User
from tests.github.world import RefusedError, World

if TYPE_CHECKING:
    from tests.github.access import Access

_SLASHED = ("path", "ref", "basehead", "branch")
"""Parameters that may hold slashes."""


@dataclass(frozen=True)
class Caller:
    """Who asks: an App by its own token, its installation, a person, or nobody."""

    kind: Literal["app", "installation", "user", "nobody"]
    user: User | None = None
    grants: dict[str, str] = field(default_factory=dict)

    def may(self, permission: str, level: str) -> bool:
        """Return whether a permission is granted: ``write`` holds ``read``."""
        return self.grants.get(permission) in {level, "write", "admin"}


@dataclass
class Reply:
    status: int
    body: object = None
    """Written as JSON; bytes as they are; None for nothing."""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Ask:
    """One request, parsed."""

    method: str
    path: str
    """From the API's root: ``/repos/…``, decoded only in `params`."""
    query: dict[str, str]
    headers: dict[str, str]
    """Names in lower case."""
    raw: bytes
    world: World
    caller: Caller = field(default_factory=lambda: Caller("nobody"))
    params: dict[str, str] = field(default_factory=dict)
    access: "Access | None" = None

    @property
    def json(self) -> object:
        return json.loads(self.raw) if self.raw else {}

    @property
    def body(self) -> Json:
        found = self.json
        if not isinstance(found, dict):
            raise RefusedError(400, "Body should be a JSON object")
        return found

    @property
    def user(self) -> User:
        """The account that acts; routes that need one are kept from others."""
        assert self.caller.user
        return self.caller.user

    @property
    def via_app(self) -> bool:
        return self.caller.kind == "installation"

    def number(self, name: str) -> int:
        """Return a parameter of the path that is a number."""
        if not self.params[name].isdigit():
            raise RefusedError(404, "Not Found")
        return int(self.params[name])

    def page(self, items: Sequence[object]) -> Reply:
        """Answer with a page of a list and the links to the others."""
        shown, links = self.cut(items)
        return Reply(200, list(shown), links)

    def cut(self, items: Sequence[object]) -> tuple[Sequence[object], dict[str, str]]:
        """Return the page that was asked for, and the header with the links to others."""
        size = max(1, min(int(self.query.get("per_page", "30")), 100))
        size = min(size, self.world.quirks.most_per_page)
        page = max(1, int(self.query.get("page", "1")))
        longer = self.world.quirks.shifted_pages
        last = max(1, -(-(len(items) + longer) // size))
        pages = {"prev": page - 1, "next": page + 1, "last": last, "first": 1}
        wanted = {
            name: n
            for name, n in pages.items()
            if 1 <= n <= last and n != page and not (name in {"last", "next"} and page >= last)
        }
        url = f"{self.world.api}{self.path}"
        links = [
            f'<{url}?{urlencode(self.query | {"page": str(n)})}>; rel="{name}"'
            for name, n in wanted.items()
        ]
        start = (page - 1) * size
        if self.world.quirks.shifted_pages and page > 1:
            start -= 1
        shown = items[start : start + size]
        return shown, ({"Link": ", ".join(links)} if links else {})


def problem(status: int, message: str, errors: list[Json] | None = None) -> Reply:
    body: Json = {"message": message, "documentation_url": "https://docs.github.com/rest"}
    if errors is not None:
        body["errors"] = errors
    return Reply(status, body | {"status": str(status)})


@dataclass(frozen=True)
class Route:
    method: str
    template: str
    """As in GitHub's description of its API."""
    answer: Callable[[Ask], Reply]
    needs: tuple[str, ...]
    """Permissions, any of which is enough, such as ``issues:write``."""
    pattern: re.Pattern[str]
    by: tuple[str, ...]
    """Kinds of callers."""


ROUTES: list[Route] = []


def route(
    method: str,
    template: str,
    *needs: str,
    by: tuple[str, ...] = ("installation", "user"),
) -> Callable[[Callable[[Ask], Reply]], Callable[[Ask], Reply]]:
    """Put a function into the table."""

    def add(answer: Callable[[Ask], Reply]) -> Callable[[Ask], Reply]:
        def part(match: re.Match[str]) -> str:
            name = match[1]
            return f"(?P<{name}>{'.+' if name in _SLASHED else '[^/]+'})"

        pattern = re.compile(re.sub(r"\{(\w+)\}", part, template))
        ROUTES.append(Route(method, template, answer, needs, pattern, by))
        return answer

    return add


def find_route(method: str, path: str) -> tuple[Route, dict[str, str]] | None:
    """Return the route of a path, the one with the fewest parameters, and its parameters."""
    found = [
        (r.template.count("{"), -len(r.template), i)
        for i, r in enumerate(ROUTES)
        if r.method == method and r.pattern.fullmatch(path)
    ]
    if not found:
        return None
    chosen = ROUTES[min(found)[2]]
    match = chosen.pattern.fullmatch(path)
    assert match
    return chosen, {name: unquote(value) for name, value in match.groupdict().items()}


def parse_target(target: str) -> tuple[str, dict[str, str]]:
    """Return path and query of a request line's target."""
    parts = urlsplit(target)
    return parts.path, dict(parse_qsl(parts.query, keep_blank_values=True))
