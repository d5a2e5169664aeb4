"""The front of the fake of GitHub: each request goes through faults, limits and tokens."""

import hashlib
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus

from tests.github.access import Access
from tests.github.asking import Ask, Caller, Reply, Route, find_route, parse_target, problem
from tests.github.limits import Limits, Logged
from tests.github.quirks import Fault
from tests.github.server import Request, Response, run_git_http
from tests.github.world import RefusedError, World

API = "/api/v3"
Contract = Callable[[Route, Ask, Reply], list[str]]
"""Returns what a request and its answer violate in GitHub's description."""


@dataclass
class Front:
    """Answers requests to the API one at a time, those of git beside one another."""

    world: World
    access: Access
    lock: threading.RLock
    limits: Limits
    contract: Contract | None = None
    violations: list[str] = field(default_factory=list)
    _hidden: dict[str, int] = field(default_factory=dict)
    """How many looks at an address still find nothing there."""
    _lists: dict[str, tuple[int, Reply]] = field(default_factory=dict)
    """What lists show for so many looks still, though more is there."""

    def answer(self, request: Request) -> Response | None:
        """Answer a request to the API, to git, or for an artefact's bytes."""
        path, query = parse_target(request.target)
        if path.startswith("/blobs/"):
            return self._send_blob(path, query, request)
        is_git = not path.startswith("/api/")
        short = path if is_git else path.removeprefix(API).removeprefix("/api")
        now = self.world.clock()
        body = b"" if is_git else request.body
        log = Logged(request.method, short, query, request.headers, body, now)
        with self.lock:
            self.limits.requests.append(log)
            fault = self.world.quirks.pick(request.method, short)
        if fault is not None and fault.kind == "slow":
            time.sleep(fault.slow_s)
        if fault is not None and fault.kind == "hangs up before":
            return None
        early = self.limits.spoil(fault, log) if fault else None
        if early is not None:
            answer = self._write(early)
        elif is_git:
            answer = self._answer_git(log, request)
        else:
            answer = self._answer_api(log, request)
        return self._end(log, answer, fault)

    def _end(self, log: Logged, answer: Response, fault: Fault | None) -> Response | None:
        if fault is not None and fault.kind == "hangs up after":
            return None
        if fault is not None and fault.kind == "502 after":
            answer = self._write(problem(502, "Server Error"))
        log.status = answer.status
        return answer

    def _answer_api(self, log: Logged, request: Request) -> Response:
        ask = Ask(log.method, log.path, log.query, log.headers, request.body, self.world)
        ask.access = self.access
        with self.lock:
            reply = self.limits.refuse(log)
            if reply is None:
                reply = self._carry_out(ask, log)
            answer = self._write(reply)
        tag = answer.headers.get("ETag")
        if tag is None or ask.method != "GET":
            return answer
        if ask.headers.get("if-none-match", "").removeprefix("W/") == tag.removeprefix("W/"):
            self.limits.take_back(log)
            return Response(304, answer.headers, b"")
        return answer

    def _carry_out(self, ask: Ask, log: Logged) -> Reply:
        found = find_route(ask.method, ask.path)
        if found is None:
            return problem(404, "Not Found")
        route, ask.params = found
        try:
            ask.caller = self.access.identify(ask)
            log.login = ask.caller.user.login if ask.caller.user else ask.caller.kind
            self.access.check(ask.caller, route)
            self._check_repository(ask)
            reply = self._aged(ask, route.answer(ask))
        except RefusedError as error:
            reply = problem(error.status, error.message, error.errors)
        except (KeyError, ValueError, TypeError) as error:
            reply = problem(400, f"Problems parsing JSON: {error!r}")
        if reply.status < HTTPStatus.BAD_REQUEST:
            self.limits.count(log)
        if self.contract:
            self.violations += self.contract(route, ask, reply)
        return reply

    def _check_repository(self, ask: Ask) -> None:
        named = f"{ask.params.get('owner', '')}/{ask.params.get('repo', '')}"
        if "repo" in ask.params and named.lower() != self.world.full_name.lower():
            raise RefusedError(404, "Not Found")

    def _aged(self, ask: Ask, reply: Reply) -> Reply:
        """Return what a replica of the database that lags behind would answer."""
        quirks = self.world.quirks
        if ask.method != "GET":
            if quirks.hidden_looks and reply.status == HTTPStatus.CREATED:
                made = json.loads(json.dumps(reply.body)).get("url", "")
                self._hidden[made.removeprefix(self.world.api)] = quirks.hidden_looks
            return reply
        if left := self._hidden.get(ask.path, 0):
            self._hidden[ask.path] = left - 1
            return problem(404, "Not Found")
        if not quirks.stale_lists or not isinstance(reply.body, list):
            return reply
        key = f"{ask.path}?{sorted(ask.query.items())}"
        left, old = self._lists.get(key, (quirks.stale_lists, reply))
        if old.body == reply.body or left == 0:
            self._lists[key] = (quirks.stale_lists, reply)
            return reply
        self._lists[key] = (left - 1, old)
        return old

    def _write(self, reply: Reply) -> Response:
        body = b"" if reply.body is None else reply.body
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        headers = {"Content-Type": "application/json; charset=utf-8"}
        headers |= self.limits.headers(self.world.clock()) | reply.headers
        if self.world.quirks.etags and reply.status == HTTPStatus.OK:
            seen = body + headers.get("Link", "").encode()
            headers["ETag"] = f'W/"{hashlib.sha256(seen).hexdigest()}"'
        return Response(reply.status, headers, body)

    def _send_blob(self, path: str, query: dict[str, str], request: Request) -> Response:
        """Send an artefact as a blob storage does, which refuses strange credentials."""
        artifact = self.world.artifacts.get(int(path.rpartition("/")[2]))
        if "authorization" in request.headers or artifact is None or "sig" not in query:
            words = b"<Error><Code>InvalidAuthenticationInfo</Code></Error>"
            return Response(400, {"Content-Type": "application/xml"}, words)
        return Response(200, {"Content-Type": "application/zip"}, artifact.zipped)

    def _answer_git(self, log: Logged, request: Request) -> Response:
        """Let git's own program answer, after a look at the token; a push has consequences."""
        pushes = "git-receive-pack" in request.target
        refused = self._look_at_token(log, request, pushes=pushes)
        if refused is not None:
            return refused
        root, user = self.world.folder, self.world.user(log.login or "anonymous")
        if not pushes or request.method == "GET":
            return run_git_http(root, request, user=user.login)
        with self.lock:
            if user.role != "admin" and (branch := self._find_protected(request.body)):
                return _tell_git(403, f"{branch} is protected")
            before = self.world.git.heads()
            answer = run_git_http(root, request, user=user.login)
            self.world.moved(before, user)
        log.done = True
        return answer

    def _look_at_token(self, log: Logged, request: Request, *, pushes: bool) -> Response | None:
        ask = Ask(log.method, log.path, log.query, log.headers, b"", self.world)
        try:
            caller = self.access.identify(ask)
        except RefusedError:
            return _tell_git(401, "Invalid username or token.")
        log.login = caller.user.login if caller.user else ""
        if not pushes and not self.world.private:
            return None
        if caller == Caller("nobody"):
            return _tell_git(401, "Authentication required.")
        need = "contents:write" if pushes else "contents:read"
        if not self.access.grants(caller, need):
            return _tell_git(403, "Write access to repository not granted.")
        return None

    def _find_protected(self, push: bytes) -> str | None:
        for branch in self.world.protected:
            if (
                f" refs/heads/{branch}\0".encode() in push
                or f" refs/heads/{branch}\n".encode() in push
            ):
                return branch
        return None


def _tell_git(status: int, words: str) -> Response:
    headers = {"Content-Type": "text/plain"}
    if status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = 'Basic realm="GitHub"'
    return Response(status, headers, words.encode())
