"""HTTP for the fake of GitHub: a threaded server, and git's own program behind it."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.client import responses
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Request:
    method: str
    target: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes


@dataclass(frozen=True)
class Response:
    status: int
    headers: dict[str, str]
    body: bytes


Answer = Callable[[Request], Response | None]
"""None hangs up without a word."""


class Server:
    """Serves on a free port of 127.0.0.1 until it is closed, a thread for each connection."""

    def __init__(self, answer: Answer) -> None:
        self._open: set[socket.socket] = set()
        self._http = _Http(("127.0.0.1", 0), _make_handler(answer, self._open))
        self._http.errors = []
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop, with the connections that clients keep open; raise what went wrong here."""
        self._http.shutdown()
        self._thread.join()
        for connection in tuple(self._open):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # the client was first
        self._http.server_close()
        if self._http.errors:
            raise self._http.errors[0]


class _Http(ThreadingHTTPServer):
    daemon_threads = False  # joined when it is closed, so that no test leaves a thread behind
    request_queue_size = 128

    errors: list[BaseException]

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - its type
        """Keep what went wrong here; a client that hangs up is no fault of the server's."""
        error = sys.exception()
        if error is not None and not isinstance(error, ConnectionError):
            self.errors.append(error)


def _make_handler(  # noqa: C901 - a class of the standard library's shape
    answer: Answer, known: set[socket.socket]
) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1

        def setup(self) -> None:
            known.add(self.request)
            super().setup()

        def finish(self) -> None:
            known.discard(self.request)
            super().finish()

        def _serve(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Request(self.command, self.path, headers, self._read_body())
            response = answer(request)
            if response is None:
                self.close_connection = True
                return
            self.send_response_only(response.status, responses.get(response.status))
            for name, value in response.headers.items():
                self.send_header(name, value)
            if response.status not in {204, 304}:
                self.send_header("Content-Length", str(len(response.body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(response.body)
            self.wfile.flush()

        def _read_body(self) -> bytes:
            if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            whole = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                whole += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return whole

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = _serve  # noqa: N815 - its names

        def log_message(self, *_: object) -> None:
            """Say nothing: the fake keeps a log of its own."""

    return Handler


def run_git_http(root: Path, request: Request, *, user: str) -> Response:
    """Answer a request of git's by ``git http-backend``."""
    parts = urlsplit(request.target)
    settings = {
        "PATH": os.environ.get("PATH", ""),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_PROJECT_ROOT": str(root),
        "GIT_HTTP_EXPORT_ALL": "1",
        "REQUEST_METHOD": request.method,
        "PATH_INFO": parts.path,
        "QUERY_STRING": parts.query,
        "CONTENT_TYPE": request.headers.get("content-type", ""),
        "CONTENT_LENGTH": str(len(request.body)),
        "HTTP_CONTENT_ENCODING": request.headers.get("content-encoding", ""),
        "GIT_PROTOCOL": request.headers.get("git-protocol", ""),
        "REMOTE_USER": user,
        "REMOTE_ADDR": "127.0.0.1",
    }
    done = subprocess.run(
        ["git", "http-backend"], input=request.body, capture_output=True, check=True, env=settings
    )
    head, _, body = done.stdout.partition(b"\r\n\r\n")
    headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
    status = int(headers.pop("Status", "200").split()[0])
    return Response(status, headers, body)
