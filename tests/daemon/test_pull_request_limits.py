from datetime import UTC, datetime

import pytest

from daemon.config.file import Limits
from daemon.forge import PullRequest, State
from daemon.pulls.limits import find_excess, find_push_excess

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC).timestamp()


def make_request(
    number: int, *, state: State = "open", created_at: str = "2026-11-30T00:00:00Z", **more: object
) -> PullRequest:
    values = {"head": f"kernelevolve/op{number}/h200", **more}
    return PullRequest.model_validate(
        {
            "number": number, "title": "", "body": "", "base": "main", "state": state,
            "head_sha": "a", "created_at": created_at, "updated_at": created_at, **values,
        }
    )  # fmt: skip


def test_open_ones_are_counted() -> None:
    requests = [make_request(1), make_request(2), make_request(3, state="merged")]

    told = find_excess(Limits(open_pull_requests=2), requests, now=NOW)

    assert told == "2 pull requests of the bot's are open; the configuration allows 2"
    assert find_excess(Limits(open_pull_requests=3), requests, now=NOW) is None


@pytest.mark.parametrize("head", ["feature", "kernelevolve/configure"])
def test_others_are_not_counted(head: str) -> None:
    limits = Limits(open_pull_requests=1)

    assert find_excess(limits, [make_request(1, head=head)], now=NOW) is None
    assert find_excess(limits, [make_request(1, from_fork=True)], now=NOW) is None


def test_those_of_the_last_hour_are_counted_open_or_not() -> None:
    fresh = make_request(1, state="closed", created_at="2026-11-30T11:30:00Z")
    limits = Limits(pull_requests_per_hour=1)

    assert find_excess(limits, [fresh], now=NOW) == (
        "1 pull request opened within an hour; the configuration allows 1"
    )
    assert find_excess(limits, [fresh], now=NOW + 1801) is None


def test_a_limit_of_none_allows_none() -> None:
    assert find_excess(Limits(open_pull_requests=0), [], now=NOW) is not None


def test_a_time_that_is_none_was_long_ago() -> None:
    odd = make_request(1, state="closed", created_at="yesterday")

    assert find_excess(Limits(pull_requests_per_hour=1), [odd], now=NOW) is None


def test_pushes_are_counted() -> None:
    limits = Limits(commits_per_hour=3)

    assert find_push_excess(limits, 2) is None
    assert find_push_excess(limits, 3) == ("3 pushes within an hour; the configuration allows 3")
