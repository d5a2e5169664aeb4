"""What keeps a request of the fake of GitHub from being carried out: faults and limits."""

from collections import deque
from dataclasses import dataclass, field

from tests.github.asking import Reply, problem
from tests.github.quirks import Fault, Quirks

_PRIMARY = "API rate limit exceeded for installation ID 1."
_SECONDARY = (
    "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
)
_PAGES = {"500": "Unicorn!", "502 before": "Unicorn!", "503": "Unicorn!", "html": "Please sign in"}
_HOUR_S = 3600
_POINTS = {False: 1, True: 5}
"""Of a request that reads, and of one that writes."""


@dataclass(eq=False)
class Logged:
    """A request that came, and what became of it."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    at: float
    login: str = ""
    status: int = 0
    """What the client was told; 0 where the line was cut."""
    done: bool = False
    """Whether the host carried it out, whatever the client was told."""

    @property
    def writes(self) -> bool:
        return self.method not in {"GET", "HEAD"}

    @property
    def makes_content(self) -> bool:
        """Whether the secondary limits on content count it."""
        return self.writes and not self.path.startswith("/app/")


@dataclass
class Limits:
    quirks: Quirks
    requests: list[Logged] = field(default_factory=list)
    impatient: list[Logged] = field(default_factory=list)
    """What came although the client had been told to wait."""
    _told: Fault | None = None
    _wait_until: float = 0.0
    _recent: deque[Logged] = field(default_factory=deque)
    """What was carried out within the hour, oldest first."""

    def count(self, log: Logged) -> None:
        """Note what was carried out."""
        log.done = True
        self._recent.append(log)

    def take_back(self, log: Logged) -> None:
        """Note that the answer was 304, which does not count against the limits."""
        log.done = False
        self._recent.remove(log)

    def spoil(self, fault: Fault, log: Logged) -> Reply | None:
        """Return the answer of a fault that comes before the effect; None for another."""
        match fault.kind:
            case "500" | "502 before" | "503" | "html" as kind:
                status = 200 if kind == "html" else int(kind[:3])
                page = f"<html>{_PAGES[kind]}</html>".encode()
                return Reply(status, page, {"Content-Type": "text/html"})
            case "401":
                return problem(401, "Bad credentials")
            case "404":
                return problem(404, "Not Found")
            case "403 primary":
                self._wait(fault, log.at + (fault.retry_after_s or _HOUR_S))
                return _primary(self._wait_until)
            case "403 secondary" | "429" as kind:
                reply = problem(int(kind[:3]), _SECONDARY)
                if fault.retry_after_s is not None:
                    self._wait(fault, log.at + fault.retry_after_s)
                    reply.headers["Retry-After"] = str(fault.retry_after_s)
                return reply
        return None

    def refuse(self, log: Logged) -> Reply | None:
        """Return the answer where too much was asked, as GitHub's two kinds of limits have it."""
        if self._told is not None and log.at < self._wait_until:
            self.impatient.append(log)
            return self.spoil(self._told, log)
        self._forget(log.at)
        if len(self._recent) >= self.quirks.requests_per_hour:
            return _primary(self._recent[0].at + _HOUR_S)
        wait_s = self._find_wait_s(log)
        if wait_s is None:
            return None
        reply = problem(self.quirks.secondary_status, _SECONDARY)
        if self.quirks.says_retry_after:
            reply.headers["Retry-After"] = str(int(wait_s) + 1)
        return reply

    def _find_wait_s(self, log: Logged) -> float | None:
        """Return how long to wait for a secondary limit; None where there is room."""
        quirks = self.quirks
        limits = [(quirks.points_per_minute, 60, False)]
        if log.makes_content:
            limits += [
                (quirks.writes_per_minute, 60, True),
                (quirks.writes_per_hour, _HOUR_S, True),
            ]
        for most, span_s, of_content in limits:
            if most is None:
                continue
            within = [one for one in self._recent if one.at > log.at - span_s]
            if of_content:
                points = [one.at for one in within if one.makes_content]
            else:
                points = [one.at for one in within for _ in range(_POINTS[one.writes])]
            if len(points) >= most:
                return points[0] + span_s - log.at
        return None

    def _forget(self, now: float) -> None:
        while self._recent and self._recent[0].at <= now - _HOUR_S:
            self._recent.popleft()

    def headers(self, now: float) -> dict[str, str]:
        """Return what each answer says of the primary limit."""
        most = self.quirks.requests_per_hour
        self._forget(now)
        return {
            "X-RateLimit-Limit": str(most),
            "X-RateLimit-Remaining": str(max(0, most - len(self._recent))),
            "X-RateLimit-Reset": str(int(now) + _HOUR_S),
            "X-RateLimit-Resource": "core",
        }

    def _wait(self, fault: Fault, until: float) -> None:
        if fault is not self._told:  # what comes too early does not make the wait longer
            self._told, self._wait_until = fault, until


def _primary(reset_at: float) -> Reply:
    reply = problem(403, _PRIMARY)
    reply.headers |= {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(reset_at))}
    return reply
