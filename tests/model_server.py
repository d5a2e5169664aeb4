"""A server on loopback that talks as OpenAI's does, and says or does what a test wants."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Body = dict[str, Any]


@dataclass(frozen=True)
class Says:
    """Answers well: a stream where it was asked for one."""

    text: str
    finish: str = "stop"
    usage: tuple[int, int] | None = (100, 50)


@dataclass(frozen=True)
class Refuses:
    """Answers with a state and a body."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: str = '{"error": {"message": "no"}}'


@dataclass(frozen=True)
class Sends:
    """Answers with whatever bytes."""

    chunks: Callable[[], Iterator[bytes]]
    content_type: str = "text/event-stream"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Waits:
    """Says nothing, until the client gives up or the test ends."""

    seconds: float = 30.0


Deed = Says | Refuses | Sends | Waits
Act = Callable[[int, Body], Deed]
"""From the number of the question, from 1, and its body."""


@dataclass
class ModelServer:
    """What was asked, and where."""

    url: str
    act: Act
    asked: list[Body] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    at_once: int = 0
    """The most questions that were open at one time."""
    ending: threading.Event = field(default_factory=threading.Event)
    _open: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def prompts(self) -> list[str]:
        """The texts of all questions."""
        return ["\n".join(m["content"] for m in body["messages"]) for body in self.asked]

    def take(self, body: Body, headers: dict[str, str]) -> Deed:
        with self._lock:
            self.asked.append(body)
            self.headers.append(headers)
            self._open += 1
            self.at_once = max(self.at_once, self._open)
            return self.act(len(self.asked), body)

    def left(self) -> None:
        with self._lock:
            self._open -= 1


class Handler(BaseHTTPRequestHandler):
    """Answers one question."""

    protocol_version = "HTTP/1.1"
    ours: ModelServer

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its own name
        """Be quiet."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        deed = self.ours.take(body, {n.lower(): v for n, v in self.headers.items()})
        try:
            with suppress(ConnectionError):
                self.do(deed, stream=bool(body.get("stream")))
        finally:
            self.ours.left()

    def do(self, deed: Deed, *, stream: bool) -> None:
        self.close_connection = True
        match deed:
            case Says():
                chunks = events(deed) if stream else iter([whole(deed)])
                kind = "text/event-stream" if stream else "application/json"
                self.send(200, {"Content-Type": kind}, chunks)
            case Refuses():
                headers = {"Content-Type": "application/json", **deed.headers}
                self.send(deed.status, headers, iter([deed.body.encode()]))
            case Sends():
                headers = {"Content-Type": deed.content_type, **deed.headers}
                self.send(deed.status, headers, deed.chunks())
            case Waits(seconds):
                self.ours.ending.wait(seconds)

    def send(self, status: int, headers: dict[str, str], chunks: Iterator[bytes]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Connection": "close"}.items():
            self.send_header(name, value)
        self.end_headers()
        for chunk in chunks:
            if self.ours.ending.is_set():
                return
            self.wfile.write(chunk)
            self.wfile.flush()


@contextmanager
def serving(act: Act) -> Iterator[ModelServer]:
    class Bound(Handler):
        """The handler of this server alone."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Bound)
    http.daemon_threads = True
    server = Bound.ours = ModelServer(f"http://127.0.0.1:{http.server_port}/v1", act)
    thread = threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.ending.set()
        http.shutdown()
        http.server_close()
        thread.join()


def event(value: object) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()


def events(said: Says) -> Iterator[bytes]:
    for place in range(0, len(said.text), 40):
        delta = {"content": said.text[place : place + 40]}
        yield event({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    yield event({"choices": [{"index": 0, "delta": {}, "finish_reason": said.finish}]})
    if said.usage:
        yield event({"choices": [], "usage": usage(said)})
    yield b"data: [DONE]\n\n"


def whole(said: Says) -> bytes:
    choice = {"message": {"content": said.text}, "finish_reason": said.finish}
    return json.dumps({"choices": [choice], "usage": usage(said)}, indent=1).encode()


def usage(said: Says) -> dict[str, int] | None:
    if said.usage is None:
        return None
    return {"prompt_tokens": said.usage[0], "completion_tokens": said.usage[1]}
