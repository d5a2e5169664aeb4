"""Somebody at the other end of a real socket: the code host, or one who would like to be it."""

import json
import socket
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection

from daemon.web.webhooks import sign

SECRET = b"a secret that is long enough"


def make_body(**changes: object) -> bytes:
    payload = {
        "action": "created",
        "repository": {"full_name": "acme/kernels"},
        "installation": {"id": 7},
    }
    return json.dumps(payload | changes).encode()


@dataclass(frozen=True)
class Reply:
    status: int
    text: str
    took_s: float


@dataclass
class Client:
    port: int
    secret: bytes = SECRET
    path: str = "/webhook"
    event: str = "issue_comment"
    extra: dict[str, str] = field(default_factory=dict)

    def deliver(
        self, body: bytes, *, delivery_id: str | None = None, **changes: str | None
    ) -> Reply:
        """Send a signed delivery; `changes` are headers, None for one left out."""
        usual: dict[str, str | None] = {
            "content-type": "application/json",
            "x-github-event": self.event,
            "x-github-delivery": delivery_id or str(uuid.uuid4()),
            "x-hub-signature-256": sign(body, self.secret).decode(),
        }
        given = usual | {name.replace("_", "-"): value for name, value in changes.items()}
        return self.ask("POST", self.path, body, {n: v for n, v in given.items() if v is not None})

    def ask(
        self, verb: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> Reply:
        began = time.monotonic()
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(verb, path, body, headers or {})
            response = connection.getresponse()
            text = response.read().decode()
        finally:
            connection.close()
        return Reply(response.status, text, time.monotonic() - began)

    @contextmanager
    def speaking(self) -> Iterator[socket.socket]:
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as spoken:
            yield spoken

    def head(self, body: bytes, *lines: str) -> bytes:
        """Return the beginning of a request with a right signature for `body`, and more lines."""
        signature = sign(body, self.secret).decode()
        usual = (
            f"POST {self.path} HTTP/1.1",
            "Host: localhost",
            "Content-Type: application/json",
            f"X-GitHub-Event: {self.event}",
            "X-GitHub-Delivery: raw-1",
            f"X-Hub-Signature-256: {signature}",
        )
        return "\r\n".join((*usual, *lines, "", "")).encode("latin-1")


def read_all(spoken: socket.socket) -> bytes:
    """Return what comes until the other side closes, whether in peace or not."""
    said = b""
    try:
        while chunk := spoken.recv(65536):
            said += chunk
    except ConnectionError:
        pass
    return said


def status_of(answer: bytes) -> int | None:
    """Return the status of an answer; None where there is none."""
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else None
