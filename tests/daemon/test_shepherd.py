import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from daemon.config.file import BotConfig, Limits
from daemon.forge import ForgeRefusedError, ForgeUnavailableError, PullRequest
from daemon.pulls.publish import Declined, Opened, Updated
from daemon.pulls.pull_request import EDITED_LABEL, as_draft, find_marker
from daemon.pulls.standing import Replayed, find_standing
from daemon.pulls.watched import find_watched
from daemon.talk.wishes import Wish, WishKind, find_answer, hold, wish
from operator_registry.registry import Operator
from optimizer.job import CannotTell
from optimizer.store import NewCommand
from optimizer.store.rows import QueuedGoal
from tests.daemon.crashing import Crash
from tests.daemon.pasture import BRANCH, OWNED, PATH, Pasture, grazing
from tests.makers import HARDWARE, OPERATOR


@pytest.fixture
def pasture(tmp_path: Path) -> Iterator[Pasture]:
    with grazing(tmp_path) as made:
        made.publish()
        yield made


def ask(pasture: Pasture, kind: WishKind, *, sha: str | None = None) -> None:
    wish(pasture.store, kind, BRANCH, Wish(by="wendy", at=pasture.clock(), sha=sha))


def told(pasture: Pasture, kind: WishKind) -> str:
    answer = find_answer(pasture.store, kind, BRANCH)
    return answer.told if answer else ""


def change_base(pasture: Pasture) -> None:
    """Have a person put another kernel where ours would go."""
    pasture.github.push("main", {f"{PATH}/README.md": "somebody's own"}, "wendy")


def change_operator(pasture: Pasture) -> Operator:
    """Have the registry ask for something else under the operator's name."""
    assert pasture.registry is not None
    changed = Operator(spec=OWNED.spec, source=OWNED.source.replace("x *", "2 * x *"))
    pasture.registry = replace(pasture.registry, operators={OPERATOR.name: changed})
    return changed


def queue_goal(pasture: Pasture) -> None:
    goal = QueuedGoal(
        key="k", operator=OPERATOR.name, hardware=HARDWARE.name, operator_digest="d", reasons=()
    )
    pasture.store.enqueue(goal, now=0)


def count_writes(pasture: Pasture) -> int:
    """Return how many calls of the API were to change something; git's own are none of those."""
    asked = (a for a in pasture.github.requests if ".git/" not in a.path)
    return sum(a.method not in {"GET", "HEAD"} for a in asked)


def test_the_judges_result_stands_beside_the_commit(pasture: Pasture) -> None:
    pasture.look()

    check = pasture.check()
    assert (check.status, check.conclusion) == ("completed", "success")
    assert check.title == "Better: 2.00x (1.98 to 2.02)"
    assert "**2.00x faster**" in check.summary
    assert not pasture.shown().draft


def test_a_second_look_writes_nothing(pasture: Pasture) -> None:
    pasture.look()
    before = count_writes(pasture)

    for _ in range(3):
        pasture.look()

    assert count_writes(pasture) == before


def test_owners_are_asked_once_each_but_mail_addresses_not(pasture: Pasture) -> None:
    for login in ("rob", "mia"):
        pasture.github.set_role(login, "write")
    pasture.github.push("main", {".github/CODEOWNERS": "* @rob\n/kernels/ @mia @nobody\n"}, "rob")

    pasture.look()
    pasture.look()

    (pull,) = pasture.github.pulls()
    assert pull.pull is not None
    assert sorted(user.login for user in pull.pull.reviewers) == ["mia", "wendy"]


def test_a_merged_pull_requests_branch_is_deleted(pasture: Pasture) -> None:
    pasture.github.merge(1, "wendy")

    pasture.look()

    assert pasture.head() is None
    assert find_watched(pasture.store) == ()


def test_a_merged_branch_with_a_later_commit_is_left(pasture: Pasture) -> None:
    pasture.github.merge(1, "wendy")
    pasture.github.push(BRANCH, {"notes": "mine"}, "wendy")
    head = pasture.head()

    pasture.look()

    assert pasture.head() == head


def test_a_persons_commit_is_respected_and_said_once(pasture: Pasture) -> None:
    pasture.look()
    pasture.github.push(BRANCH, {"notes": "mine"}, "wendy")
    theirs = pasture.head()

    pasture.look()
    pasture.look()

    shown = pasture.shown()
    assert pasture.head() == theirs
    assert EDITED_LABEL in shown.labels
    assert shown.body.count("commits that the bot did not make") == 1
    assert "did not make" in (pasture.store.recall("notice/1") or "")
    assert len(pasture.comments()) == 1


def test_a_label_that_a_person_takes_off_stays_off(pasture: Pasture) -> None:
    pasture.github.push(BRANCH, {"notes": "mine"}, "wendy")
    pasture.look()
    pasture.forge.update_pull_request(1, as_draft(pasture.shown(), labels=("kernelevolve",)))

    pasture.look()

    assert EDITED_LABEL not in pasture.shown().labels


def test_a_branch_that_is_set_back_is_the_bots_again(pasture: Pasture) -> None:
    ours = pasture.head() or ""
    pasture.github.push(BRANCH, {"notes": "mine"}, "wendy")
    pasture.look()

    pasture.set_back(ours)
    pasture.look()

    assert EDITED_LABEL not in pasture.shown().labels
    assert "did not make" not in pasture.shown().body
    assert pasture.store.recall("notice/1") == ""


def test_a_conflict_is_resolved_by_the_same_folder_on_the_new_base(pasture: Pasture) -> None:
    before = pasture.workspace.files(pasture.head() or "", PATH)
    change_base(pasture)

    pasture.look()

    head = pasture.head() or ""
    assert pasture.workspace.is_ancestor(pasture.github.git.heads()["main"], head)
    assert pasture.workspace.files(head, PATH) == before
    marker = find_marker(pasture.shown().body)
    assert marker is not None
    assert marker.head == head
    assert [past.what for past in marker.history] == ["proposed", "rebased"]


def test_a_base_that_moves_elsewhere_moves_nothing(pasture: Pasture) -> None:
    before = pasture.head()
    pasture.github.push("main", {"docs/readme": "more"}, "wendy")

    pasture.look()

    assert pasture.head() == before


def test_a_rebase_is_done_where_somebody_asks(pasture: Pasture) -> None:
    pasture.github.push("main", {"docs/readme": "more"}, "wendy")
    ask(pasture, "rebase")

    pasture.look()

    assert pasture.workspace.is_ancestor(pasture.github.git.heads()["main"], pasture.head() or "")
    assert "on top of" in told(pasture, "rebase")


def test_what_is_on_top_already_is_not_rebased(pasture: Pasture) -> None:
    before = pasture.head()
    ask(pasture, "rebase")

    pasture.look()

    assert pasture.head() == before
    assert told(pasture, "rebase") == "it is on top of its base"


def test_a_persons_branch_is_not_rebased(pasture: Pasture) -> None:
    pasture.github.push(BRANCH, {"notes": "mine"}, "wendy")
    ask(pasture, "rebase")

    pasture.look()

    assert told(pasture, "rebase") == "the branch holds commits that the bot did not make"


def test_a_rebase_waits_where_branches_were_moved_too_often(pasture: Pasture) -> None:
    before = pasture.head()
    pasture.config = BotConfig(limits=Limits(commits_per_hour=1))
    change_base(pasture)

    pasture.look()
    assert pasture.head() == before

    pasture.look(after_s=3600)
    assert pasture.head() != before


def test_a_held_pull_request_is_not_moved(pasture: Pasture) -> None:
    before = pasture.head()
    change_base(pasture)
    hold(pasture.store, BRANCH, "wendy")

    pasture.look()

    assert pasture.head() == before


def test_a_moved_head_is_measured_again_and_a_draft_until_then(pasture: Pasture) -> None:
    pasture.look()
    change_base(pasture)

    pasture.look()

    assert pasture.check().status == "in_progress"
    assert pasture.shown().draft
    pasture.reverifier.run()
    pasture.look()
    check = pasture.check()
    assert check.conclusion == "success"
    assert "reproduced with new seeds at 21 sizes, 1.90x" in check.summary
    assert not pasture.shown().draft


def test_what_can_not_be_told_stays_a_draft(pasture: Pasture) -> None:
    change_base(pasture)
    pasture.jobs.finding = CannotTell(reason="too noisy")
    pasture.look()

    pasture.reverifier.run()
    pasture.look()

    assert pasture.check().conclusion == "neutral"
    assert pasture.shown().draft


def test_a_draft_that_a_person_makes_ready_stays_ready(pasture: Pasture) -> None:
    change_base(pasture)
    pasture.look()
    pasture.forge.update_pull_request(1, as_draft(pasture.shown(), draft=False))

    pasture.look()

    assert not pasture.shown().draft


def test_what_the_registry_no_longer_asks_for_is_closed_at_the_second_look(
    pasture: Pasture,
) -> None:
    assert pasture.registry is not None
    pasture.registry = replace(pasture.registry, operators={})

    pasture.look()
    assert pasture.shown().state == "open"
    pasture.look(after_s=60)
    assert pasture.shown().state == "open"
    pasture.look(after_s=300)

    shown = pasture.shown()
    assert shown.state == "closed"
    assert shown.title.startswith("(obsolete) ")
    assert pasture.head() is None
    (comment,) = pasture.comments()
    assert "the registry has no operator scale any more" in comment


def test_the_bots_own_closing_is_nobodys_no(pasture: Pasture) -> None:
    kept = pasture.registry
    assert kept is not None
    pasture.registry = replace(kept, operators={})
    pasture.look()
    pasture.look(after_s=300)
    pasture.registry = kept

    assert pasture.publish() == Opened(number=2)


def test_a_reason_that_goes_away_closes_nothing(pasture: Pasture) -> None:
    kept = pasture.registry
    assert kept is not None
    gone = replace(kept, operators={})
    for registry in (gone, kept, gone, kept, gone):
        pasture.registry = registry
        pasture.look(after_s=300)

    assert pasture.shown().state == "open"


def test_a_registry_that_can_not_be_read_closes_nothing(pasture: Pasture) -> None:
    pasture.registry = None
    for _ in range(3):
        pasture.look(after_s=300)

    assert pasture.shown().state == "open"


def test_what_a_person_opens_again_is_not_closed_twice(pasture: Pasture) -> None:
    assert pasture.registry is not None
    head = pasture.head() or ""
    pasture.registry = replace(pasture.registry, operators={})
    pasture.look()
    pasture.look(after_s=300)
    pasture.workspace.push(BRANCH, head, expected=None)
    pasture.github.reopen(1, "wendy")

    pasture.look(after_s=300)
    pasture.look(after_s=300)

    assert pasture.shown().state == "open"


def test_a_changed_operator_is_told_while_it_is_searched_for_and_closes_after(
    pasture: Pasture,
) -> None:
    pasture.look()
    change_operator(pasture)
    queue_goal(pasture)

    pasture.look()
    pasture.look(after_s=300)
    assert pasture.check().title == "The operator has changed since"
    assert pasture.shown().draft
    assert pasture.shown().state == "open"

    pasture.store.finish("k", verdict="not_better", result="", now=0)
    pasture.look()
    pasture.look(after_s=300)
    assert pasture.shown().state == "closed"


def test_a_kernel_that_is_in_the_base_already_closes_the_pull_request(pasture: Pasture) -> None:
    files = pasture.workspace.files(pasture.head() or "", PATH)
    texts = {f"{PATH}/{name}": content.decode() for name, content in files.items()}
    pasture.github.push("main", texts, "wendy")

    pasture.look()
    pasture.look(after_s=300)

    assert pasture.shown().state == "closed"
    assert "holds this kernel already" in pasture.comments()[0]


def test_a_closed_pull_request_is_opened_again_where_somebody_asks(pasture: Pasture) -> None:
    pasture.github.close(1, "wendy")
    pasture.look()
    assert pasture.shown().state == "closed"
    ask(pasture, "reopen")

    pasture.look()

    assert pasture.shown().state == "open"
    assert told(pasture, "reopen") == "pull request #1 is open again"
    assert pasture.publish(3.0, "two") == Updated(number=1)
    pasture.github.close(1, "wendy")
    assert pasture.publish(4.0, "three") == Declined(number=1)


def test_a_branch_that_was_deleted_comes_back_where_somebody_asks(pasture: Pasture) -> None:
    head = pasture.head()
    pasture.github.close(1, "wendy")
    pasture.github.delete_branch(BRANCH, "wendy")
    ask(pasture, "reopen")
    command = NewCommand(
        comment_id=1, line=1, number=1, author_id=1, author="wendy", text="/reopen"
    )
    pasture.store.note_command(command, now=0)

    pasture.look()

    assert pasture.head() == head
    assert pasture.shown().state == "open"


def test_what_can_not_be_opened_again_is_no_no_any_more(
    pasture: Pasture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(number: int) -> PullRequest:
        msg = f"#{number} is locked"
        raise ForgeRefusedError(msg)

    pasture.github.close(1, "wendy")
    monkeypatch.setattr(pasture.forge, "reopen_pull_request", refuse)
    ask(pasture, "reopen")

    pasture.look()

    assert "no longer a no; it can't be opened again itself: #1 is locked" in told(
        pasture, "reopen"
    )
    assert pasture.publish(3.0, "two") == Opened(number=2)
    pasture.github.close(2, "wendy")
    assert pasture.publish(4.0, "three") == Declined(number=2)


def test_after_a_lost_database_nobody_is_a_stranger(pasture: Pasture) -> None:
    pasture.look()
    for mark in ("pushed/" + BRANCH, f"standing/{pasture.head()}", f"check/{pasture.head()}"):
        pasture.store.mark(mark, "")

    pasture.look()

    assert EDITED_LABEL not in pasture.shown().labels
    watched = [(one.number, one.branch, one.sha) for one in find_watched(pasture.store)]
    assert watched == [(1, BRANCH, pasture.head())]


def test_a_forks_pull_request_of_our_branchs_name_is_not_looked_at(pasture: Pasture) -> None:
    pasture.look()
    number = pasture.github.open_pull_request_from_fork(
        "sam", {f"{PATH}/README.md": "evil"}, branch=BRANCH, body=pasture.shown().body
    )
    before = count_writes(pasture)

    pasture.look()

    assert count_writes(pasture) == before
    assert pasture.shown(number).state == "open"


def test_one_that_fails_does_not_keep_the_others(
    pasture: Pasture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pasture.look()
    real = pasture.forge.pull_requests

    def failing(*, head: str | None = None) -> tuple[PullRequest, ...]:
        if head == "kernelevolve/a/b":
            msg = "away"
            raise ForgeUnavailableError(msg)
        return real(head=head)

    pasture.github.push("kernelevolve/a/b", {"x": "y"}, "wendy")
    pasture.github.merge(1, "wendy")
    monkeypatch.setattr(pasture.forge, "pull_requests", failing)

    with pytest.raises(ForgeUnavailableError):
        pasture.look()

    assert pasture.head() is None


def test_the_replay_is_remembered_for_the_commit(pasture: Pasture) -> None:
    change_base(pasture)
    pasture.look()
    pasture.reverifier.run()

    assert isinstance(find_standing(pasture.store, pasture.head() or ""), Replayed)


@pytest.mark.drill
@pytest.mark.timeout(590)
def test_killed_at_any_step_it_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    """A conflict, then a registry that no longer asks for it: rebased once, closed once."""
    for crash_at in itertools.count(1):
        with grazing(tmp_path / str(crash_at)) as pasture:
            pasture.publish()
            change_base(pasture)
            kept = pasture.registry
            assert kept is not None
            gone = replace(kept, operators={})
            pasture.steps.taken, pasture.steps.crash_at = 0, crash_at
            crashed = False
            for registry in (kept, gone, gone, gone):
                pasture.registry = registry
                try:
                    pasture.look(after_s=300)
                except Crash:
                    crashed = True
                    pasture.restart()
                    pasture.look(after_s=300)

            shown = pasture.shown()
            assert (shown.state, pasture.head()) == ("closed", None)
            assert [p.number for p in pasture.forge.pull_requests()] == [1]
            marker = find_marker(shown.body)
            assert marker is not None
            assert [past.what for past in marker.history] == ["proposed", "rebased"]
            assert sum("Closed by kernelevolve itself" in c for c in pasture.comments()) == 1
            pasture.registry, pasture.steps.crash_at = kept, None
            assert pasture.publish() == Opened(number=2)
        if not crashed:
            assert crash_at > 30
            return
