import json
from datetime import UTC, datetime
from email.utils import format_datetime

import pytest

from daemon.forge import ForgeError, ForgeRefusedError, ForgeUnavailableError, NotThereError
from daemon.github.answers import (
    Answer,
    GitHubRefusedError,
    Kept,
    Request,
    UnauthorisedError,
    asks_for_pause,
    find_error,
    find_retry_at,
)

NOW = 1_790_000_000.0
SECONDARY = (
    "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
)
PRIMARY = "API rate limit exceeded for installation ID 1."


def make_answer(status: int, message: str = "", **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, named, json.dumps({"message": message}))


@pytest.mark.parametrize(
    "answer",
    [
        make_answer(429),
        make_answer(429, "anything", retry_after="7"),
        make_answer(403, SECONDARY),
        make_answer(403, PRIMARY, x_ratelimit_remaining="0"),
        make_answer(403, "Forbidden", retry_after="7"),
        make_answer(403, "You have triggered an abuse detection mechanism."),
        make_answer(422, "Validation Failed: was submitted too quickly"),
    ],
    ids=lambda answer: f"{answer.status} {answer.headers}",
)
def test_github_asks_for_a_pause_in_several_ways(answer: Answer) -> None:
    assert asks_for_pause(answer)


@pytest.mark.parametrize(
    "answer",
    [
        make_answer(403, "Resource not accessible by integration", x_ratelimit_remaining="4999"),
        make_answer(404, "Not Found"),
        make_answer(422, "Validation Failed"),
        make_answer(502, "Server Error"),
        make_answer(200, "rate limit"),
    ],
    ids=lambda answer: str(answer.status),
)
def test_other_refusals_are_no_wish_for_a_pause(answer: Answer) -> None:
    assert not asks_for_pause(answer)


def test_retry_after_comes_before_the_reset() -> None:
    answer = make_answer(
        403, retry_after="30", x_ratelimit_remaining="0", x_ratelimit_reset=str(int(NOW + 900))
    )

    assert find_retry_at(answer, NOW) == NOW + 30


def test_retry_after_may_be_a_date() -> None:
    date = format_datetime(datetime.fromtimestamp(NOW + 120, UTC), usegmt=True)

    assert find_retry_at(make_answer(429, retry_after=date), NOW) == NOW + 120


def test_a_quota_that_is_used_up_is_waited_for() -> None:
    answer = make_answer(
        403, PRIMARY, x_ratelimit_remaining="0", x_ratelimit_reset=str(int(NOW + 900))
    )

    assert find_retry_at(answer, NOW) == NOW + 901


@pytest.mark.parametrize("wanted", ["soon", "-5", "1e9", "\n", "nan"])
def test_a_broken_retry_after_is_none(wanted: str) -> None:
    assert find_retry_at(make_answer(429, retry_after=wanted), NOW) is None


def test_a_wait_of_nothing_is_a_second() -> None:
    assert find_retry_at(make_answer(429, retry_after="0"), NOW) == NOW + 1


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (200, None), (201, None), (204, None), (302, None), (304, None),
        (401, UnauthorisedError), (403, GitHubRefusedError), (404, NotThereError),
        (409, GitHubRefusedError), (410, NotThereError), (422, GitHubRefusedError),
        (451, GitHubRefusedError), (307, GitHubRefusedError), (408, ForgeUnavailableError),
        (500, ForgeUnavailableError), (502, ForgeUnavailableError), (504, ForgeUnavailableError),
    ],
)  # fmt: skip
def test_a_status_says_who_must_act(status: int, error: type[ForgeError] | None) -> None:
    found = find_error(make_answer(status, "Words"), "GET /x")

    assert type(found) is (error or type(None))


def test_lost_credentials_are_worth_trying_again_and_a_refusal_is_not() -> None:
    assert issubclass(UnauthorisedError, ForgeUnavailableError)
    assert issubclass(GitHubRefusedError, ForgeRefusedError)


def test_a_refusal_tells_what_github_minds() -> None:
    errors = [
        {"resource": "PullRequest", "field": "head", "code": "invalid"},
        {"code": "custom", "message": "No commits between main and work"},
        "plain words",
    ]
    text = json.dumps({"message": "Validation Failed", "errors": errors})

    found = find_error(Answer(422, {}, text), "POST /pulls")

    assert isinstance(found, GitHubRefusedError)
    assert found.faults == (
        "head invalid",
        "custom: No commits between main and work",
        "plain words",
    )
    assert "POST /pulls: Validation Failed; head invalid" in str(found)


@pytest.mark.parametrize(
    "text", ["<html>Unicorn!</html>", "", "[1]", '"x"', "null", '{"errors": 3}']
)
def test_any_words_of_a_broken_host_are_borne(text: str) -> None:
    assert isinstance(find_error(Answer(502, {}, text), "GET /x"), ForgeUnavailableError)


def test_a_page_of_a_proxy_is_no_json() -> None:
    with pytest.raises(ForgeUnavailableError, match="no JSON"):
        _ = Answer(200, {}, "<html>Please sign in</html>").json


def test_a_next_page_is_a_query_of_our_own_address() -> None:
    link = '<https://evil.test/x?page=3&per_page=2>; rel="next", <https://e/x?page=9>; rel="last"'

    assert Answer(200, {"link": link}, "[]").next_page == {"page": "3", "per_page": "2"}
    assert Answer(200, {"link": '<https://e/x?page=1>; rel="prev"'}, "[]").next_page is None
    assert Answer(200, {}, "[]").next_page is None


def test_an_answer_that_still_holds_is_kept() -> None:
    kept, request = Kept(), Request("GET", "/list", {"page": "1"})
    whole = Answer(200, {"etag": 'W/"a"'}, "[1]")
    kept.renewed(request, whole)

    assert kept.etag(request) == 'W/"a"'
    assert kept.renewed(request, Answer(304, {}, "")) == whole
    assert kept.etag(Request("GET", "/list", {"page": "2"})) is None
    assert kept.etag(Request("POST", "/list", {"page": "1"})) is None


def test_what_is_kept_does_not_grow_without_end() -> None:
    kept = Kept()
    for page in range(10):
        request = Request("GET", f"/list/{page}")
        kept.renewed(request, Answer(200, {"etag": "x"}, "x" * 5_000_000))

    assert kept.characters <= 16_000_000
    assert kept.etag(Request("GET", "/list/0")) is None
    assert kept.etag(Request("GET", "/list/9")) == "x"
