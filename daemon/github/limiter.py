"""How fast a code host is asked: never so fast that it has to say so itself.

Windows are counted whole: in no second, minute or hour whatever does more pass than its limit, as
it would where a bucket that is full is emptied at once. GitHub bans programs that go on asking.
"""

from collections import deque
from dataclasses import dataclass, field

SHORTEST_BACKOFF_S = 60.0
LONGEST_BACKOFF_S = 3600.0
_LONGEST_WAIT_S = 24 * 3600.0
"""A header may ask for more, but a broken one must not silence us for good."""
_WRITE_POINTS = 5


@dataclass
class Window:
    """At most `most` in any `span_s` seconds; the last `reserve` of them for what is urgent."""

    most: int
    span_s: float
    reserve: int = 0
    _times: deque[float] = field(default_factory=deque, init=False)

    def free_at(self, now: float, *, count: int = 1, urgent: bool = False) -> float:
        """Return when `count` more may pass: `now`, or later."""
        self._forget(now)
        allowed = self.most if urgent else self.most - self.reserve
        over = len(self._times) + count - allowed
        return now if over <= 0 else self._times[over - 1] + self.span_s

    def note(self, now: float, *, count: int = 1) -> None:
        """Count what passed."""
        self._times.extend([now] * count)

    def _forget(self, now: float) -> None:
        while self._times and self._times[0] <= now - self.span_s:
            self._times.popleft()
        if self._times and self._times[-1] > now:  # the clock was set back
            self._times = deque(min(time, now) for time in self._times)


@dataclass
class Limiter:
    """What may be sent when. It neither sleeps nor looks at a clock, and is for one thread."""

    writes: tuple[Window, ...] = field(
        default_factory=lambda: (
            Window(most=1, span_s=1),
            Window(most=60, span_s=60, reserve=30),
            Window(most=400, span_s=3600, reserve=60),
        )
    )
    """GitHub's own limits are 80 a minute and 500 an hour. A minute's reserve is for the thirty
    commands that may be acknowledged in it."""
    points: Window = field(default_factory=lambda: Window(most=800, span_s=60, reserve=300))
    """A read costs one and a write five, of the host's 900 a minute."""
    _silent_from: float = field(default=0.0, init=False)
    _silent_until: float = field(default=0.0, init=False)
    _refusals: int = field(default=0, init=False)

    def free_at(self, now: float, *, writes: bool, urgent: bool = False) -> float:
        """Return when the next request may be sent: `now`, or later."""
        if now < self._silent_from:  # the clock was set back: as long again, and no longer
            self._silent_until += now - self._silent_from
            self._silent_from = now
        points = _WRITE_POINTS if writes else 1
        times = [max(now, self._silent_until)]
        times.append(self.points.free_at(now, count=points, urgent=urgent))
        if writes:
            times += [window.free_at(now, urgent=urgent) for window in self.writes]
        return max(times)

    def note(self, now: float, *, writes: bool) -> None:
        """Count a request that is sent."""
        self.points.note(now, count=_WRITE_POINTS if writes else 1)
        if writes:
            for window in self.writes:
                window.note(now)

    def note_answer(self) -> None:
        """Note that a request was taken: the next refusal is a first one again."""
        self._refusals = 0

    def note_refusal(self, now: float, *, retry_at: float | None) -> float:
        """Note that the host has had enough, and return until when nothing is sent.

        Args:
            now: The time, in seconds since 1970.
            retry_at: When the host wants to be asked again; None where it did not say. Then each
                refusal in a row doubles the wait.
        """
        growing = min(SHORTEST_BACKOFF_S * 2**self._refusals, LONGEST_BACKOFF_S)
        self._refusals = min(self._refusals + 1, 10)
        until = now + growing if retry_at is None else min(retry_at, now + _LONGEST_WAIT_S)
        self.be_silent(now, until)
        return self._silent_until

    def be_silent(self, now: float, until: float) -> None:
        """Send nothing until a time, as the host's quota is used up, say."""
        if until > self._silent_until:
            self._silent_from, self._silent_until = now, until
