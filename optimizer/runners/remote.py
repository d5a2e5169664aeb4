"""Trials on a device of another machine, by way of a post there."""

import hashlib
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Protocol, Self, TypeVar

from pydantic import ValidationError

from knowledge.evaluation import Environment, Evaluation
from knowledge.evidence import Evidence
from knowledge.outcome import Outcome
from optimizer.candidate import Candidate
from optimizer.errors import DeviceLostError, RunnerError
from optimizer.runners.post import (
    LOCAL,
    Answer,
    Confirmed,
    ConfirmRequest,
    JudgeRequest,
    Opened,
    Refused,
    Tried,
    read_answer,
)
from optimizer.store.artefacts import Artefacts

_MOST_LOSSES = 3
"""A post that is lost so often without a trial between is not tried again on this device."""
_SLACK_S = 600.0
"""Longer than this no host is silent while it tries one candidate, builds and peers included."""
AnyAnswer = TypeVar("AnyAnswer", Opened, Tried, Confirmed)


class PostLostError(Exception):
    """The process of a post, or its host, is gone; nothing is known of what it was doing."""


class PlacedPost(Protocol):
    """A `optimizer.runners.post.Post` in a process of its own. All raise `PostLostError`."""

    def open(self, judge: str, request: str) -> str:
        """Make a judge."""
        ...

    def evaluate(
        self, candidates: Sequence[str], ahead: Sequence[str], *, patience_s: float
    ) -> Iterator[str]:
        """Try candidates; who says nothing for so long is lost."""
        ...

    def confirm(self, request: str, *, patience_s: float) -> str:
        """Make a confirming run."""
        ...

    def fetch(self, name: str) -> bytes | None:
        """Return an artefact by its hash."""
        ...

    def end(self) -> None:
        """Kill the process, whatever it does."""
        ...


class Posts(Protocol):
    """Where posts are placed: one device of a cluster."""

    def place(self) -> PlacedPost:
        """Return a post that nobody else uses.

        Raises:
            DeviceLostError: The device is gone, or somebody else has it.
        """
        ...

    def give_back(self, post: PlacedPost) -> None:
        """Let the next one have a post that is well."""
        ...


class RemoteRunner:
    """A judge that works on a device elsewhere; see `Runner`.

    What is lost with a post is tried again on a new one: what it has told is kept. What comes back
    is believed as far as it answers what was asked.
    """

    def __init__(
        self, posts: Posts, request: JudgeRequest, *, samples: Path, judge: str = LOCAL
    ) -> None:
        """Open a judge.

        Args:
            posts: Where it works.
            request: What it works on.
            samples: The state folder that raw samples are brought to.
            judge: Which judge, as ``module:function``.

        Raises:
            DeviceLostError: The device is gone.
            RunnerError: The host refuses.
        """
        self._posts = posts
        self._request = request
        self._samples = samples
        self._judge = judge
        self._post: PlacedPost | None = None
        self._opened: Opened | None = None
        self._losses = 0
        self._retrying(lambda _: None)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Give the post back."""
        self.close()

    def close(self) -> None:
        """Give the post back, whose process another search may use."""
        if self._post is not None:
            self._posts.give_back(self._post)
            self._post = None

    @property
    def environment(self) -> Environment:
        """Return the environment in which results hold."""
        return self._known.environment

    @property
    def builds_ahead(self) -> bool:
        """Return whether the host builds while it tries; see `Runner.builds_ahead`."""
        return self._known.builds_ahead

    def evaluate(
        self,
        candidates: Sequence[Candidate],
        *,
        ahead: Sequence[Candidate] = (),
        on_done: Callable[[Evaluation], None] = lambda _: None,
    ) -> list[Evaluation]:
        """Return one evaluation for each candidate, in order; see `Runner.evaluate`."""
        done: list[Evaluation] = []

        def go_on(post: PlacedPost) -> None:
            rest = candidates[len(done) :]
            texts = [candidate.to_json() for candidate in rest]
            later = [candidate.to_json() for candidate in ahead]
            told = post.evaluate(texts, later, patience_s=_SLACK_S)
            for candidate, text in zip(rest, told, strict=False):
                evaluation = self._believe(read(text, Tried).evaluation, candidate)
                self._losses = 0
                done.append(evaluation)
                on_done(evaluation)
            for text in told:  # a refusal before the first, or what was not asked for
                read(text, Tried)
            if len(done) < len(candidates):
                msg = f"the host told {len(done)} of {len(candidates)} trials"
                raise PostLostError(msg)

        self._retrying(go_on)
        return done

    def confirm(
        self,
        candidate: Candidate,
        *,
        deadline_s: float,
        alpha: float,
        handed_back: Collection[str],
        earlier: Sequence[Evidence] = (),
    ) -> Evidence | Outcome:
        """Return the evidence of a confirming run; see `Runner.confirm`."""
        asked = ConfirmRequest(
            candidate=candidate,
            deadline_s=deadline_s,
            alpha=alpha,
            handed_back=tuple(sorted(handed_back)),
            earlier=tuple(earlier),
        )
        found: list[Evidence | Outcome] = []

        def go(post: PlacedPost) -> None:
            text = post.confirm(asked.to_json(), patience_s=deadline_s + _SLACK_S)
            confirmed = read(text, Confirmed)
            if confirmed.evidence is not None:
                self._believe_evidence(confirmed.evidence, asked)
                self._bring_samples(post, confirmed.evidence.samples_sha256)
                found.append(confirmed.evidence)
            elif confirmed.outcome is not None:
                found.append(confirmed.outcome)

        self._retrying(go)
        if not found:
            msg = "the host's confirming run has come to nothing"
            raise RunnerError(msg)
        return found[-1]

    @property
    def _known(self) -> Opened:
        assert self._opened is not None  # noqa: S101 - it is since the constructor returned
        return self._opened

    def _retrying(self, work: Callable[[PlacedPost], None]) -> None:
        """Do some work on a post, on a new one where the first is lost meanwhile.

        Raises:
            DeviceLostError: Posts are lost there again and again, or the device is gone.
            RunnerError: The host refuses.
        """
        while True:
            try:
                work(self._open())
            except PostLostError as error:
                self._drop()
                self._losses += 1
                if self._losses >= _MOST_LOSSES:
                    raise DeviceLostError(str(error)) from error
            except BaseException:
                self._drop()  # what it does now is nobody's any more
                raise
            else:
                return

    def _open(self) -> PlacedPost:
        """Return the post in use, or a new one with the same judge."""
        if self._post is not None:
            return self._post
        self._post = self._posts.place()
        opened = read(self._post.open(self._judge, self._request.to_json()), Opened)
        if self._opened is not None and self._opened != opened:
            msg = "the device came back in another environment; its results are not comparable"
            raise DeviceLostError(msg)
        self._opened = opened
        return self._post

    def _drop(self) -> None:
        if self._post is not None:
            self._post.end()
            self._post = None

    def _believe(self, evaluation: Evaluation, candidate: Candidate) -> Evaluation:
        request = self._request
        asked = (candidate.id, request.operator.digest, request.hardware.name)
        said = (evaluation.candidate, evaluation.operator_digest, evaluation.hardware)
        here = (self.environment, request.judge_version)
        if said != asked or (evaluation.environment, evaluation.judge_version) != here:
            msg = f"the host told of a trial that was not asked for: {said[0]} on {said[2]}"
            raise RunnerError(msg)
        return evaluation

    def _believe_evidence(self, evidence: Evidence, asked: ConfirmRequest) -> None:
        request = self._request
        wanted = (asked.candidate.id, request.operator.digest, request.hardware.name)
        said = (evidence.candidate, evidence.operator_digest, evidence.hardware)
        is_lower = evidence.alpha > asked.alpha or evidence.minimum_gain < request.minimum_gain
        if said != wanted or is_lower or evidence.environment != self.environment:
            msg = "the host's evidence is not of what was asked, or was held to a lower standard"
            raise RunnerError(msg)

    def _bring_samples(self, post: PlacedPost, name: str) -> None:
        """Keep the samples of a confirming run here, if they are what their name says."""
        if not name:
            return
        content = post.fetch(name)
        if content is None or hashlib.sha256(content).hexdigest() != name:
            msg = "the host's raw samples are not those that its evidence names"
            raise RunnerError(msg)
        Artefacts(self._samples).put(content)


def read(text: str, kind: type[AnyAnswer]) -> AnyAnswer:
    """Return an answer of the kind that was asked for.

    Raises:
        RunnerError: It is another one: a refusal, say.
    """
    try:
        answer: Answer = read_answer(text)
    except ValidationError as error:
        msg = f"the host's answer can't be read: {error.errors()[0]['msg']}"
        raise RunnerError(msg) from error
    if isinstance(answer, Refused):
        msg = f"{answer.message} ({answer.error})"
        raise RunnerError(msg)
    if not isinstance(answer, kind):
        msg = f"the host answered {answer.kind}"
        raise RunnerError(msg)
    return answer
