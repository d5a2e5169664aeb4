"""Who may do what at the fake of GitHub: App tokens, installation tokens, people's tokens."""

import base64
import binascii
import secrets
from dataclasses import dataclass, field
from functools import cache

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.github.asking import Ask, Caller, Reply, Route, route
from tests.github.state import ROLES, Json, User, iso
from tests.github.world import RefusedError, World

LONGEST_JWT_S = 600
_SKEW_S = 60
_RANK = {"read": 1, "write": 2, "admin": 3}


@cache
def app_key() -> tuple[str, str]:
    """Return the App's private and public key as PEM; made once, as that takes a while."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return private.decode(), public.decode()


@dataclass
class _Token:
    caller: Caller
    expires_at: float | None


@dataclass
class Access:
    world: World
    _tokens: dict[str, _Token] = field(default_factory=dict)
    tokens_made: int = 0

    def add_user_token(self, user: User) -> str:
        """Return a new personal token: it may do what its user may, but for checks."""
        token = f"github_pat_{secrets.token_hex(20)}"
        self._tokens[token] = _Token(Caller("user", user), None)
        return token

    def add_installation_token(self, wanted: Json) -> tuple[str, float, dict[str, str]]:
        """Return a new token, when it expires, and what it grants.

        Raises:
            RefusedError: More is asked for than the App has.
        """
        has = self.world.permissions
        for name, level in wanted.items():
            if _RANK.get(level, 9) > _RANK.get(has.get(name, ""), 0):
                words = "The permissions requested are not granted to this installation."
                raise RefusedError(422, words)
        grants = dict(wanted) if wanted else dict(has)
        grants["metadata"] = "read"
        token = f"ghs_{secrets.token_hex(18)}"
        expires_at = self.world.clock() + self.world.quirks.token_life_s
        self._tokens[token] = _Token(Caller("installation", self.world.bot, grants), expires_at)
        self.tokens_made += 1
        return token, expires_at, grants

    def check_not_suspended(self) -> None:
        if self.world.quirks.suspended:
            raise RefusedError(403, "This installation has been suspended")

    def revoke_all(self) -> None:
        """Make every token so far useless, as an expiry would."""
        self._tokens.clear()

    def identify(self, ask: Ask) -> Caller:
        """Return who asks by the header Authorization.

        Raises:
            RefusedError: The credentials are bad.
        """
        scheme, _, given = ask.headers.get("authorization", "").partition(" ")
        if not scheme:
            return Caller("nobody")
        if scheme.lower() == "basic":
            given = _password(given)
        if given.count(".") == 2:
            self._check_jwt(given)
            return Caller("app")
        found = self._tokens.get(given)
        if found and found.caller.kind == "installation":
            self.check_not_suspended()
        expired = found and found.expires_at and found.expires_at <= self.world.clock()
        if found is None or expired:
            raise RefusedError(401, "Bad credentials")
        return found.caller

    def check(self, caller: Caller, route: Route) -> None:
        """Raise the answer that a caller gets who may not."""
        if caller.kind not in route.by:
            if caller.kind == "nobody":
                raise RefusedError(401, "Requires authentication")
            if route.by == ("app",):
                raise RefusedError(401, "A JSON web token could not be decoded")
            if caller.kind == "app":
                raise RefusedError(401, "Bad credentials")
            raise RefusedError(403, "You must authenticate via a GitHub App.")
        if caller.kind in {"app", "nobody"} or not route.needs:
            return
        if self.world.quirks.archived and route.method != "GET":
            raise RefusedError(403, "Repository was archived so is read-only.")
        if not any(self.grants(caller, need) for need in route.needs):
            if caller.kind == "installation":
                raise RefusedError(403, "Resource not accessible by integration")
            raise RefusedError(404, "Not Found")

    def grants(self, caller: Caller, need: str) -> bool:
        name, level = need.split(":")
        if caller.kind == "installation":
            return caller.may(name, level)
        if caller.user is None:
            return False
        rank = ROLES.index(self.world.role(caller.user))
        wanted = {"read": "read", "write": "write", "admin": "admin"}[level]
        if name in {"administration", "checks"} and level != "read":
            wanted = "admin"
        if name == "issues" and level == "write":
            wanted = "read"  # anybody who reads may comment and open issues
        return rank >= ROLES.index("read" if wanted == "read" else wanted)

    def _check_jwt(self, token: str) -> None:
        try:
            # The times are checked below, by the fake's own clock.
            options = {"verify_exp": False, "verify_iat": False, "require": ["iat", "exp", "iss"]}
            claims = jwt.decode(token, app_key()[1], algorithms=["RS256"], options=options)  # type: ignore[arg-type]
        except jwt.PyJWTError as error:
            raise RefusedError(401, "A JSON web token could not be decoded") from error
        now = self.world.clock()
        if str(claims["iss"]) not in {str(self.world.app_id), f"Iv1.{self.world.app_id}"}:
            raise RefusedError(401, "Integration not found")
        if claims["exp"] <= now:
            raise RefusedError(401, "'Expiration time' claim ('exp') must be in the future")
        if claims["exp"] > now + LONGEST_JWT_S:
            raise RefusedError(401, "'Expiration time' claim ('exp') is too far in the future")
        if claims["iat"] > now + _SKEW_S:
            raise RefusedError(401, "'Issued at' claim ('iat') must be in the past")


@route("POST", "/app/installations/{installation_id}/access_tokens", by=("app",))
def make_token(ask: Ask) -> Reply:
    assert ask.access
    if ask.number("installation_id") != ask.world.installation_id:
        raise RefusedError(404, "Not Found")
    ask.access.check_not_suspended()
    token, expires_at, grants = ask.access.add_installation_token(ask.body.get("permissions", {}))
    body = {
        "token": token,
        "expires_at": iso(expires_at),
        "permissions": grants,
        "repository_selection": "selected",
    }
    return Reply(201, body)


def _password(given: str) -> str:
    try:
        return base64.b64decode(given).decode().partition(":")[2]
    except (binascii.Error, UnicodeDecodeError) as error:
        raise RefusedError(401, "Bad credentials") from error
