import itertools
import subprocess
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from daemon.config.file import BotConfig, Limits
from daemon.forge import PullRequest, PullRequestDraft
from daemon.local_forge import LocalForge
from daemon.origin import Signature
from daemon.pulls.branches import Branches
from daemon.pulls.publish import (
    Declined,
    HeldBack,
    LeftAlone,
    Merged,
    Opened,
    Publication,
    Publisher,
    Unchanged,
    Updated,
)
from daemon.pulls.pull_request import EDITED_LABEL, Proposal, as_draft
from daemon.talk.wishes import Wish, find_answer, hold, unhold, wish
from daemon.workspace import Workspace, make_origin
from optimizer.store import Store
from tests.daemon.crashing import Crash, Crashing, Steps
from tests.fakes import FakeClock
from tests.makers import make_candidate, make_evidence

ME = Signature("me", "me@localhost", "2026-11-30T12:00:00+00:00")
BRANCH = "kernelevolve/scale/cpu-x86-64-v3"
PATH = "kernels/scale/cpu-x86-64-v3"
FILES = {"README.md": b"faster", "plots/latency.svg": b"<svg/>"}


@dataclass
class World:
    """An origin with a registry, its forge, a store; and a crash at a chosen step."""

    folder: Path
    steps: Steps = field(default_factory=Steps, init=False)

    def __post_init__(self) -> None:
        """Make it all."""
        self.origin = self.folder / "origin.git"
        make_origin(self.origin)
        self.people = Workspace(str(self.origin), self.folder / "people.git")
        first = self.people.commit(None, "", {"registry.yaml": b"here"}, message="first", by=ME)
        self.people.push("main", first, expected=None)
        self.workspace = Workspace(str(self.origin), self.folder / "clone.git")
        self.forge = LocalForge(self.folder / "forge", self.workspace)
        self.store = Store(f"sqlite:///{self.folder / 'store.sqlite'}")
        self.store.migrate()
        self.clock = FakeClock(datetime.now(UTC).timestamp())
        self.config = BotConfig()

    def publisher(self) -> Publisher:
        branches = Branches(
            repository=Crashing(self.workspace, self.steps),
            memory=Crashing(self.store, self.steps),
            name="bot",
            email="bot@localhost",
            clock=self.clock,
        )
        return Publisher(
            branches=branches,
            forge=Crashing(self.forge, self.steps),
            base="main",
            config=lambda: self.config,
        )

    def publish(
        self, proposal: Proposal | None = None, files: dict[str, bytes] | None = None
    ) -> Publication:
        return self.publisher().publish(proposal or make_proposal(), files or FILES)

    def branches(self) -> dict[str, str]:
        return dict(self.workspace.find_heads().branches)

    def commit(self, branch: str, name: str) -> str:
        """Commit a file on top of a branch, as a person does."""
        head = self.people.fetch(branch)
        sha = self.people.commit(head, name, {"file": b"mine"}, message="mine", by=ME)
        self.people.push(branch, sha, expected=head)
        return sha


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def make_proposal(
    ratio: float = 2.0, *, operator_digest: str = "0" * 64, hardware: str = "cpu-x86-64-v3"
) -> Proposal:
    evidence = make_evidence(make_candidate(), ratio, operator_digest=operator_digest)
    return Proposal(evidence.model_copy(update={"hardware": hardware}), origin="synthesis")


def test_a_kernel_gets_a_branch_with_one_commit_and_a_pull_request(world: World) -> None:
    found = world.publish()

    assert found == Opened(number=1)
    head = world.branches()[BRANCH]
    assert world.workspace.files(head, PATH) == FILES
    assert run_git(world.origin, "rev-list", "--count", f"main..{BRANCH}") == "1"
    assert "Kernel-Key: " in run_git(world.origin, "log", "-1", "--format=%B", BRANCH)


def test_publishing_again_does_nothing(world: World) -> None:
    world.publish()
    before = world.branches()

    assert world.publish() == Unchanged(number=1)
    assert world.branches() == before


def test_a_better_kernel_updates_the_pull_request_in_place(world: World) -> None:
    world.publish()

    found = world.publish(make_proposal(3.0), {"README.md": b"faster still"})

    assert found == Updated(number=1)
    assert "3.00x" in world.forge.pull_requests()[0].title
    assert run_git(world.origin, "rev-list", "--count", f"main..{BRANCH}") == "1"
    assert world.workspace.files(world.branches()[BRANCH], PATH) == {"README.md": b"faster still"}


def test_a_base_that_moved_on_makes_no_new_commit(world: World) -> None:
    world.publish()
    before = world.branches()[BRANCH]
    world.commit("main", "other")

    assert world.publish() == Unchanged(number=1)
    assert world.branches()[BRANCH] == before


def test_a_closed_pull_request_is_a_no_until_the_operator_changes(world: World) -> None:
    world.publish()
    world.forge.close_pull_request(1)

    assert world.publish(make_proposal(3.0)) == Declined(number=1)
    assert world.publish(make_proposal(operator_digest="1" * 64)) == Opened(number=2)


def test_a_no_that_is_seen_late_leaves_no_branch(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.publish()
    world.forge.close_pull_request(1)
    before = world.branches()
    world.workspace.delete(BRANCH, expected=before[BRANCH])
    whole, late = LocalForge.pull_requests, [True]

    def lagging(forge: LocalForge, *, head: str | None = None) -> tuple[PullRequest, ...]:
        return () if late and late.pop() else whole(forge, head=head)

    monkeypatch.setattr(LocalForge, "pull_requests", lagging)

    assert world.publish(make_proposal(3.0)) == Declined(number=1)
    assert BRANCH not in world.branches()


def test_a_no_outlives_an_edited_body(world: World) -> None:
    world.publish()
    shown = world.forge.pull_requests()[0]
    parts = shown.model_dump(include=set(PullRequestDraft.model_fields))
    edited = PullRequestDraft.model_validate({**parts, "body": "what a nice kernel"})
    world.forge.update_pull_request(1, edited)
    world.forge.close_pull_request(1)

    assert world.publish() == Declined(number=1)


def test_a_lifted_no_is_none_any_more_and_the_person_is_told(world: World) -> None:
    world.publish()
    world.forge.close_pull_request(1)
    wish(world.store, "reopen", BRANCH, Wish(by="ann", at=1))

    assert world.publish() == Opened(number=2)
    told = find_answer(world.store, "reopen", BRANCH)
    assert told is not None
    assert told.told == "pull request #2 is open"
    world.forge.close_pull_request(2)
    assert world.publish() == Declined(number=2)


def test_a_held_branch_is_not_touched(world: World) -> None:
    world.publish()
    before = world.branches()
    hold(world.store, BRANCH, "ann")

    found = world.publish(make_proposal(3.0), {"README.md": b"better"})

    assert isinstance(found, HeldBack)
    assert "pull request #1" in found.why
    assert world.branches() == before
    assert world.publisher().find_hold("scale", "cpu-x86-64-v3") == found
    unhold(world.store, BRANCH)
    assert world.publisher().find_hold("scale", "cpu-x86-64-v3") is None


def test_no_more_pull_requests_are_open_than_the_configuration_allows(world: World) -> None:
    world.publish()
    world.config = BotConfig(limits=Limits(open_pull_requests=1))
    other = make_proposal(hardware="other")

    found = world.publish(other)

    assert isinstance(found, HeldBack)
    assert "1 pull request of the bot's is open" in found.why
    assert world.publisher().find_hold("scale", "other") == found
    assert set(world.branches()) == {"main", BRANCH}
    assert world.publish(make_proposal(3.0), {"README.md": b"better"}) == Updated(number=1)
    world.forge.close_pull_request(1)
    assert world.publisher().find_hold("scale", "other") is None
    assert world.publish(other) == Opened(number=2)


def test_no_more_pull_requests_are_opened_in_an_hour_than_allowed(world: World) -> None:
    world.config = BotConfig(limits=Limits(pull_requests_per_hour=1))
    world.publish()
    other = make_proposal(hardware="other")

    assert isinstance(world.publish(other), HeldBack)
    world.clock.now_s += 3601
    assert world.publish(other) == Opened(number=2)


def test_branches_are_moved_no_more_often_than_allowed(world: World) -> None:
    world.config = BotConfig(limits=Limits(commits_per_hour=1))
    world.publish()
    better = (make_proposal(3.0), {"README.md": b"better"})

    assert isinstance(world.publish(*better), HeldBack)
    world.clock.now_s += 3601
    assert world.publish(*better) == Updated(number=1)


def test_labels_that_people_gave_it_stay_and_the_configurations_are_added(world: World) -> None:
    world.publish()
    shown = world.forge.pull_requests()[0]
    world.forge.update_pull_request(1, as_draft(shown, labels=("kernelevolve", "urgent")))
    world.config = BotConfig(labels=("perf",))

    world.publish(make_proposal(3.0), {"README.md": b"better"})

    assert world.forge.pull_requests()[0].labels == ("kernelevolve", "urgent", "perf")


def test_what_was_shown_before_is_told(world: World) -> None:
    world.publish()

    world.publish(make_proposal(3.0), {"README.md": b"better"})

    body = world.forge.pull_requests()[0].body
    assert "| proposed | 2.00x |" in body
    assert "| replaced | 3.00x |" in body


def test_a_no_is_known_before_the_search(world: World) -> None:
    world.publish()
    publisher = world.publisher()
    assert publisher.find_refusal("scale", "cpu-x86-64-v3", "0" * 64) is None

    world.forge.close_pull_request(1)

    assert publisher.find_refusal("scale", "cpu-x86-64-v3", "0" * 64) == Declined(number=1)
    assert publisher.find_refusal("scale", "cpu-x86-64-v3", "1" * 64) is None


def test_a_merged_kernel_is_not_published_again(world: World) -> None:
    world.publish()
    heads = world.branches()
    world.people.fetch(BRANCH)
    world.people.push("main", heads[BRANCH], expected=heads["main"])

    assert world.publish() == Merged()


def test_after_a_merge_a_better_kernel_gets_a_pull_request_of_its_own(world: World) -> None:
    world.publish()
    heads = world.branches()
    world.people.fetch(BRANCH)
    world.people.push("main", heads[BRANCH], expected=heads["main"])

    assert world.publish(make_proposal(3.0), {"README.md": b"better"}) == Opened(number=2)
    assert [p.state for p in world.forge.pull_requests()] == ["open", "merged"]


def test_a_persons_commit_is_not_overwritten_and_the_pull_request_says_so(world: World) -> None:
    world.publish()
    theirs = world.commit(BRANCH, "notes")

    for _ in range(2):
        found = world.publish(make_proposal(3.0), {"README.md": b"better"})

        assert found == LeftAlone(branch=BRANCH, number=1)
    assert world.branches()[BRANCH] == theirs
    shown = world.forge.pull_requests()[0]
    assert shown.body.count("commits that the bot did not make") == 1
    assert EDITED_LABEL in shown.labels


def test_a_branch_that_is_set_back_is_the_bots_again(world: World) -> None:
    world.publish()
    ours = world.branches()[BRANCH]
    theirs = world.commit(BRANCH, "notes")
    better = (make_proposal(3.0), {"README.md": b"better"})
    world.publish(*better)
    assert ours in world.forge.pull_requests()[0].body

    world.people.push(BRANCH, ours, expected=theirs)

    assert world.publish(*better) == Updated(number=1)
    assert "did not make" not in world.forge.pull_requests()[0].body


def test_a_strangers_branch_of_our_name_is_left_alone(world: World) -> None:
    sha = world.people.fetch("main")
    theirs = world.people.commit(sha, "x", {"file": b"mine"}, message="mine", by=ME)
    world.people.push(BRANCH, theirs, expected=None)

    assert world.publish() == LeftAlone(branch=BRANCH, number=None)
    assert world.branches()[BRANCH] == theirs


def test_a_lost_database_makes_nobody_a_stranger(world: World) -> None:
    world.publish()
    world.store = Store(f"sqlite:///{world.folder / 'fresh.sqlite'}")
    world.store.migrate()

    found = world.publish(make_proposal(3.0), {"README.md": b"better"})

    assert found == Updated(number=1)


@pytest.mark.parametrize(
    "update",
    [pytest.param(False, id="opening"), pytest.param(True, id="updating")],
)
@pytest.mark.drill
def test_killed_at_any_step_and_started_again_it_does_nothing_twice(
    tmp_path: Path,
    update: bool,  # noqa: FBT001 - pytest fills it
) -> None:
    better = (make_proposal(3.0), {"README.md": b"better"})
    for crash_at in itertools.count(1):
        world = World(tmp_path / str(crash_at))
        if update:
            world.publish()
        world.steps = Steps(crash_at)
        try:
            world.publish(*better)
        except Crash:
            crashed = True
        else:
            crashed = False
        world.steps = Steps()

        world.publish(*better)

        shown = world.forge.pull_requests()
        assert [p.state for p in shown] == ["open"]
        assert set(world.branches()) == {"main", BRANCH}
        assert shown[0].head_sha == world.branches()[BRANCH]
        assert world.workspace.files(shown[0].head_sha, PATH) == better[1]
        assert run_git(world.origin, "rev-list", "--count", f"main..{BRANCH}") == "1"
        assert "3.00x" in shown[0].title
        if not crashed:
            assert crash_at > 10
            return


def run_git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()
