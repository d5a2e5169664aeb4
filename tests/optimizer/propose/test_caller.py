"""Asking: again where it may help, within the caps, at the same time, and written down."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from optimizer.propose.caller import ATTEMPTS, Caller, Wish, wait_s
from optimizer.propose.exchange import Journal
from optimizer.propose.model import (
    Answered,
    Message,
    ModelSettings,
    Question,
    Said,
    Unanswered,
    Usage,
)
from optimizer.propose.purse import Purse
from optimizer.spending import Spending

BUSY = Unanswered(why="busy")
WELL = Answered(text="Well.", usage=Usage(prompt_tokens=30, reply_tokens=10))


@dataclass
class Tape:
    """Says what is on it, then that it is well."""

    said: list[Said] = field(default_factory=list)
    asked: list[Question] = field(default_factory=list)

    def ask(self, question: Question, *, within_s: float) -> Answered | Unanswered:
        self.asked.append(question)
        return self.said.pop(0) if self.said else WELL


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Caller]:
    def caller(model: object, waits: list[float] | None = None, **settings: object) -> Caller:
        made = ModelSettings.model_validate({"url": "http://h/v1", "name": "m", **settings})
        sleep = (waits if waits is not None else []).append
        return Caller(
            model,  # type: ignore[arg-type]
            made,
            Journal(tmp_path),
            Purse(made),
            sleep,
            time.monotonic,
            lambda: 0.5,
        )

    return caller


def wishes(count: int = 1) -> list[Wish]:
    return [Wish((Message(role="user", text="Well?" * 20),), seed=n) for n in range(count)]


def ask(caller: Caller, count: int = 1) -> Sequence[Answered | Unanswered]:
    return caller.ask(wishes(count), source="m")


def test_a_busy_model_is_asked_again(make: Callable[..., Caller]) -> None:
    tape, waits = Tape([BUSY, Unanswered(why="broken")]), list[float]()

    assert ask(make(tape, waits)) == [WELL]
    assert len(tape.asked) == 3
    assert len(waits) == 2


def test_it_is_given_up_after_some_attempts(make: Callable[..., Caller]) -> None:
    tape = Tape([BUSY] * 20)

    assert ask(make(tape)) == [BUSY]
    assert len(tape.asked) == ATTEMPTS


class Breaks:
    def ask(self, question: Question, *, within_s: float) -> Answered | Unanswered:
        raise AssertionError(question.model)


def test_a_client_that_breaks_is_an_answer_that_is_charged_and_written_down(
    make: Callable[..., Caller],
) -> None:
    caller = make(Breaks())

    (said,) = ask(caller)

    assert isinstance(said, Unanswered)
    assert (said.why, said.detail) == ("garbled", "AssertionError")
    assert len(list(caller.journal.exchanges())) == ATTEMPTS
    assert caller.purse.spent.tokens > 0
    assert caller.journal.spent() == caller.purse.spent


def test_a_refusal_is_not_argued_with(make: Callable[..., Caller]) -> None:
    tape = Tape([Unanswered(why="refused")])

    ask(make(tape))

    assert len(tape.asked) == 1


def test_the_server_is_waited_for_as_long_as_it_asks(make: Callable[..., Caller]) -> None:
    waits = list[float]()

    ask(make(Tape([Unanswered(why="busy", retry_after_s=7)]), waits))

    assert 7 <= waits[0] <= 8


def test_a_wait_beyond_the_questions_time_is_not_begun(make: Callable[..., Caller]) -> None:
    tape, waits = Tape([Unanswered(why="busy", retry_after_s=1e6)]), list[float]()

    ask(make(tape, waits, timeout_s=20))

    assert waits == []
    assert len(tape.asked) == 1


def test_waits_double_are_spread_and_have_an_end() -> None:
    spread = [wait_s(3, None, drawn / 50) for drawn in range(50)]

    assert all(1 <= wait <= 2 for wait in spread)
    assert len(set(spread)) == 50
    assert wait_s(30, None, 1.0) <= 30
    assert wait_s(1, 1e9, 1.0) <= 31


def test_questions_are_put_together(make: Callable[..., Caller]) -> None:
    meeting = threading.Barrier(3, timeout=5)

    class Meeting:
        def ask(self, question: Question, *, within_s: float) -> Answered | Unanswered:
            meeting.wait()
            return Answered(text=str(question.seed))

    said = ask(make(Meeting(), at_once=3), 3)

    assert [each.text for each in said if isinstance(each, Answered)] == ["0", "1", "2"]


def test_a_thread_that_is_held_for_ever_is_left_behind(
    make: Callable[..., Caller], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("optimizer.propose.caller._AFTERWARDS_S", 0.1)
    end = threading.Event()

    class Holding:
        def ask(self, question: Question, *, within_s: float) -> Answered | Unanswered:
            if question.seed:
                end.wait(20)
            return WELL

    caller = make(Holding(), timeout_s=0.2)
    first, second = ask(caller, 2)
    end.set()

    assert first == WELL
    assert isinstance(second, Unanswered)
    assert second.why == "silent"


def test_what_can_not_be_paid_for_is_not_asked(make: Callable[..., Caller]) -> None:
    tape = Tape()
    caller = make(tape, search_tokens=1000, reply_tokens=500)

    answered = [len(ask(caller)) for _ in range(100)]

    assert caller.purse.spent.tokens <= 1000
    assert 10 <= sum(answered) == len(tape.asked) < 30
    assert answered[-1] == 0


def test_a_reply_is_asked_no_longer_than_what_is_left(make: Callable[..., Caller]) -> None:
    tape = Tape()

    ask(make(tape, search_tokens=500, reply_tokens=8192))

    prompt_bound = 100 + 256
    assert tape.asked[0].most_tokens == 500 - prompt_bound


@pytest.mark.parametrize(
    ("said", "charged"),
    [
        (WELL, 40),
        (Answered(text="Well.", complete=False), 100 + 256 + 50),
        (Unanswered(why="refused"), 0),
        (Unanswered(why="silent", charged=True), 100 + 256 + 50),
    ],
)
def test_without_the_servers_count_the_most_that_it_can_be_is_charged(
    make: Callable[..., Caller], said: Said, charged: int
) -> None:
    caller = make(Tape([said] * ATTEMPTS), reply_tokens=50, timeout_s=0.2)

    ask(caller)

    assert caller.purse.spent == Spending(tokens=charged)
    assert caller.journal.spent() == Spending(tokens=charged)


def test_every_attempt_is_written_down(make: Callable[..., Caller]) -> None:
    caller = make(Tape([BUSY]), usd_in=1.0)

    ask(caller)

    first, second = caller.journal.exchanges()
    assert (first.said, first.counted, first.money_usd) == (BUSY, None, 0)
    assert (second.said, second.counted) == (WELL, WELL.usage)
    assert second.money_usd == pytest.approx(30e-6)
    assert second.question.messages == wishes()[0].messages


def test_a_journal_that_can_not_be_written_stops_the_search(
    make: Callable[..., Caller], tmp_path: Path
) -> None:
    caller = make(Tape())
    (tmp_path / "texts").write_text("in the way")

    with pytest.raises(OSError, match="texts"):
        ask(caller)
