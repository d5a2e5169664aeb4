"""Asks a model: within what is left, again where that may help, and writes down what was said."""

import queue
import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import structlog

from optimizer.propose.exchange import Exchange, Journal
from optimizer.propose.gauge import Gauge, weigh
from optimizer.propose.model import (
    Answered,
    Message,
    Model,
    ModelSettings,
    Question,
    Unanswered,
    Usage,
)
from optimizer.propose.purse import Hold, Purse

log = structlog.get_logger()
ATTEMPTS: Final = 4
LEAST_PROMPT: Final = 500
"""Tokens; no task fits into fewer, so that nothing is asked for the rest of a budget."""
_FIRST_WAIT_S: Final = 0.5
_LONGEST_WAIT_S: Final = 30.0
"""A server that asks for a longer one is left alone for this time only; the search goes on."""
_AFTERWARDS_S: Final = 5.0
"""A server that drips a byte now and then is given up so long after the question's time."""
_LEAST_S: Final = 0.5
"""An attempt with less time left is not begun."""


_ENDLESS: Final = Unanswered(why="silent", detail="the reply would not end", charged=True)


@dataclass(frozen=True)
class Wish:
    """A question before it is known how long its reply may be."""

    messages: tuple[Message, ...]
    seed: int
    form: str = ""
    most_tokens: int | None = None
    """Less than the settings allow, where less will do."""


@dataclass
class Caller:
    """Puts questions to a model on behalf of proposers."""

    model: Model
    settings: ModelSettings
    journal: Journal
    purse: Purse
    sleep: Callable[[float], None]
    monotonic_s: Callable[[], float]
    draw: Callable[[], float] = random.random
    """From 0 to 1: spreads the attempts of several that wait for one server."""
    gauge: Gauge = field(default_factory=Gauge)

    @property
    def prompt_tokens(self) -> int:
        """Return how many tokens a prompt may have by estimate; towards a cap they become fewer.

        In the worst case the questions of one time take half of what is left, their replies the
        other.
        """
        left = self.purse.left_tokens
        if left is None:
            return self.settings.prompt_tokens
        affordable = left / (2 * self.settings.at_once * self.gauge.doubt)
        return min(self.settings.prompt_tokens, int(affordable))

    def ask(self, wishes: Sequence[Wish], *, source: str) -> list[Answered | Unanswered]:
        """Return what the model said to each of some questions, which are put at the same time.

        The first that can't be paid for and those after it are left out.

        Args:
            wishes: The questions.
            source: The proposer that asks, as the ledger calls it.

        Raises:
            OSError: What was said can't be written down.
        """
        questions: list[tuple[Question, Hold]] = []
        for wish in wishes:
            held = self._hold(wish)
            if held is None:
                break
            questions.append(held)
        answers = self._together(questions, source)
        for (question, _), said in zip(questions, answers, strict=True):
            # In the order of the questions, so that a search that is told again counts alike.
            if isinstance(said, Answered) and said.usage is not None:
                self.gauge = self.gauge.after(_weigh(question), said.usage.prompt_tokens)
        return answers

    def _hold(self, wish: Wish) -> tuple[Question, Hold] | None:
        settings = self.settings
        question = Question(
            model=settings.name,
            messages=wish.messages,
            most_tokens=min(settings.reply_tokens, wish.most_tokens or settings.reply_tokens),
            temperature=settings.temperature,
            seed=wish.seed,
            form=wish.form,
        )
        hold = self.purse.hold(
            self.gauge.bound(question.bytes, _weigh(question)), question.most_tokens
        )
        if hold is None:
            return None
        return question.model_copy(update={"most_tokens": hold.reply_tokens}), hold

    def _together(
        self, questions: Sequence[tuple[Question, Hold]], source: str
    ) -> list[Answered | Unanswered]:
        """Return the answers in order; threads that a server holds for ever are left behind."""
        done: queue.SimpleQueue[tuple[int, Answered | Unanswered | OSError]] = queue.SimpleQueue()

        def work(place: int, question: Question, hold: Hold) -> None:
            try:
                done.put((place, self._persist(question, hold, source)))
            except OSError as error:
                done.put((place, error))

        until_s = self.monotonic_s() + self.settings.timeout_s + _AFTERWARDS_S
        for place, (question, hold) in enumerate(questions):
            threading.Thread(
                target=work, args=(place, question, hold), daemon=True, name="model"
            ).start()
        answers: list[Answered | Unanswered] = [_ENDLESS] * len(questions)
        for _ in questions:
            try:
                place, said = done.get(timeout=max(0.0, until_s - self.monotonic_s()))
            except queue.Empty:
                break
            if isinstance(said, OSError):
                raise said
            answers[place] = said
        return answers

    def _persist(self, question: Question, hold: Hold, source: str) -> Answered | Unanswered:
        """Return what was said at the last attempt."""
        until_s = self.monotonic_s() + self.settings.timeout_s
        said = self._once(question, hold, source, until_s - self.monotonic_s())
        for attempt in range(1, ATTEMPTS):
            if isinstance(said, Answered) or not said.passes:
                break
            log.info("model gave no answer", why=said.why, detail=said.detail, attempt=attempt)
            pause_s = wait_s(attempt, said.retry_after_s, self.draw())
            if self.monotonic_s() + pause_s + _LEAST_S > until_s:
                break
            self.sleep(pause_s)
            again = self.purse.hold(hold.prompt_tokens, question.most_tokens)
            if again is None:
                break
            if again.reply_tokens < question.most_tokens:
                self.purse.settle(again, None, source=source)
                break
            said = self._once(question, again, source, until_s - self.monotonic_s())
        return said

    def _once(
        self, question: Question, hold: Hold, source: str, within_s: float
    ) -> Answered | Unanswered:
        began_s = self.monotonic_s()
        begun = self.journal.begin(self.purse.cost(hold.usage), source=source)
        try:
            said = self.model.ask(question, within_s=within_s)
        except Exception as error:  # noqa: BLE001 - whatever a server makes a client do
            said = Unanswered(why="garbled", detail=type(error).__name__, charged=True)
        counted = count(said, hold)
        cost = self.purse.settle(hold, counted, source=source)
        self.journal.record(
            Exchange(
                question=question,
                said=said,
                counted=counted,
                money_usd=cost.money_usd,
                latency_s=self.monotonic_s() - began_s,
                source=source,
            ),
            begun=begun,
        )
        return said


def _weigh(question: Question) -> float:
    return sum(weigh(message.text) for message in question.messages)


def count(said: Answered | Unanswered, hold: Hold) -> Usage | None:
    """Return what an exchange is charged for: the server's count, else the most that it can be."""
    match said:
        case Answered(usage=Usage() as usage):
            return usage
        case Unanswered(charged=False):
            return None
        case _:
            return hold.usage


def wait_s(attempt: int, asked_s: float | None, drawn: float) -> float:
    """Return how long to wait after an attempt, in seconds.

    Args:
        attempt: The one that failed, counted from 1.
        asked_s: What the server asks for, if it does.
        drawn: From 0 to 1; spreads the waits between half and all of their length.
    """
    spread = 0.5 + 0.5 * drawn
    doubled_s: float = _FIRST_WAIT_S * 2 ** (attempt - 1)
    if asked_s is not None:  # not before it, and not all at that very moment
        return min(asked_s, _LONGEST_WAIT_S) + _FIRST_WAIT_S * spread
    return min(doubled_s, _LONGEST_WAIT_S) * spread
