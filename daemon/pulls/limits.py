"""How much is put before people at once, as their configuration says (pure)."""

from collections.abc import Iterable
from datetime import UTC, datetime

from daemon.config.file import Limits
from daemon.forge import PullRequest
from daemon.pulls.pull_request import find_pair

_HOUR_S = 3600.0


def find_excess(limits: Limits, requests: Iterable[PullRequest], *, now: float) -> str | None:
    """Return why no further pull request is opened now; None where one may be.

    Args:
        limits: What the configuration allows.
        requests: All pull requests of the repository.
        now: Seconds since 1970.
    """
    ours = [p for p in requests if find_pair(p.head) is not None and not p.from_fork]
    is_open = sum(p.state == "open" for p in ours)
    if is_open >= limits.open_pull_requests:
        return (
            f"{_count(is_open)} of the bot's {'is' if is_open == 1 else 'are'} open; the "
            f"configuration allows {limits.open_pull_requests}"
        )
    fresh = sum(now - _seconds(p.created_at) < _HOUR_S for p in ours)
    if fresh >= limits.pull_requests_per_hour:
        return (
            f"{_count(fresh)} opened within an hour; the configuration allows "
            f"{limits.pull_requests_per_hour}"
        )
    return None


def find_push_excess(limits: Limits, pushes: int) -> str | None:
    """Return why no branch is moved now; None where one may be."""
    if pushes < limits.commits_per_hour:
        return None
    return f"{pushes} pushes within an hour; the configuration allows {limits.commits_per_hour}"


def _count(requests: int) -> str:
    return f"{requests} pull request{'s' * (requests != 1)}"


def _seconds(at: str) -> float:
    """Return a time of the code host's in seconds since 1970; long ago where it tells none."""
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        return 0.0
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
