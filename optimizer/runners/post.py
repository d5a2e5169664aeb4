"""A judge on a device's host, as another machine speaks to it: JSON in, JSON out.

What travels is an operator, a hardware and candidates: no path, no secret, no database. Whoever
carries the texts (`optimizer.runners.ray`) knows nothing of what they say.
"""

import importlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from queue import SimpleQueue
from typing import Annotated, Literal, Protocol

from pydantic import Field, TypeAdapter

from knowledge.evaluation import Environment, Evaluation
from knowledge.evidence import Evidence
from knowledge.outcome import Outcome
from operator_registry.hardware import HardwareSpec
from operator_registry.record import Record
from operator_registry.registry import Operator
from optimizer.candidate import Candidate
from optimizer.errors import OptimizerError, RunnerError
from optimizer.runners.runner import Runner

LOCAL = "optimizer.runners.post_judge:open_judge"
"""The judge of the host itself."""


class JudgeRequest(Record):
    """What a judge is to be made for."""

    operator: Operator
    hardware: HardwareSpec
    judge_version: str
    """Which the host must be of: results of two versions are never compared."""
    minimum_gain: float = 1.05
    effort: dict[str, float | None] = {}
    """What of `optimizer.evaluate.evaluator.Effort` is not as usual."""


class ConfirmRequest(Record):
    """The arguments of `Runner.confirm`."""

    candidate: Candidate
    deadline_s: float
    alpha: float
    handed_back: tuple[str, ...]
    earlier: tuple[Evidence, ...] = ()


class Opened(Record):
    """A judge is there."""

    kind: Literal["opened"] = "opened"
    environment: Environment
    builds_ahead: bool


class Tried(Record):
    """A candidate was tried."""

    kind: Literal["tried"] = "tried"
    evaluation: Evaluation


class Confirmed(Record):
    """A confirming run has ended, in evidence or in the outcome by which it failed."""

    kind: Literal["confirmed"] = "confirmed"
    evidence: Evidence | None = None
    outcome: Outcome | None = None


class Refused(Record):
    """The host can't do it: its judge raised an error of ours."""

    kind: Literal["refused"] = "refused"
    error: str
    message: str


Answer = Opened | Tried | Confirmed | Refused
_ANSWER: TypeAdapter[Answer] = TypeAdapter(Annotated[Answer, Field(discriminator="kind")])


def read_answer(text: str) -> Answer:
    """Return what a post said.

    Raises:
        pydantic.ValidationError: It is no answer.
    """
    return _ANSWER.validate_json(text)


class Judge(Runner, Protocol):
    """A runner that hands out the raw samples of its confirming runs, by their hash."""

    def find_samples(self, name: str) -> bytes | None:
        """Return the samples of a hash; None where there are none."""
        ...


MakeJudge = Callable[[JudgeRequest], AbstractContextManager[Judge]]


class Post:
    """Keeps one judge at a time, and lets it work in one thread for as long as the post lives.

    A judge's children die with the thread that started them, and whoever carries our texts may call
    from another thread each time.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="judge")
        self._stack = ExitStack()
        self._judge: Judge | None = None

    def open(self, judge: str, request: str) -> str:
        """Make a judge in the place of an earlier one.

        Args:
            judge: ``module:function``; it takes a `JudgeRequest` and returns a context with a
                `Judge` in it.
            request: The `JudgeRequest`.
        """
        return self._thread.submit(_answering, lambda: self._open(judge, request)).result()

    def evaluate(self, candidates: Sequence[str], ahead: Sequence[str]) -> Iterator[str]:
        """Yield what became of each candidate as soon as it is known; a refusal ends it."""
        told: SimpleQueue[str | None] = SimpleQueue()

        def work() -> None:
            try:
                self._find_judge().evaluate(
                    [Candidate.from_json(text) for text in candidates],
                    ahead=[Candidate.from_json(text) for text in ahead],
                    on_done=lambda evaluation: told.put(Tried(evaluation=evaluation).to_json()),
                )
            except (OptimizerError, OSError) as error:
                told.put(_refuse(error))
            finally:
                told.put(None)

        working = self._thread.submit(work)
        while (text := told.get()) is not None:
            yield text
        working.result()

    def confirm(self, request: str) -> str:
        """Return what a confirming run came to."""
        asked = ConfirmRequest.from_json(request)
        return self._thread.submit(_answering, lambda: self._confirm(asked)).result()

    def fetch(self, name: str) -> bytes | None:
        """Return an artefact of the judge by its hash."""
        return self._find_judge().find_samples(name)

    def close(self) -> None:
        """End the judge."""
        self._thread.submit(self._close).result()

    def _open(self, judge: str, request: str) -> Answer:
        self._close()
        module, _, function = judge.partition(":")
        make: MakeJudge = getattr(importlib.import_module(module), function)
        made = self._stack.enter_context(make(JudgeRequest.from_json(request)))
        self._judge = made
        return Opened(environment=made.environment, builds_ahead=made.builds_ahead)

    def _confirm(self, asked: ConfirmRequest) -> Answer:
        found = self._find_judge().confirm(
            asked.candidate,
            deadline_s=asked.deadline_s,
            alpha=asked.alpha,
            handed_back=asked.handed_back,
            earlier=asked.earlier,
        )
        if isinstance(found, Evidence):
            return Confirmed(evidence=found)
        return Confirmed(outcome=found)

    def _find_judge(self) -> Judge:
        if self._judge is None:
            msg = "no judge was opened here"
            raise RunnerError(msg)
        return self._judge

    def _close(self) -> None:
        self._judge = None
        self._stack.close()


def _answering(work: Callable[[], Answer]) -> str:
    try:
        return work().to_json()
    except (OptimizerError, OSError) as error:
        return _refuse(error)


def _refuse(error: Exception) -> str:
    return Refused(error=type(error).__name__, message=str(error)).to_json()
