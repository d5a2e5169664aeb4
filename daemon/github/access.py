"""Who we are to GitHub: a GitHub App's tokens, each able to do one thing only, or one token."""

from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from daemon.forge import ForgeRefusedError
from daemon.github.answers import Answer, Purpose, Request, UnauthorisedError

PERMISSIONS: Mapping[Purpose, Mapping[str, str]] = {
    "api": {
        "checks": "write",
        "contents": "read",
        "issues": "write",
        "metadata": "read",
        "pull_requests": "write",
        "statuses": "write",
    },
    "actions": {"actions": "write", "metadata": "read"},
    "git": {"contents": "write", "metadata": "read"},
}
"""What an App's tokens may do. Without a list GitHub would grant all that the App was given."""
_RENEWED_BEFORE_S = 300.0
"""A token that ends sooner is not used: a long push must not outlive it."""
_JWT_S = 540
_CLOCKS_DIFFER_S = 60


@dataclass(frozen=True)
class Token:
    """A person's or a machine's token, for small installations and for trying out."""

    token: str = field(repr=False)


@dataclass(frozen=True)
class App:
    """A GitHub App, as it is installed in the repository."""

    app_id: int
    private_key: Path
    installation_id: int | None = None
    """None where GitHub is to be asked for it."""


Access = Token | App
Send = Callable[[Request, str], Answer]
"""Sends a request with a token."""
Sign = Callable[[dict[str, Any], str], str]
"""Returns a JSON web token of what it says and a private key; ValueError if that is none."""


@dataclass(frozen=True)
class _Lease:
    token: str = field(repr=False)
    ends_at: float


@dataclass
class Tokens:
    """Hands out tokens that are good now. For one thread at a time."""

    access: Access
    repository: str
    send: Send
    sign: Sign
    clock: Callable[[], float]
    _leases: dict[Purpose, _Lease] = field(default_factory=dict, init=False)
    _installation_id: int | None = field(default=None, init=False)

    def token(self, purpose: Purpose) -> str:
        """Return a token.

        Raises:
            UnauthorisedError: GitHub gives none, or the App's key can't be read.
            ForgeUnavailableError: GitHub can't be asked now.
        """
        if isinstance(self.access, Token):
            return self.access.token
        if purpose == "app":
            return self._make_jwt(self.access)
        lease = self._leases.get(purpose)
        if lease is None or lease.ends_at - self.clock() < _RENEWED_BEFORE_S:
            lease = self._leases[purpose] = self._make_lease(self.access, PERMISSIONS[purpose])
        return lease.token

    def drop(self, purpose: Purpose) -> bool:
        """Forget a token that was not taken; return whether the next may be another."""
        return self._leases.pop(purpose, None) is not None

    def _make_lease(self, app: App, permissions: Mapping[str, str]) -> _Lease:
        jwt = self._make_jwt(app)
        try:
            installation = self._find_installation(app, jwt)
            # For this repository alone, whatever else the App is installed in.
            wanted = {"permissions": permissions, "repositories": [self.repository.split("/")[1]]}
            path = f"/app/installations/{installation}/access_tokens"
            made = self.send(Request("POST", path, body=wanted), jwt).json
            ends_at = datetime.fromisoformat(made["expires_at"]).timestamp()
            return _Lease(str(made["token"]), ends_at)
        except ForgeRefusedError as error:
            # Not installed, suspended, or less was granted than we need: no word on the request.
            msg = f"GitHub gives no token: {error}; see: kernelevolve github doctor"
            raise UnauthorisedError(msg) from error
        except (KeyError, TypeError, ValueError) as error:
            msg = "GitHub gives no token: its answer holds none"
            raise UnauthorisedError(msg) from error

    def _find_installation(self, app: App, jwt: str) -> int:
        if app.installation_id is not None:
            return app.installation_id
        if self._installation_id is None:
            path = f"/repos/{self.repository}/installation"
            self._installation_id = int(self.send(Request("GET", path), jwt).json["id"])
        return self._installation_id

    def _make_jwt(self, app: App) -> str:
        now = int(self.clock())
        claims = {"iat": now - _CLOCKS_DIFFER_S, "exp": now + _JWT_S, "iss": str(app.app_id)}
        try:
            # Read each time: keys are changed for new ones, and this happens once an hour.
            return self.sign(claims, app.private_key.read_text(encoding="ascii"))
        except (OSError, ValueError) as error:
            msg = f"{app.private_key} holds no private key of a GitHub App: {error}"
            raise UnauthorisedError(msg) from error


def git_configuration(origin: str, token: str) -> dict[str, str]:
    """Return git's configuration for reaching one origin with a token.

    It is for the environment of one git process. In the origin's address or in a file the token
    would stay.
    """
    secret = b64encode(f"x-access-token:{token}".encode()).decode()
    return {f"http.{origin}.extraHeader": f"Authorization: Basic {secret}"}
