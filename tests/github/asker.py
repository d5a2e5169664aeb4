"""Asks the fake of GitHub over plain HTTP, for the tests of the fake itself."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import jwt
import requests

from tests.github.fake import FakeGitHub
from tests.github.state import Json


@dataclass
class Asker:
    """A client with a token, and no cleverness."""

    host: FakeGitHub
    token: str | None = None
    session: requests.Session = field(default_factory=requests.Session, init=False)

    def __enter__(self) -> Self:
        """Use one connection for all requests."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
        self.session.close()

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        headers: Mapping[str, str] | None = None,
        follow: bool = False,
    ) -> requests.Response:
        """Send a request; a path that starts with a colon is one of the repository."""
        place = path.removeprefix(":")
        if place != path:
            place = f"/repos/{self.host.full_name}{place}"
        sent = dict(headers or {})
        if self.token is not None:
            sent["Authorization"] = f"Bearer {self.token}"
        url = self.host.api_url + place
        text = None if body is None else json.dumps(body)
        return self.session.request(
            method, url, data=text, headers=sent, timeout=10, allow_redirects=follow
        )

    def get(self, path: str) -> Json:
        """Return what is there, which must be an object."""
        answer = self.ask("GET", path)
        assert answer.status_code == 200, answer.text
        found: Json = answer.json()
        return found

    def list(self, path: str) -> list[Json]:
        """Return a list that is there: its first page."""
        answer = self.ask("GET", path)
        assert answer.status_code == 200, answer.text
        found: list[Json] = answer.json()
        return found


def app_token(host: FakeGitHub, *, life_s: int = 540, key: str | None = None) -> str:
    """Return the App's own token, as its clock has it."""
    now = int(host.clock())
    claims = {"iat": now - 60, "exp": now + life_s, "iss": str(host.app_id)}
    return jwt.encode(claims, key or host.private_key, algorithm="RS256")
