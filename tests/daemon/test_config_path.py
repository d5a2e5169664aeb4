"""A registry's configuration, from being asked for to a pause, before the daemon's real parts."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.board.onboarding import BRANCH
from daemon.config.file import CONFIG_PATH
from tests.github.stage import BRANCH as KERNEL
from tests.github.stage import OWNER, InstantJobs, Stage


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with Stage(tmp_path, config="") as stage:
        yield stage


def heads(stage: Stage) -> list[str]:
    return [pull.pull.head for pull in stage.own_pulls() if pull.pull]


def test_nothing_is_done_before_the_configuration_is_merged_and_all_of_it_after(
    stage: Stage,
) -> None:
    stage.push_operator("better 2.0")
    for _ in range(3):
        stage.turn()
        stage.round(pass_s=70.0)

    (asked,) = stage.own_pulls()
    assert heads(stage) == [BRANCH]
    assert stage.github.issues() == []
    assert isinstance(stage.jobs, InstantJobs)
    assert stage.jobs.ran == []

    stage.github.merge(asked.number, OWNER)
    stage.turn()
    stage.round(pass_s=70.0)

    assert heads(stage) == [BRANCH, KERNEL]
    (dashboard,) = stage.github.issues()
    assert f"#{asked.number + 1}" in (dashboard.body or "")


def test_closed_it_asks_for_nothing_until_a_person_says_reopen(stage: Stage) -> None:
    stage.push_operator("better 2.0")
    stage.turn()
    stage.round(pass_s=70.0)
    (asked,) = stage.own_pulls()
    stage.github.close(asked.number, OWNER)
    for _ in range(3):
        stage.turn()
        stage.round(pass_s=70.0)
    assert [pull.state for pull in stage.own_pulls()] == ["closed"]

    comment = stage.github.comment(asked.number, OWNER, "/reopen")
    stage.rounds(4, pass_s=70.0)

    assert [pull.state for pull in stage.own_pulls()] == ["open"]
    assert "+1" in stage.reactions(comment) or "hooray" in stage.reactions(comment)


def test_a_configuration_that_breaks_is_told_and_the_last_good_one_holds(stage: Stage) -> None:
    stage.github.push("main", {CONFIG_PATH: "version: 1\ndry_run: true\n"}, OWNER)
    stage.turn()
    stage.github.push("main", {CONFIG_PATH: "version: 1\ndry_rum: true\n"}, OWNER)
    stage.push_operator("better 2.0")
    stage.turn()
    stage.round(pass_s=70.0)

    assert stage.own_pulls() == []
    titles = {issue.title for issue in stage.github.issues()}
    assert f"{CONFIG_PATH} is broken" in titles


def test_while_the_configuration_pauses_status_is_answered_and_nothing_is_begun(
    stage: Stage,
) -> None:
    stage.github.push("main", {CONFIG_PATH: "version: 1\npause: true\n"}, OWNER)
    stage.push_operator("better 2.0")
    stage.turn()
    number = stage.github.open_issue(OWNER, "a question")
    asked = stage.github.comment(number, OWNER, "/status")
    wanted = stage.github.comment(number, OWNER, "/optimize op=gelu_bias")
    stage.rounds(3, pass_s=70.0)

    assert stage.reactions(asked)
    assert set(stage.reactions(wanted)) <= {"eyes"}
    assert stage.own_pulls() == []
    assert [issue.user.login for issue in stage.github.issues()] == [OWNER]

    stage.github.push("main", {CONFIG_PATH: "version: 1\n"}, OWNER)
    for _ in range(2):
        stage.turn()
        stage.rounds(3, pass_s=70.0)

    assert len(stage.own_pulls()) == 1
    assert set(stage.reactions(wanted)) > {"eyes"}
