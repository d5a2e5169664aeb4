"""Whether what came in by the web is a delivery of our code host that we want. Pure.

Nothing is believed before the signature over the body's bytes is right, and little afterwards: a
delivery is a hint to look, never a fact to act upon. The delivery's own number is not signed, so
that a body may come again under another one; those who handle it bear that.
"""

import hashlib
import hmac
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from types import MappingProxyType

from optimizer.store import Delivery

MOST_BYTES = 4 * 1024 * 1024
"""A comment of 65,536 signs below an issue of as many, all of them escaped, is half of it."""
_SIGNATURE = re.compile(rb"sha256=[0-9a-f]{64}")
_DELIVERY = re.compile(rb"[A-Za-z0-9-]{1,64}")
_EVENT = re.compile(rb"[a-z][a-z0-9_]{0,63}")
_LENGTH = re.compile(rb"[0-9]{1,19}")
_CONTENT_TYPE = re.compile(rb"application/json\s*(;\s*charset=utf-?8\s*)?", re.IGNORECASE)
_NAMES = (
    b"content-type",
    b"x-github-event",
    b"x-github-delivery",
    b"x-hub-signature-256",
)
EVENTS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "check_run": frozenset({"rerequested", "requested_action"}),
        "check_suite": frozenset({"rerequested"}),
        "issue_comment": frozenset({"created", "deleted"}),
        "issues": frozenset({"opened", "edited", "closed", "reopened", "deleted"}),
        "pull_request": frozenset(
            {
                "opened", "edited", "closed", "reopened", "synchronize", "labeled", "unlabeled",
                "ready_for_review", "converted_to_draft",
            }
        ),
        "push": frozenset(),
        "workflow_run": frozenset({"requested", "in_progress", "completed"}),
    }
)  # fmt: skip
"""The events that anything here looks at, with their actions; an empty set for one without."""


@dataclass(frozen=True)
class Refused:
    """It is not answered for; `why` is for our log, not for the sender."""

    status: HTTPStatus
    why: str


@dataclass(frozen=True)
class Ignored:
    """It is the code host's, and of no use here."""

    why: str


@dataclass(frozen=True)
class Envelope:
    """What a request's headers say of it; nothing of it is believed yet."""

    event: str
    delivery_id: str
    signature: bytes


@dataclass(frozen=True)
class Addressee:
    """Whose deliveries are taken, and by which secrets they are known to be the code host's."""

    secrets: tuple[bytes, ...] = field(repr=False)
    """One; two while they are changed."""
    repository: str
    """``owner/name``."""
    installation: int | None = None
    """The App's; None where there is no App."""


def open_envelope(headers: Sequence[tuple[bytes, bytes]]) -> Envelope | Refused:
    """Return what the headers say, before anything of the body is read.

    Args:
        headers: Names in lower case, and values, as they came.
    """
    found = _pick(headers)
    if isinstance(found, Refused):
        return found
    kind, event, delivery, signature = (found.get(name, b"") for name in _NAMES)
    if not _CONTENT_TYPE.fullmatch(kind):
        return Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "it is not application/json")
    if not _EVENT.fullmatch(event) or not _DELIVERY.fullmatch(delivery):
        return Refused(HTTPStatus.BAD_REQUEST, "it names no event or no delivery")
    if not _SIGNATURE.fullmatch(signature):
        return Refused(HTTPStatus.FORBIDDEN, "it has no signature")
    return Envelope(event.decode(), delivery.decode(), signature)


def find_delivery(
    envelope: Envelope, body: bytes, addressee: Addressee, *, now: float
) -> Delivery | Ignored | Refused:
    """Return the delivery in a request, or why there is none for us.

    Args:
        envelope: What its headers say.
        body: Its body, byte for byte.
        addressee: Whose deliveries are taken.
        now: When it came, in seconds since 1970.
    """
    if not is_signed(body, envelope.signature, addressee.secrets):
        return Refused(HTTPStatus.FORBIDDEN, "its signature is wrong")
    try:
        text = body.decode()
        payload = json.loads(text)
    except (ValueError, RecursionError):
        return Refused(HTTPStatus.BAD_REQUEST, "its body is no JSON")
    if envelope.event not in EVENTS:
        return Ignored(f"event {envelope.event}")
    if not _is_of(payload, addressee):
        return Ignored("another repository's or installation's")
    actions, action = EVENTS[envelope.event], payload.get("action")
    if actions and not (isinstance(action, str) and action in actions):
        return Ignored(f"an action of {envelope.event}")
    return Delivery(id=envelope.delivery_id, event=envelope.event, body=text, received_at=now)


def is_signed(body: bytes, signature: bytes, secrets: Sequence[bytes]) -> bool:
    """Return whether a signature, ``sha256=`` and 64 hex digits, is made with one of the secrets.

    Every secret is tried, so that the time tells nothing of which one it was.
    """
    right = [hmac.compare_digest(sign(body, secret), signature) for secret in secrets]
    return any(right)


def sign(body: bytes, secret: bytes) -> bytes:
    """Return the signature of a body."""
    return b"sha256=" + hmac.new(secret, body, hashlib.sha256).hexdigest().encode()


def _pick(headers: Sequence[tuple[bytes, bytes]]) -> dict[bytes, bytes] | Refused:
    found: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in found:
            return Refused(HTTPStatus.BAD_REQUEST, f"two headers {name.decode()}")
        if name in _NAMES:
            found[name] = value.strip()
        if name == b"content-encoding":
            return Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "its body is encoded")
        if name == b"content-length" and _is_too_long(value):
            return Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "its body is too long")
    return found


def _is_too_long(length: bytes) -> bool:
    # What is no number is for the server to refuse.
    return bool(_LENGTH.fullmatch(length.strip())) and int(length) > MOST_BYTES


def _is_of(payload: object, addressee: Addressee) -> bool:
    if not isinstance(payload, dict):
        return False
    repository, installation = payload.get("repository"), payload.get("installation")
    name = repository.get("full_name") if isinstance(repository, dict) else None
    # ASCII only: other letters are made ours by lower(), such as the sign for Kelvin.
    if not isinstance(name, str) or not name.isascii():
        return False
    number = installation.get("id") if isinstance(installation, dict) else None
    expected = addressee.installation
    return name.lower() == addressee.repository.lower() and expected in (None, number)
