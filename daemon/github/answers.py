"""Requests to GitHub, its answers, and what they mean for whoever asked."""

import json
import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, Literal
from urllib.parse import parse_qsl, urlsplit

from daemon.forge import (
    ForgeError,
    ForgeRefusedError,
    ForgeUnavailableError,
    NotThereError,
)

_NEXT = re.compile(r'<([^<>]*)>\s*;[^,]*\brel="?next"?')
_LIMITED = re.compile(
    r"rate limit|abuse detection|submitted too quickly|wait a few minutes", re.IGNORECASE
)
_WHOLE = re.compile(r"[0-9]{1,12}(\.[0-9]*)?\Z")
_LONGEST = 500
_LEAST_S = 1.0
_TIMEOUT = HTTPStatus.REQUEST_TIMEOUT
_KEPT_CHARACTERS = 16_000_000
Verb = Literal["GET", "POST", "PATCH", "PUT", "DELETE"]
Purpose = Literal["api", "actions", "git", "app"]
"""What a request is for: each has a token of its own, which can do that and nothing else."""


@dataclass(frozen=True)
class Request:
    """One request."""

    verb: Verb
    path: str
    """Below the API's address; or the whole address of its GraphQL."""
    query: Mapping[str, str] = field(default_factory=dict)
    body: object = None
    """Sent as JSON."""
    purpose: Purpose = "api"
    urgent: bool = False
    """It goes before others, and may use what is kept back for such."""

    @property
    def makes_content(self) -> bool:
        """Return whether it is one of those that GitHub limits most."""
        return self.verb != "GET" and not self.path.endswith("/access_tokens")

    @property
    def what(self) -> str:
        """Return what is asked, for a message."""
        return f"{self.verb} {self.path}"

    @property
    def key(self) -> str:
        """Return what tells it from other reads."""
        return f"{self.path}?{json.dumps(dict(self.query), sort_keys=True)}"


@dataclass(frozen=True)
class Answer:
    """One answer; the names of its headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def json(self) -> Any:  # noqa: ANN401 - the host's JSON, read by `records`
        """Return what it holds; None where it holds nothing.

        Raises:
            ForgeUnavailableError: It is no JSON: a proxy's or a load balancer's page.
        """
        try:
            return json.loads(self.text) if self.text else None
        except ValueError as error:
            msg = f"GitHub's answer is no JSON: {_short(self.text)!r}"
            raise ForgeUnavailableError(msg) from error

    @property
    def next_page(self) -> dict[str, str] | None:
        """Return the query of a list's next page; None where this is the last.

        The rest of the address is the host's word alone, and is not followed.
        """
        found = _NEXT.search(self.headers.get("link", ""))
        return None if found is None else dict(parse_qsl(urlsplit(found[1]).query))

    @property
    def quota_is_used_up(self) -> bool:
        """Return whether no request is left before `quota_resets_at`."""
        return self.headers.get("x-ratelimit-remaining") == "0"

    @property
    def quota_resets_at(self) -> float | None:
        """Return when the quota starts anew, in seconds since 1970."""
        return _number(self.headers.get("x-ratelimit-reset"))


class UnauthorisedError(ForgeUnavailableError):
    """Our credentials are not taken: a new token may be, or somebody has to mend them."""


class GitHubRefusedError(ForgeRefusedError):
    """GitHub said no, and what it minds of the fields that it was sent."""

    def __init__(self, what: str, status: int, message: str, faults: tuple[str, ...] = ()) -> None:
        told = "; ".join(filter(None, (message, *faults)))
        super().__init__(f"{what}: {told} ({status})")
        self.status = status
        self.message = message
        self.faults = faults
        """Each as ``field code: message``."""

    @property
    def told(self) -> str:
        """Return all that was said, in lower case, to look for a reason in."""
        return " ".join((self.message, *self.faults)).lower()


def find_error(answer: Answer, what: str) -> ForgeError | None:
    """Return what is wrong; None where the request did what it should, or see `asks_for_pause`.

    Args:
        answer: What came back.
        what: What was asked, for the message.
    """
    status = answer.status
    if status < HTTPStatus.MULTIPLE_CHOICES or status == HTTPStatus.NOT_MODIFIED:
        return None
    message, faults = _read_error(answer)
    match status:
        case HTTPStatus.FOUND:  # where a file lies; whoever asked for one reads the address
            return None
        case HTTPStatus.UNAUTHORIZED:
            return UnauthorisedError(f"{what}: the credentials are not taken: {message}")
        case HTTPStatus.NOT_FOUND | HTTPStatus.GONE:
            return NotThereError(f"{what}: {message}")
        case _ if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == _TIMEOUT:
            return ForgeUnavailableError(f"{what}: GitHub is broken: {status} {message}")
        case _:
            moved = answer.headers.get("location", "")
            told = f"it has moved to {moved}" if moved else message
            return GitHubRefusedError(what, status, told, faults)


def asks_for_pause(answer: Answer) -> bool:
    """Return whether the host has had enough of us; it says so in several ways."""
    if answer.status == HTTPStatus.TOO_MANY_REQUESTS:
        return True
    message, faults = _read_error(answer)
    told = " ".join((message, *faults))
    if answer.status == HTTPStatus.FORBIDDEN:
        said = "retry-after" in answer.headers or answer.quota_is_used_up
        return said or _LIMITED.search(told) is not None
    too_quick = answer.status == HTTPStatus.UNPROCESSABLE_ENTITY
    return too_quick and "submitted too quickly" in told


def find_retry_at(answer: Answer, now: float) -> float | None:
    """Return when the host wants to be asked again; None where it does not say.

    Retry-After comes first, then the reset of a quota that is used up.
    """
    wanted = answer.headers.get("retry-after")
    seconds = _number(wanted)
    if seconds is not None:
        return now + max(seconds, _LEAST_S)
    if wanted:
        try:
            return max(parsedate_to_datetime(wanted).timestamp(), now + _LEAST_S)
        except (ValueError, OverflowError):
            return None
    if answer.quota_is_used_up and answer.quota_resets_at is not None:
        return max(answer.quota_resets_at, now) + _LEAST_S  # the reset is a whole second
    return None


def _read_error(answer: Answer) -> tuple[str, tuple[str, ...]]:
    try:
        body = json.loads(answer.text)
    except ValueError:
        return _short(answer.text), ()
    if not isinstance(body, dict):
        return _short(answer.text), ()
    errors = body.get("errors")
    listed = errors if isinstance(errors, list) else []
    return _short(str(body.get("message", ""))), tuple(_short(_fault(e)) for e in listed)


def _fault(error: object) -> str:
    if not isinstance(error, dict):
        return str(error)
    where = " ".join(str(error[key]) for key in ("field", "code") if error.get(key))
    return ": ".join(filter(None, (where, str(error.get("message") or ""))))


def _number(text: str | None) -> float | None:
    return float(text) if text and _WHOLE.match(text.strip()) else None


def _short(text: str) -> str:
    return " ".join(text.split())[:_LONGEST]


@dataclass
class Kept:
    """Answers that GitHub may say are still good; such a word costs no quota."""

    answers: OrderedDict[str, Answer] = field(default_factory=OrderedDict)
    """The one that was of use last comes last."""
    characters: int = 0

    def etag(self, request: Request) -> str | None:
        """Return what to ask GitHub whether it still holds."""
        answer = self.answers.get(request.key) if request.verb == "GET" else None
        return None if answer is None else answer.headers["etag"]

    def renewed(self, request: Request, answer: Answer) -> Answer:
        """Return the whole answer, which is the kept one where nothing has changed."""
        if request.verb != "GET":
            return answer
        if answer.status == HTTPStatus.NOT_MODIFIED:
            self.answers.move_to_end(request.key)
            return self.answers[request.key]
        self._drop(request.key)
        if answer.status == HTTPStatus.OK and answer.headers.get("etag"):
            self.answers[request.key] = answer
            self.characters += len(answer.text)
        while self.characters > _KEPT_CHARACTERS:
            self._drop(next(iter(self.answers)))
        return answer

    def _drop(self, key: str) -> None:
        old = self.answers.pop(key, None)
        self.characters -= 0 if old is None else len(old.text)
