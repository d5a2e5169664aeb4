"""Requests to GitHub, one at a time: how fast, with which token, and again where that is safe.

PyGithub carries them, and does no more than that. Its own retries wait for minutes and repeat
writes, its throttle does not hold between threads, and its objects ask for more than one wants.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import jwt
from github import Auth, Github
from requests.exceptions import RequestException

from daemon.forge import ForgeBusyError, ForgeUnavailableError, NotThereError
from daemon.github.access import Access, Tokens, git_configuration
from daemon.github.answers import (
    Answer,
    Kept,
    Purpose,
    Request,
    UnauthorisedError,
    asks_for_pause,
    find_error,
    find_retry_at,
)
from daemon.github.limiter import Limiter
from daemon.github.turns import Turns

PUBLIC_API = "https://api.github.com"
_API_VERSION = "2022-11-28"
_REQUEST_S = 15
_CALL_S = 60.0
_LIST_S = 120.0
_PATIENCE_S = 8.0
"""How long a request may wait for its turn before its caller hears that we are busy."""
_PAUSE_S = 0.5
_TRIES = 3
_TRIES_OF_NEW = 4
_NEW_S = 30.0
"""So long after it was made, a thing that is not there is not there yet."""
_GIVE_WAY_S = 0.05
_PER_PAGE = "100"


class _Bearer(Auth.Auth):
    """The token of the request that is being sent."""

    def __init__(self) -> None:
        self.current = ""

    @property
    def token_type(self) -> str:
        return "Bearer"

    @property
    def token(self) -> str:
        return self.current

    @property
    def _masked_token(self) -> str:
        return "Bearer (removed)"


@dataclass
class GitHubClient:
    """Speaks for one repository. Any thread may ask; one request is under way at a time."""

    repository: str
    """``OWNER/NAME``"""
    access: Access
    api: str = PUBLIC_API
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    limiter: Limiter = field(default_factory=Limiter)
    _kept: Kept = field(default_factory=Kept, init=False)
    _made: dict[str, float] = field(default_factory=dict, init=False)
    _urgent: int = field(default=0, init=False)
    """How many urgent requests are waiting or under way: the others let them pass."""

    def __post_init__(self) -> None:
        """Open no connection yet."""
        self._turns = Turns()
        self._lock = threading.Lock()  # of `_made` and `_urgent`, and never held for long
        self._bearer = _Bearer()
        self._requester = Github(
            auth=self._bearer,
            base_url=self.api.rstrip("/"),
            timeout=_REQUEST_S,
            user_agent="kernelevolve",
            retry=None,
            seconds_between_requests=None,
            seconds_between_writes=None,
            lazy=True,
            api_version=_API_VERSION,
        ).requester
        # At its debug level PyGithub logs every answer, new tokens among them.
        logging.getLogger("github.Requester").setLevel(logging.INFO)
        self._tokens = Tokens(self.access, self.repository, self._exchange, _sign, self.clock)

    @property
    def graphql(self) -> str:
        """Return the address of GitHub's other API, for the little that this one can't do."""
        return str(self._requester.graphql_url)

    def ask(self, request: Request) -> Answer:
        """Send a request and return the answer to it.

        A read that fails is tried a few times more, a write never: it may have had its effect.

        Raises:
            ForgeUnavailableError: GitHub can't be reached or is broken, or takes no credentials.
            ForgeBusyError: It should not be asked before a certain time.
            NotThereError: There is no such thing, or none that we may see.
            ForgeRefusedError: GitHub said no.
        """
        ends_at = self.clock() + _CALL_S
        tries, renewed = 0, False
        while True:
            tries += 1
            late = self.clock() > ends_at
            try:
                return self._send(request)
            except UnauthorisedError:
                # Nothing was done, so that a write may be sent again.
                if renewed or not self._drop_token(request.purpose):
                    raise
                renewed = True
            except ForgeBusyError:
                raise
            except ForgeUnavailableError:
                if request.verb != "GET" or tries >= _TRIES or late:
                    raise
                self.sleep(_PAUSE_S * tries)
            except NotThereError:
                # To be sent again is safe for a write as well: it found nothing to change.
                if tries >= _TRIES_OF_NEW or late or not self._is_new(request.path):
                    raise
                self.sleep(_PAUSE_S * tries)

    def pages(
        self,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        under: str | None = None,
        purpose: Purpose = "api",
        most: int | None = None,
    ) -> list[Any]:
        """Return a list of things with an ``id``, each once, though it changes while it is read.

        Args:
            path: As in `Request`.
            query: As in `Request`.
            under: The key that the list stands under; None where it is the whole answer.
            purpose: As in `Request`.
            most: So many pages are enough; None for all.

        Raises:
            ForgeUnavailableError: It does not end, or is no list; or as in `ask`.
        """
        ends_at = self.clock() + _LIST_S
        things: dict[object, Any] = {}
        page = 0
        rest: Mapping[str, str] | None = {"per_page": _PER_PAGE, **(query or {})}
        while rest is not None and (most is None or page < most):
            if self.clock() > ends_at:
                msg = f"{path}: the list does not end"
                raise ForgeUnavailableError(msg)
            answer = self.ask(Request("GET", path, rest, purpose=purpose))
            for thing in _list(answer, under, path):
                things.pop(thing["id"], None)  # it has moved meanwhile, or changed
                things[thing["id"]] = thing
            rest = answer.next_page
            page += 1
        return list(things.values())

    def note_made(self, path: str) -> None:
        """Note that there is something new at a path: GitHub may deny it for some seconds."""
        now = self.clock()
        with self._lock:
            self._made = {p: at for p, at in self._made.items() if 0 <= now - at < _NEW_S}
            self._made[path] = now

    def git_configuration(self, origin: str) -> dict[str, str]:
        """Return git's configuration for an origin, with a token that is good for some minutes.

        Raises:
            ForgeUnavailableError: There is no such token now.
        """
        with self._turn("git", writes=False, urgent=False):
            return git_configuration(origin, self._tokens.token("git"))

    def close(self) -> None:
        """Let go of the connection."""
        with self._turns.turn():
            self._requester.close()

    def _send(self, request: Request) -> Answer:
        with self._turn(request.what, writes=request.makes_content, urgent=request.urgent):
            return self._exchange(request, self._tokens.token(request.purpose))

    @contextmanager
    def _turn(self, what: str, *, writes: bool, urgent: bool) -> Iterator[None]:
        """Wait until a request may be sent, and keep others out from then on."""
        give_up_at = self.clock() + _PATIENCE_S
        with self._lock:
            self._urgent += urgent
        try:
            while True:
                with self._turns.turn(urgent=urgent):
                    now = self.clock()
                    at = self.limiter.free_at(now, writes=writes, urgent=urgent)
                    if at <= now and not urgent and self._urgent:
                        at = now + _GIVE_WAY_S
                    if at <= now:
                        yield
                        return
                if at > give_up_at:
                    msg = f"{what}: not sent, as GitHub is left alone for {at - now:.0f} s"
                    raise ForgeBusyError(msg, at)
                self.sleep(at - now)  # while others have their turns
        finally:
            with self._lock:
                self._urgent -= urgent

    def _exchange(self, request: Request, token: str) -> Answer:
        headers = {"Accept": "application/vnd.github+json"}
        if (etag := self._kept.etag(request)) is not None:
            headers["If-None-Match"] = etag
        self.limiter.note(self.clock(), writes=request.makes_content)
        self._bearer.current = token
        try:
            status, got, text = self._requester.requestJson(
                request.verb,
                request.path,
                parameters=dict(request.query),
                headers=headers,
                input=request.body,
            )
        except RequestException as error:
            msg = f"{request.what}: GitHub can't be reached: {type(error).__name__}"
            raise ForgeUnavailableError(msg) from error
        except (AssertionError, RuntimeError, ValueError) as error:
            # PyGithub's words for an address that leads elsewhere, and for bytes that are no text.
            msg = f"{request.what}: GitHub's answer leads nowhere: {error}"
            raise ForgeUnavailableError(msg) from error
        return self._judged(request, Answer(status, got, text))

    def _judged(self, request: Request, answer: Answer) -> Answer:
        now = self.clock()
        if asks_for_pause(answer):
            at = self.limiter.note_refusal(now, retry_at=find_retry_at(answer, now))
            msg = f"{request.what}: GitHub asks for a pause of {at - now:.0f} s"
            raise ForgeBusyError(msg, at)
        if answer.quota_is_used_up and answer.quota_resets_at is not None:
            self.limiter.be_silent(now, answer.quota_resets_at + 1)
        error = find_error(answer, request.what)
        if error is not None:
            raise error
        _ = answer.json  # a page of a proxy's is found out before it is kept
        self.limiter.note_answer()
        return self._kept.renewed(request, answer)

    def _drop_token(self, purpose: Purpose) -> bool:
        with self._turns.turn():
            return self._tokens.drop(purpose)

    def _is_new(self, path: str) -> bool:
        now = self.clock()
        with self._lock:
            made = [p for p, at in self._made.items() if 0 <= now - at < _NEW_S]
        return any(path == p or path.startswith(f"{p}/") for p in made)


def _sign(claims: dict[str, Any], private_key: str) -> str:
    try:
        key = _read_key(private_key)
        return str(Auth.AppAuth.create_jwt_sign(key, "RS256")(claims))
    except (jwt.PyJWTError, TypeError) as error:
        raise ValueError(str(error)) from error


@lru_cache(maxsize=2)
def _read_key(private_key: str) -> Any:  # noqa: ANN401 - the door's types know keys as text only
    """Return a key ready to sign with: to see that it is sound takes 40 ms."""
    return jwt.get_algorithm_by_name("RS256").prepare_key(private_key)


def _list(answer: Answer, under: str | None, path: str) -> list[Any]:
    try:
        found = answer.json if under is None else answer.json[under]
        if all(thing["id"] is not None for thing in found):
            return list(found)
    except (KeyError, TypeError) as error:
        msg = f"{path}: GitHub's answer is no list"
        raise ForgeUnavailableError(msg) from error
    msg = f"{path}: GitHub's answer lists what has no id"
    raise ForgeUnavailableError(msg)
