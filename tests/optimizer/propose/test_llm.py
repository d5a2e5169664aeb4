"""The real client against a server on loopback that behaves well, badly, or not at all."""

import itertools
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from optimizer.errors import ModelKeyError
from optimizer.evaluate.sandbox import ChildError, call
from optimizer.propose.llm import Endpoint, read_key
from optimizer.propose.model import Answered, Message, ModelSettings, Question, Unanswered, Usage
from tests.model_server import Act, Deed, Refuses, Says, Sends, Waits, event, serving

KEY = "sk-planted-5e1f2a"
QUESTION = Question(
    model="tiny",
    messages=(Message(role="system", text="Be brief."), Message(role="user", text="Well?")),
    most_tokens=64,
    temperature=0.5,
    seed=7,
)
SCHEMA = '{"type": "object"}'


def ask(act: Act, *, question: Question = QUESTION, within_s: float = 10.0) -> Any:  # noqa: ANN401
    with serving(act) as server:
        endpoint = Endpoint(ModelSettings(url=server.url, name="tiny"), KEY)
        return endpoint.ask(question, within_s=within_s), server


def always(deed: Deed) -> Act:
    return lambda _number, _body: deed


def test_a_reply_comes_with_the_servers_own_count() -> None:
    said, server = ask(always(Says("Well.", usage=(11, 3))))

    assert said == Answered(text="Well.", usage=Usage(prompt_tokens=11, reply_tokens=3))
    (body,) = server.asked
    assert (body["model"], body["max_tokens"], body["seed"]) == ("tiny", 64, 7)
    assert body["messages"][1] == {"role": "user", "content": "Well?"}


def test_the_key_goes_to_the_endpoint_and_nothing_of_the_environment_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-mine")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-mine")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-mine")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Mine: mine")

    _, server = ask(always(Says("Well.")))

    (headers,) = server.headers
    assert headers["authorization"] == f"Bearer {KEY}"
    assert "mine" not in str(headers)


def test_a_reply_that_was_cut_at_its_most_tokens_says_so() -> None:
    said, _ = ask(always(Says("We", finish="length")))

    assert said.text == "We"
    assert not said.complete


def test_a_server_that_does_not_stream_is_understood() -> None:
    said, _ = ask(
        always(
            Sends(
                lambda: iter([b'{\n "choices": [{"message": {"content": "Well."},\n',
                              b' "finish_reason": "stop"}]}']),
                content_type="application/json",
            )
        )
    )  # fmt: skip

    assert said == Answered(text="Well.")


@pytest.mark.parametrize(
    ("deed", "why", "retry_after_s"),
    [
        (Refuses(429, {"Retry-After": "7"}), "busy", 7.0),
        (Refuses(429, {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}), "busy", None),
        (Refuses(500), "broken", None),
        (Refuses(503, {"Retry-After": "0.5"}), "broken", 0.5),
        (Refuses(401), "refused", None),
        (Refuses(404), "refused", None),
        (Sends(lambda: iter([b"<html>hello</html>"])), "garbled", None),
        (Sends(lambda: iter([b"data: {\n\ndata: 7\n\n\xff\xfe"])), "garbled", None),
        (Sends(lambda: iter([event({"error": {"message": "overloaded"}})])), "broken", None),
        (Sends(lambda: iter([b"\x1f\x8b"]), headers={"Content-Encoding": "gzip"}), "refused", None),
        (Sends(lambda: itertools.repeat(b"x" * 9000), status=307,
               headers={"Location": "http://127.0.0.1:9/v1"}), "refused", None),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_told_apart(deed: Deed, why: str, retry_after_s: float | None) -> None:
    said, _ = ask(always(deed))

    assert isinstance(said, Unanswered)
    assert (said.why, said.retry_after_s) == (why, retry_after_s)


def test_nobody_there_is_told_apart_and_costs_nothing() -> None:
    endpoint = Endpoint(ModelSettings(url="http://127.0.0.1:9/v1", name="tiny"))

    said = endpoint.ask(QUESTION, within_s=5)

    assert isinstance(said, Unanswered)
    assert said.why == "away"
    assert not said.charged


@pytest.mark.parametrize(
    ("deed", "charged"),
    [
        (Sends(lambda: iter([b"\x1f\x8b"]), headers={"Content-Encoding": "gzip"}), True),
        (Waits(0.0), True),  # hangs up without a word
        (Refuses(502), True),
        (Refuses(504), True),
        (Refuses(429), False),
        (Refuses(503), False),
    ],
)  # fmt: skip
def test_what_the_model_may_have_worked_on_is_charged_for(deed: Deed, *, charged: bool) -> None:
    said, _ = ask(always(deed))

    assert isinstance(said, Unanswered)
    assert said.charged == charged


def test_a_key_that_an_endpoint_repeats_is_hidden_before_the_text_is_cut() -> None:
    key = "k" * 900
    with serving(always(Refuses(401, body=f'{{"error": {{"message": "bad {key}"}}}}'))) as server:
        said = Endpoint(ModelSettings(url=server.url, name="tiny"), key).ask(QUESTION, within_s=10)

    assert isinstance(said, Unanswered)
    assert "bad" in said.detail
    assert "kkk" not in said.detail


def test_silence_ends_in_time() -> None:
    began_s = time.monotonic()

    said, _ = ask(always(Waits()), within_s=0.5)

    assert said == Unanswered(why="silent", detail="no answer in time", charged=True)
    assert time.monotonic() - began_s < 5


def endless(text: str, pause_s: float = 0.0) -> Iterator[bytes]:
    while True:
        time.sleep(pause_s)
        yield event({"choices": [{"delta": {"content": text}}]})


def test_an_endless_reply_is_cut_by_its_size() -> None:
    said, _ = ask(always(Sends(lambda: endless("again and again " * 100))))

    assert isinstance(said, Answered)
    assert not said.complete
    assert said.usage is None
    assert len(said.text) < 300_000


def test_an_endless_line_is_cut_by_its_size() -> None:
    said, _ = ask(always(Sends(lambda: itertools.repeat(b"data: {" * 5000))))

    assert isinstance(said, Unanswered)
    assert said.why == "garbled"


def test_a_dripping_reply_is_cut_by_its_time() -> None:
    began_s = time.monotonic()

    said, _ = ask(always(Sends(lambda: endless("drip ", 0.1))), within_s=0.7)

    assert isinstance(said, Answered)
    assert not said.complete
    assert time.monotonic() - began_s < 5


def test_an_endless_error_is_cut() -> None:
    said, _ = ask(always(Sends(lambda: itertools.repeat(b"x" * 9000), status=500)))

    assert isinstance(said, Unanswered)
    assert said.why == "broken"


def test_a_reply_that_breaks_off_counts_as_far_as_it_came() -> None:
    said, _ = ask(always(Sends(lambda: itertools.islice(endless("half "), 2))))

    assert said == Answered(text="half half ", complete=False)


def pickily(refused: str, *, named: bool) -> Act:
    def act(_number: int, body: dict[str, Any]) -> Deed:
        if refused not in body:
            return Says("Well.")
        param = f'"{refused}"' if named else "null"
        return Refuses(400, body=f'{{"error": {{"message": "no", "param": {param}}}}}')

    return act


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("refused", ["response_format", "stream_options", "seed", "temperature"])
def test_what_an_endpoint_refuses_is_left_out_from_then_on(refused: str, *, named: bool) -> None:
    with serving(pickily(refused, named=named)) as server:
        endpoint = Endpoint(ModelSettings(url=server.url, name="tiny"))
        question = QUESTION.model_copy(update={"form": SCHEMA})

        first = endpoint.ask(question, within_s=10)
        asked = len(server.asked)
        endpoint.ask(question, within_s=10)

    assert isinstance(first, Answered)
    assert len(server.asked) == asked + 1
    assert refused not in server.asked[-1]


def test_the_newer_name_of_the_most_tokens_is_found() -> None:
    _, server = ask(pickily("max_tokens", named=True))

    assert server.asked[-1]["max_completion_tokens"] == 64
    assert "max_tokens" not in server.asked[-1]


def test_a_refusal_for_another_reason_changes_nothing() -> None:
    with serving(lambda n, _: Says("Well.") if n > 4 else Refuses(400)) as server:
        endpoint = Endpoint(ModelSettings(url=server.url, name="tiny"))

        said = endpoint.ask(QUESTION, within_s=10)
        endpoint.ask(QUESTION, within_s=10)

    assert isinstance(said, Unanswered)
    assert said.why == "refused"
    assert {"stream_options", "seed", "temperature"} <= server.asked[-1].keys()


@pytest.mark.parametrize(
    "deed", [Says(f"You are {KEY}"), Refuses(401, body=f'{{"error": {{"message": "{KEY}?"}}}}')]
)
def test_a_key_that_an_endpoint_repeats_is_hidden(deed: Deed) -> None:
    said, _ = ask(always(deed))

    assert KEY not in said.to_json()
    assert "[key]" in said.to_json()


def test_a_prompt_that_holds_the_key_is_never_sent() -> None:
    message = Message(role="user", text=f"log: {KEY}")

    said, server = ask(
        always(Says("Well.")), question=QUESTION.model_copy(update={"messages": (message,)})
    )

    assert said.why == "refused"
    assert server.asked == []


def keep(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


def test_a_key_is_read_from_its_file(tmp_path: Path) -> None:
    file = keep(tmp_path / "key", f"{KEY}\n")

    assert read_key(file, state_folder=tmp_path / "state") == KEY
    assert read_key(None, state_folder=tmp_path) == ""


@pytest.mark.parametrize(
    ("text", "mode", "reason"),
    [
        (KEY, 0o644, "chmod 600"),
        ("", 0o600, "the key alone"),
        (f"{KEY}\n{KEY}", 0o600, "the key alone"),
        ("a b", 0o600, "the key alone"),
        ("x" * 5000, 0o600, "the key alone"),
        ("schlüssel", 0o600, "no text"),
    ],
)
def test_a_key_that_can_not_be_used_says_why(
    tmp_path: Path, text: str, mode: int, reason: str
) -> None:
    with pytest.raises(ModelKeyError, match=reason):
        read_key(keep(tmp_path / "key", text, mode), state_folder=tmp_path / "state")


def test_no_key_is_taken_from_where_foreign_code_can_read(tmp_path: Path) -> None:
    inside = Path(__file__).parents[3] / "optimizer" / "__init__.py"
    state = tmp_path / "state"
    state.mkdir()
    link = tmp_path / "link"
    link.symlink_to(keep(state / "key", KEY))

    for path in (inside, state / "key", link):
        with pytest.raises(ModelKeyError, match="foreign code"):
            read_key(path, state_folder=state)


def test_foreign_code_sees_neither_the_file_nor_the_memory_nor_the_environment(
    tmp_path: Path,
) -> None:
    """The key is read here, and its file's path is told to whoever looks for it."""
    file = keep(tmp_path / "key", KEY)
    held = read_key(file, state_folder=tmp_path / "state")
    looks = (
        f"open({str(file)!r}).read()",
        f"open('/proc/{os.getpid()}/mem', 'rb').read(1)",
        f"open('/proc/{os.getpid()}/environ', 'rb').read()",
        f"open('/proc/{os.getppid()}/environ', 'rb').read()",
        f"__import__('os').listdir({str(tmp_path)!r})",
    )

    assert held == KEY
    for look in looks:
        with pytest.raises(ChildError):
            call("builtins:eval", look)
    environment = call("builtins:eval", "str(dict(__import__('os').environ))")
    assert KEY not in environment
    assert str(file) not in environment
