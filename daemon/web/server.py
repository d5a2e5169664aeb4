"""The web server: webhooks in, health and figures out. The one door to the web framework.

Each connection carries one request and is cut off after some seconds, however slowly it speaks.
"""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Protocol

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from daemon.logs import find_log
from daemon.web.health import HealthReport
from daemon.web.metrics import Answer
from daemon.web.webhooks import (
    MOST_BYTES,
    Addressee,
    Ignored,
    Refused,
    find_delivery,
    open_envelope,
)
from optimizer.errors import StoreError
from optimizer.store import Delivery

WEBHOOK = "/webhook"
_CONNECTION_S = 15.0
_CONNECTIONS = 64
_HEADER_BYTES = 16 * 1024
_START_S = 10.0
_END_S = 3
_QUIET_S = 60.0
"""The log tells of a reason to refuse once in so long; strangers can't fill the disk with it."""
log = find_log(__name__)


class Inbox(Protocol):
    """Where deliveries are kept: `optimizer.store.Store`."""

    def receive(self, delivery: Delivery) -> bool:
        """Keep what was delivered; return False where it is here already."""
        ...


@dataclass
class Reception:
    """Takes deliveries in: once they are in the store, they are answered for."""

    addressee: Addressee
    inbox: Inbox
    clock: Callable[[], float]
    """Seconds since 1970."""
    on_delivery: Callable[[Delivery], None]
    """Called once what was delivered is kept; it must not wait."""
    on_answer: Callable[[Answer], None] = lambda _: None
    _told_at: dict[str, float] = field(default_factory=dict, init=False)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    async def answer(self, request: Request) -> Response:
        """Answer a request to the webhook: 202 only for what is kept."""
        envelope = open_envelope(request.headers.raw)
        if isinstance(envelope, Refused):
            return self._refuse(envelope)
        body = await _read(request)
        if isinstance(body, Refused):
            return self._refuse(body)
        found = find_delivery(envelope, body, self.addressee, now=self.clock())
        if isinstance(found, Refused):
            return self._refuse(found, delivery=envelope.delivery_id)
        if isinstance(found, Ignored):
            self.on_answer("ignored")
            return Response(status_code=HTTPStatus.NO_CONTENT)
        try:
            # In turn: who finds SQLite locked sleeps, and of thirty some would sleep for long.
            async with self._turn:
                is_new = await run_in_threadpool(self.inbox.receive, found)
        except StoreError as error:
            log.warning("delivery can't be kept", delivery=found.id, error=str(error))
            self.on_answer("store_away")
            return _reply(HTTPStatus.SERVICE_UNAVAILABLE)
        self.on_answer("accepted" if is_new else "known")
        if is_new:
            self.on_delivery(found)
        return _reply(HTTPStatus.ACCEPTED)

    def _refuse(self, refused: Refused, **facts: str) -> Response:
        self.on_answer("refused")
        now = self.clock()
        if now - self._told_at.get(refused.why, 0.0) > _QUIET_S:
            self._told_at[refused.why] = now
            log.warning("request refused", status=int(refused.status), why=refused.why, **facts)
        return _reply(refused.status)


async def _read(request: Request) -> bytes | Refused:
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > MOST_BYTES:
                return Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "its body is too long")
    except ClientDisconnect:
        return Refused(HTTPStatus.BAD_REQUEST, "it was broken off")
    return bytes(body)


@dataclass(frozen=True)
class Site:
    """What the server serves."""

    reception: Reception | None
    """Takes webhooks in; None where there are none."""
    find_health: Callable[[], HealthReport]
    """Tells whether the loops turn."""
    is_ready: Callable[[], bool]
    """Tells whether a delivery could be kept now."""
    render_metrics: Callable[[], tuple[bytes, str]]
    """Returns the figures and the type of their text."""


def _make_app(site: Site) -> Starlette:
    def show_health(_: Request) -> Response:
        report = site.find_health()
        status = HTTPStatus.OK if report.alive else HTTPStatus.SERVICE_UNAVAILABLE
        return Response(report.to_json(), status, media_type="application/json")

    def show_readiness(_: Request) -> Response:
        return _reply(HTTPStatus.OK if site.is_ready() else HTTPStatus.SERVICE_UNAVAILABLE)

    def show_metrics(_: Request) -> Response:
        text, kind = site.render_metrics()
        return Response(text, media_type=kind)

    routes = [
        Route("/healthz", show_health),
        Route("/readyz", show_readiness),
        Route("/metrics", show_metrics),
    ]
    if site.reception is not None:
        routes.append(Route(WEBHOOK, site.reception.answer, methods=["POST"]))
    return Starlette(routes=routes)


def _reply(status: HTTPStatus) -> Response:
    return Response(f"{status.phrase}\n", status, media_type="text/plain")


class _OneShot(H11Protocol):
    """A connection that is cut off in time, so that slow ones can't take every place."""

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401 - asyncio's, as its base has it
        super().connection_made(transport)
        self._cut_off = self.loop.call_later(_CONNECTION_S, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._cut_off.cancel()
        super().connection_lost(exc)


@contextmanager
def serving(site: Site, host: str, port: int) -> Iterator[int]:
    """Serve on a thread; the port is handed out, which is a free one where 0 was asked for.

    At the end no more connections are taken, and those that are open have some seconds.

    Raises:
        OSError: The address can't be listened at.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family, backlog=128) as listener:
        server = uvicorn.Server(
            uvicorn.Config(
                _make_app(site),
                http=_OneShot,
                ws="none",
                loop="asyncio",
                lifespan="off",
                log_config=None,
                log_level="error",  # strangers' bad requests are no news
                access_log=False,
                server_header=False,
                proxy_headers=False,
                headers=[("connection", "close")],
                limit_concurrency=_CONNECTIONS,
                h11_max_incomplete_event_size=_HEADER_BYTES,
                timeout_graceful_shutdown=_END_S,
            )
        )
        run = threading.Thread(
            target=server.run, kwargs={"sockets": [listener]}, name="web", daemon=True
        )
        run.start()
        try:
            _wait_until_started(server, run)
            yield int(listener.getsockname()[1])
        finally:
            server.should_exit = True
            run.join(_END_S + 1)


def _wait_until_started(server: uvicorn.Server, run: threading.Thread) -> None:
    waited = threading.Event()
    for _ in range(int(_START_S / 0.01)):
        if server.started:
            return
        if not run.is_alive():
            break
        waited.wait(0.01)
    msg = "the web server did not start"
    raise OSError(msg)
