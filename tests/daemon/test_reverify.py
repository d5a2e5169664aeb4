from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.config.watch import ConfigWatch
from daemon.jobs import JobDiedError
from daemon.pulls.reverify import write_files
from daemon.pulls.standing import NotReplayed, Replayed, find_standing
from daemon.talk.wishes import Wish, find_answer, find_stop, find_wish, stop_job, wish
from optimizer.job import NotReproduced
from tests.daemon.pasture import BRANCH, PATH, Pasture, grazing


@pytest.fixture
def pasture(tmp_path: Path) -> Iterator[Pasture]:
    """Return a pull request whose head is not the commit that the judge saw."""
    with grazing(tmp_path) as made:
        made.publish()
        made.github.push("main", {f"{PATH}/README.md": "somebody's own"}, "wendy")
        made.look()
        yield made


def ask(pasture: Pasture, *, sha: str | None = None, budget_s: float | None = None) -> None:
    wanted = Wish(by="wendy", at=pasture.clock(), sha=sha or pasture.head(), budget_s=budget_s)
    wish(pasture.store, "verify", BRANCH, wanted)


def told(pasture: Pasture) -> tuple[bool, str]:
    answer = find_answer(pasture.store, "verify", BRANCH)
    assert answer is not None
    return answer.well, answer.told


def test_what_nobody_knows_of_is_replayed_once(pasture: Pasture) -> None:
    pasture.reverifier.run()
    pasture.reverifier.run()

    assert len(pasture.jobs.asked) == 1
    assert isinstance(find_standing(pasture.store, pasture.head() or ""), Replayed)
    assert not list((pasture.folder / "state" / "replays").iterdir())


def test_a_person_is_answered_and_may_choose_the_time(pasture: Pasture) -> None:
    pasture.reverifier.run()
    ask(pasture, budget_s=7)

    pasture.reverifier.run()

    assert pasture.jobs.asked[-1].budget_s == 7
    assert told(pasture) == (
        True, "reproduced with new seeds at 21 sizes, 1.90x of the best peer's speed",
    )  # fmt: skip
    assert find_wish(pasture.store, "verify", BRANCH) is None


def test_what_is_not_reproduced_is_told(pasture: Pasture) -> None:
    pasture.jobs.finding = NotReproduced(reason="it is slower than the best peer")
    ask(pasture)

    pasture.reverifier.run()
    pasture.look()

    assert told(pasture) == (False, "it is slower than the best peer")
    assert pasture.check().conclusion == "failure"


def test_a_head_that_moved_after_the_person_looked_is_not_run(pasture: Pasture) -> None:
    pasture.reverifier.run()
    ask(pasture, sha="e" * 40)

    pasture.reverifier.run()

    assert told(pasture) == (False, "the branch has moved since; look at it, and comment again")
    assert len(pasture.jobs.asked) == 1


def test_where_the_hardware_is_not_at_hand_it_is_said(pasture: Pasture) -> None:
    pasture.obstacle = "needs a GPU h200"
    pasture.restart()

    pasture.reverifier.run()
    pasture.look()

    assert pasture.jobs.asked == []
    assert pasture.check().conclusion == "neutral"
    assert "needs a GPU h200" in pasture.check().summary
    assert not pasture.shown().draft


def test_what_may_not_start_now_waits_but_a_person_is_told(pasture: Pasture) -> None:
    limits = "version: 1\nlimits:\n  device_hours_per_day: 0.001\n"
    pasture.github.push("main", {".github/kernelevolve.yml": limits}, "wendy")
    ConfigWatch(pasture.workspace, pasture.store).run()

    pasture.reverifier.run()
    assert find_wish(pasture.store, "verify", BRANCH) is not None
    ask(pasture)
    pasture.reverifier.run()

    assert pasture.jobs.asked == []
    well, why = told(pasture)
    assert not well
    assert "minutes of a device" in why


def test_the_devices_time_is_counted(pasture: Pasture) -> None:
    def pass_time() -> None:
        pasture.clock.now_s += 40

    pasture.jobs.meanwhile = pass_time

    pasture.reverifier.run()

    assert pasture.reverifier.gate.spent_s() == 40


def test_a_stop_ends_it_and_it_does_not_begin_again(pasture: Pasture) -> None:
    key = f"verify/{BRANCH}"
    pasture.jobs.meanwhile = lambda: stop_job(pasture.store, key, "wendy")

    pasture.reverifier.run()
    pasture.reverifier.run()

    assert len(pasture.jobs.asked) == 1
    standing = find_standing(pasture.store, pasture.head() or "")
    assert standing == NotReplayed(why="wendy said stop")
    assert find_stop(pasture.store, key) is None


def test_a_stop_before_it_begins_keeps_it_from_beginning(pasture: Pasture) -> None:
    stop_job(pasture.store, f"verify/{BRANCH}", "wendy")

    pasture.reverifier.run()

    assert pasture.jobs.asked == []
    ask(pasture)
    pasture.reverifier.run()
    assert len(pasture.jobs.asked) == 1


def test_a_job_that_dies_three_times_is_given_up(pasture: Pasture) -> None:
    def die() -> None:
        raise JobDiedError(1, "no compiler")

    pasture.jobs.meanwhile = die
    for _ in range(4):
        pasture.reverifier.run()

    assert len(pasture.jobs.asked) == 3
    standing = find_standing(pasture.store, pasture.head() or "")
    assert isinstance(standing, NotReplayed)
    assert "failed 3 times" in standing.why


def test_a_branch_without_a_kernel_is_not_run(pasture: Pasture) -> None:
    pasture.github.push(BRANCH, {f"{PATH}/hardware.json": None}, "wendy")
    pasture.look()

    pasture.reverifier.run()

    assert pasture.jobs.asked == []
    assert find_standing(pasture.store, pasture.head() or "") == NotReplayed(
        why="there is no kernel at this commit"
    )


def test_a_folder_that_is_no_kernels_size_is_not_read(pasture: Pasture) -> None:
    pasture.github.push(BRANCH, {f"{PATH}/notes.bin": b"x" * 9_000_000}, "wendy")
    pasture.look()

    pasture.reverifier.run()

    assert pasture.jobs.asked == []
    standing = find_standing(pasture.store, pasture.head() or "")
    assert isinstance(standing, NotReplayed)
    assert "more than" in standing.why


def test_what_was_found_of_a_commit_outlives_its_being_published_again(pasture: Pasture) -> None:
    pasture.jobs.finding = NotReproduced(reason="slower")
    pasture.reverifier.run()

    pasture.publish()

    assert isinstance(find_standing(pasture.store, pasture.head() or ""), Replayed)


def test_a_daemon_that_ends_says_nothing_of_the_kernel(pasture: Pasture) -> None:
    going = [True, False]
    pasture.reverifier = type(pasture.reverifier)(
        **{**vars(pasture.reverifier), "keep_going": lambda: going.pop(0)}
    )

    pasture.reverifier.run()

    assert find_standing(pasture.store, pasture.head() or "") is None


def test_no_file_is_written_outside_of_the_folder(tmp_path: Path) -> None:
    write_files(tmp_path / "a", {"../b": b"evil", "c/d": b"good"})

    assert [p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()] == [
        "a/c/d"
    ]
