"""A runner on another machine, over posts in this process that a test loses when it likes."""

import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from knowledge.evaluation import Evaluation
from knowledge.evidence import Evidence
from optimizer.candidate import Candidate
from optimizer.errors import DeviceLostError, RunnerError
from optimizer.evaluate.samples import find_samples
from optimizer.runners.post import JudgeRequest, Post
from optimizer.runners.remote import PlacedPost, PostLostError, RemoteRunner
from optimizer.store.artefacts import Artefacts
from tests.fakes import FakeRunner
from tests.makers import HARDWARE, OPERATOR, make_candidate, make_evaluation, make_evidence

ASKED = JudgeRequest(operator=OPERATOR, hardware=HARDWARE, judge_version="1")
HERE = "judges_of_this_test:open_fake"
THREE = [make_candidate(name) for name in ("one", "two", "three")]
SAMPLES = b'{"columns": [], "pairs": [], "schema": 1}'
RAW = hashlib.sha256(SAMPLES).hexdigest()


class FakeJudge(FakeRunner):
    def find_samples(self, name: str) -> bytes | None:
        return SAMPLES if name == RAW else None


@contextmanager
def open_fake(request: JudgeRequest) -> Iterator[FakeJudge]:
    if request.judge_version != "1":
        msg = "this host has judge 1"
        raise RunnerError(msg)
    yield JUDGES[-1]


JUDGES: list[FakeJudge] = []
"""The judge that posts of this process open: one of another process could not be looked at."""


@dataclass
class Place:
    """A device on which the posts are of this process."""

    lose_after: list[int] = field(default_factory=list)
    """For each post, how many trials it tells before it is lost."""
    twist: Callable[[str], str] = lambda text: text
    """What happens to its words on their way."""
    placed: int = 0
    ended: int = 0
    back: list[PlacedPost] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)

    def place(self) -> PlacedPost:
        self.placed += 1
        left = self.lose_after.pop(0) if self.lose_after else 1000
        return LosablePost(self, Post(), left)

    def give_back(self, post: PlacedPost) -> None:
        self.back.append(post)


@dataclass
class LosablePost:
    at: Place
    post: Post
    left: int

    def open(self, judge: str, request: str) -> str:
        self.at.sent.append(request)
        return self.at.twist(self.post.open(judge, request))

    def evaluate(
        self, candidates: Sequence[str], ahead: Sequence[str], *, patience_s: float
    ) -> Iterator[str]:
        self.at.sent += [*candidates, *ahead]
        for text in self.post.evaluate(candidates, ahead):
            if not self.left:
                msg = "killed"
                raise PostLostError(msg)
            self.left -= 1
            yield self.at.twist(text)

    def confirm(self, request: str, *, patience_s: float) -> str:
        self.at.sent.append(request)
        return self.at.twist(self.post.confirm(request))

    def fetch(self, name: str) -> bytes | None:
        return self.post.fetch(name)

    def end(self) -> None:
        self.at.ended += 1


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> FakeJudge:
    # A post imports its judge by name, and test modules are not to be found so.
    monkeypatch.setitem(sys.modules, HERE.partition(":")[0], sys.modules[__name__])
    JUDGES.append(FakeJudge())
    return JUDGES[-1]


def open_remote(place: Place, folder: Path, asked: JudgeRequest = ASKED) -> RemoteRunner:
    return RemoteRunner(place, asked, samples=folder, judge=HERE)


def confirm(runner: RemoteRunner, candidate: Candidate) -> object:
    return runner.confirm(candidate, deadline_s=1, alpha=0.00025, handed_back=())


def with_samples(name: str) -> Callable[[Candidate], Evidence]:
    return lambda candidate: make_evidence(candidate).model_copy(update={"samples_sha256": name})


def test_what_a_lost_post_has_told_is_not_tried_again(judge: FakeJudge, tmp_path: Path) -> None:
    place = Place(lose_after=[1, 1])
    told: list[Evaluation] = []
    runner = open_remote(place, tmp_path)

    done = runner.evaluate(THREE, on_done=told.append)

    assert [evaluation.candidate for evaluation in done] == [c.id for c in THREE]
    assert told == done
    assert (place.placed, place.ended) == (3, 2)
    runner.close()
    assert len(place.back) == 1


def test_a_device_whose_posts_are_lost_again_and_again_is_given_up(
    judge: FakeJudge, tmp_path: Path
) -> None:
    runner = open_remote(Place(lose_after=[0, 0, 0]), tmp_path)

    with pytest.raises(DeviceLostError, match="killed"):
        runner.evaluate(THREE)


def test_a_host_with_another_judge_is_refused(judge: FakeJudge, tmp_path: Path) -> None:
    other = ASKED.model_copy(update={"judge_version": "2"})

    with pytest.raises(RunnerError, match="this host has judge 1"):
        open_remote(Place(), tmp_path, other)


def test_what_was_not_asked_for_is_not_believed(judge: FakeJudge, tmp_path: Path) -> None:
    stranger = make_evaluation(make_candidate("stranger")).to_json()

    def twist(text: str) -> str:
        said = json.loads(text)
        if said["kind"] == "tried":
            said["evaluation"] = json.loads(stranger)
        return json.dumps(said)

    runner = open_remote(Place(twist=twist), tmp_path)

    with pytest.raises(RunnerError, match="not asked for"):
        runner.evaluate(THREE)


@pytest.mark.parametrize("text", ["", "{}", '{"kind": "opened"}', '["tried"]'])
def test_nonsense_is_an_error_of_the_host(judge: FakeJudge, tmp_path: Path, text: str) -> None:
    place = Place()
    runner = open_remote(place, tmp_path)
    place.twist = lambda _: text

    with pytest.raises(RunnerError, match="can't be read"):
        runner.evaluate(THREE)


def test_evidence_held_to_a_lower_standard_is_not_believed(
    judge: FakeJudge, tmp_path: Path
) -> None:
    judge.confirm_one = lambda c: make_evidence(c).model_copy(update={"alpha": 0.5})

    with pytest.raises(RunnerError, match="lower standard"):
        confirm(open_remote(Place(), tmp_path), THREE[0])


def test_raw_samples_come_along_under_their_hash(judge: FakeJudge, tmp_path: Path) -> None:
    judge.confirm_one = with_samples(RAW)

    assert isinstance(confirm(open_remote(Place(), tmp_path), THREE[0]), Evidence)

    assert find_samples(tmp_path, RAW) is not None
    assert Artefacts(tmp_path).find(RAW) == SAMPLES


def test_samples_that_are_not_what_their_name_says_are_refused(
    judge: FakeJudge, tmp_path: Path
) -> None:
    judge.confirm_one = with_samples("0" * 64)

    with pytest.raises(RunnerError, match="raw samples"):
        confirm(open_remote(Place(), tmp_path), THREE[0])


def test_a_search_that_is_stopped_leaves_no_post_at_work(judge: FakeJudge, tmp_path: Path) -> None:
    place = Place()
    runner = open_remote(place, tmp_path)

    def stop(_: Evaluation) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        runner.evaluate(THREE, on_done=stop)

    assert place.ended == 1


def test_no_path_and_no_database_travels(judge: FakeJudge, tmp_path: Path) -> None:
    place = Place()
    runner = open_remote(place, tmp_path)
    runner.evaluate(THREE, ahead=THREE[:1])
    confirm(runner, THREE[0])

    assert place.sent
    assert not [text for text in place.sent if str(tmp_path) in text or "sqlite" in text]
