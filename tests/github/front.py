"""The front of the fake of GitHub: faults, limits, tokens, ETags and the log of requests."""

import hashlib
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.github.access import Access
from tests.github.asking import Ask, Reply, Route, find_route, parse_target, problem
from tests.github.quirks import Fault
from tests.github.server import Request, Response, run_git_http
from tests.github.world import RefusedError, World

API = "/api/v3"
_WRITES = ("POST", "PUT", "PATCH", "DELETE")
_PRIMARY = "API rate limit exceeded for installation ID 1."
_SECONDARY = (
    "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
)


@dataclass
class Logged:
    """A request that came, and what became of it."""

    method: str
    path: str
    query: dict[str, str]
    body: bytes
    at: float
    login: str = ""
    status: int = 0
    """What the client was told; 0 where the line was cut."""
    done: bool = False
    """Whether the host carried it out, whatever the client was told."""
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def writes(self) -> bool:
        return self.method in _WRITES


Contract = Callable[[Route, Ask, Reply], list[str]]
"""Returns what a request and its answer violate in GitHub's description."""


@dataclass
class Front:
    """Answers each request, one at a time; git's beside one another."""

    world: World
    access: Access
    lock: threading.RLock
    contract: Contract | None = None
    requests: list[Logged] = field(default_factory=list)
    impatient: list[Logged] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    _blocked: Fault | None = None
    _blocked_until: float = 0.0
    _hidden: dict[str, int] = field(default_factory=dict)

    def answer(self, request: Request) -> Response | None:
        """Answer a request to the API, to git, or for an artefact's bytes."""
        path, query = parse_target(request.target)
        if path.startswith("/blobs/"):
            return self._send_blob(path, query, request)
        if not path.startswith("/api/"):
            return self._answer_git(path, request)
        short = path.removeprefix(API) if path.startswith(API) else path.removeprefix("/api")
        log = Logged(request.method, short, query, request.body, self.world.clock())
        log.headers = request.headers
        self.requests.append(log)
        fault = self.world.quirks.pick(request.method, short)
        if fault is not None and fault.kind == "slow":
            time.sleep(fault.slow_s)
        if fault is not None and (early := self._early(fault, log)):
            return self._told(log, early)
        if fault is not None and fault.kind == "hangs up before":
            return None
        ask = Ask(request.method, short, query, request.headers, request.body, self.world)
        ask.access = self.access
        with self.lock:
            reply = self._limited(log) or self._carry_out(ask, log)
        if fault is not None and fault.kind == "hangs up after":
            log.status = 0
            return None
        if fault is not None and fault.kind == "502 after":
            return self._told(log, problem(502, "Server Error"))
        return self._told(log, reply, ask)

    def _early(self, fault: Fault, log: Logged) -> Reply | None:
        """Return the answer of a fault that keeps a request from being carried out."""
        if fault.kind in {"500", "502 before", "503"}:
            return Reply(
                int(fault.kind[:3]), b"<html>Unicorn!</html>", {"Content-Type": "text/html"}
            )
        if fault.kind == "401":
            return problem(401, "Bad credentials")
        if fault.kind == "404":
            return problem(404, "Not Found")
        if fault.kind == "html":
            return Reply(200, b"<html>Please sign in</html>", {"Content-Type": "text/html"})
        if fault.kind == "403 primary":
            reset = str(int(log.at + (fault.retry_after_s or 3600)))
            headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset}
            self._block(fault, log.at + (fault.retry_after_s or 3600))
            return self._with(problem(403, _PRIMARY), headers)
        if fault.kind in {"403 secondary", "429"}:
            headers = {}
            if fault.retry_after_s is not None:
                headers["Retry-After"] = str(fault.retry_after_s)
                self._block(fault, log.at + fault.retry_after_s)
            return self._with(problem(int(fault.kind[:3]), _SECONDARY), headers)
        return None

    def _block(self, fault: Fault, until: float) -> None:
        self._blocked, self._blocked_until = fault, until

    @staticmethod
    def _with(reply: Reply, headers: dict[str, str]) -> Reply:
        reply.headers |= headers
        return reply

    def _limited(self, log: Logged) -> Reply | None:
        """Return the answer where too much is asked: what GitHub's two kinds of limits say."""
        quirks = self.world.quirks
        if self._blocked and log.at < self._blocked_until:
            self.impatient.append(log)
            return self._early(self._blocked, log)
        done = [r for r in self.requests if r.done and r.at > log.at - 3600]
        if len(done) >= quirks.requests_per_hour:
            headers = {"X-RateLimit-Remaining": "0"}
            headers["X-RateLimit-Reset"] = str(int(done[0].at + 3600))
            return self._with(problem(403, _PRIMARY), headers)
        if not log.writes or log.path.startswith("/app/"):
            return None
        writes = [r.at for r in done if r.writes and not r.path.startswith("/app/")]
        for most, span in ((quirks.writes_per_minute, 60), (quirks.writes_per_hour, 3600)):
            within = [at for at in writes if at > log.at - span]
            if most is not None and len(within) >= most:
                wait = str(int(within[0] + span - log.at) + 1)
                headers = {"Retry-After": wait} if quirks.says_retry_after else {}
                return self._with(problem(quirks.secondary_status, _SECONDARY), headers)
        return None

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
            if self._hides(ask):
                return problem(404, "Not Found")
            reply = route.answer(ask)
            log.done = reply.status < 400
        except RefusedError as error:
            reply = problem(error.status, error.message, error.errors)
        except (KeyError, ValueError, TypeError) as error:
            reply = problem(400, f"Problems parsing JSON: {error!r}")
        if self.contract:
            self.violations += self.contract(route, ask, reply)
        self._note_new(ask, reply)
        return reply

    def _check_repository(self, ask: Ask) -> None:
        named = f"{ask.params.get('owner', '')}/{ask.params.get('repo', '')}"
        if "repo" in ask.params and named.lower() != self.world.full_name.lower():
            raise RefusedError(404, "Not Found")

    def _note_new(self, ask: Ask, reply: Reply) -> None:
        """Keep what was just made out of sight for a while, where the quirks say so."""
        looks = self.world.quirks.hidden_looks
        if looks and ask.method == "POST" and reply.status == 201 and isinstance(reply.body, dict):
            self._hidden[str(reply.body.get("url", "")).removeprefix(self.world.api)] = looks

    def _hides(self, ask: Ask) -> bool:
        left = self._hidden.get(ask.path, 0) if ask.method == "GET" else 0
        if left:
            self._hidden[ask.path] = left - 1
        return left > 0

    def _told(self, log: Logged, reply: Reply, ask: Ask | None = None) -> Response:
        quirks = self.world.quirks
        limit = quirks.requests_per_hour
        used = sum(r.done for r in self.requests)
        headers = {
            "Content-Type": "application/json; charset=utf-8",
            "X-GitHub-Request-Id": hashlib.sha256(str(len(self.requests)).encode()).hexdigest()[
                :16
            ],
            "X-RateLimit-Limit": str(limit),
            "X-RateLimit-Remaining": str(max(0, limit - used)),
            "X-RateLimit-Reset": str(int(log.at) + 3600),
            "X-RateLimit-Resource": "core",
        } | reply.headers
        body = _bytes_of(reply.body)
        if quirks.etags and ask and ask.method == "GET" and reply.status == 200:
            tag = f'"{hashlib.sha256(body + headers.get("Link", "").encode()).hexdigest()}"'
            headers["ETag"] = f"W/{tag}"
            if ask.headers.get("if-none-match", "").removeprefix("W/") == tag:
                log.status, log.done = 304, False  # it does not count against the limit
                return Response(304, headers, b"")
        log.status = reply.status
        return Response(reply.status, headers, body)

    def _send_blob(self, path: str, query: dict[str, str], request: Request) -> Response:
        """Send an artefact as a blob storage does, which refuses strange credentials."""
        artifact = self.world.artifacts.get(int(path.rpartition("/")[2]))
        if "authorization" in request.headers or artifact is None or "sig" not in query:
            words = b"<Error><Code>InvalidAuthenticationInfo</Code></Error>"
            return Response(400, {"Content-Type": "application/xml"}, words)
        return Response(200, {"Content-Type": "application/zip"}, artifact.zipped)

    def _answer_git(self, path: str, request: Request) -> Response:
        """Let git's own program answer, after a look at the token; a push has consequences."""
        ask = Ask(request.method, path, {}, request.headers, request.body, self.world)
        log = Logged(request.method, path, {}, b"", self.world.clock(), headers=request.headers)
        self.requests.append(log)
        pushes = "git-receive-pack" in request.target
        need = "contents:write" if pushes else "contents:read"
        try:
            caller = self.access.identify(ask)
        except RefusedError:
            return _ask_for_password(log)
        free = not pushes and not self.world.private
        if not free and not (caller.user and self.access.grants(caller, need)):
            return _ask_for_password(log) if caller.kind == "nobody" else _told_git(log, 403)
        user = caller.user or self.world.owner
        log.login = user.login
        root = self.world.folder
        if request.method == "GET" or not pushes:
            answer = run_git_http(root, request, user=user.login)
        else:
            with self.lock:
                if taken := self._protected_in(request.body, user.role == "admin"):
                    return _told_git(log, 403, f"{taken} is protected")
                before = self.world.git.heads()
                answer = run_git_http(root, request, user=user.login)
                self.world.moved(before, user)
        log.status, log.done = answer.status, True
        return answer

    def _protected_in(self, body: bytes, is_admin: bool) -> str | None:  # noqa: FBT001
        for branch in () if is_admin else self.world.protected:
            if f" refs/heads/{branch}\0".encode() in body[:65536]:
                return branch
        return None


def _bytes_of(body: object) -> bytes:
    if body is None:
        return b""
    return body if isinstance(body, bytes) else json.dumps(body).encode()


def _ask_for_password(log: Logged) -> Response:
    log.status = 401
    return Response(401, {"WWW-Authenticate": 'Basic realm="GitHub"'}, b"Bad credentials")


def _told_git(log: Logged, status: int, words: str = "Write access not granted.") -> Response:
    log.status = status
    return Response(status, {"Content-Type": "text/plain"}, f"remote: {words}".encode())
