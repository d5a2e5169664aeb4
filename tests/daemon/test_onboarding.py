import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.board.onboarding import BRANCH, PROPOSED, SCHEMA_PATH, Onboarding
from daemon.config.file import CONFIG_PATH, BotConfig, Permissions, describe, read_config
from daemon.forge import PullRequest
from daemon.pause import pause
from daemon.talk.wishes import Wish, find_answer, wish
from tests.daemon.hosted import OWNER, Hosted, open_hosted


@pytest.fixture
def hosted(tmp_path: Path) -> Iterator[Hosted]:
    kept = {".github/CODEOWNERS": "* @octo\n"}
    with open_hosted(tmp_path, kept, is_required=True) as hosted:
        yield hosted


def ask(hosted: Hosted) -> None:
    Onboarding(
        host=hosted.host,
        repository=hosted.workspace,
        marks=hosted.store,
        config=hosted.config,
        find_registry=hosted.watch.current,
        clock=hosted.clock,
        name="kernelevolve",
        email="kernelevolve@localhost",
    ).run()


def requests(hosted: Hosted) -> tuple[PullRequest, ...]:
    return hosted.host.pull_requests(head=BRANCH)


def test_a_registry_without_configuration_is_asked_once(hosted: Hosted) -> None:
    hosted.look()

    ask(hosted)
    ask(hosted)

    (shown,) = requests(hosted)
    assert (shown.state, shown.base) == ("open", "main")
    assert "Operators: 1, hardware that is searched for: 1" in shown.body
    assert "1 searches at the most, of 1800 seconds each: 0.5 device hours" in shown.body
    assert not re.search(r"(?m)^/\w", shown.body)


def test_it_adds_two_files_and_touches_nothing_else(hosted: Hosted) -> None:
    hosted.look()
    main = hosted.workspace.fetch("main")

    ask(hosted)

    head = hosted.workspace.fetch(BRANCH)
    before, after = hosted.workspace.files(main), hosted.workspace.files(head)
    assert set(after) - set(before) == {CONFIG_PATH, SCHEMA_PATH}
    assert before.items() <= after.items()


def test_nothing_may_be_searched_before_it_is_merged(hosted: Hosted) -> None:
    hosted.look()
    ask(hosted)
    (shown,) = requests(hosted)
    assert hosted.config.find_hold() == f"there is no {CONFIG_PATH} yet"

    hosted.github.merge(shown.number, OWNER)
    hosted.look()

    assert hosted.config.find_hold() is None
    assert hosted.config.in_force() == BotConfig()


def test_closed_is_a_no_that_stays(hosted: Hosted) -> None:
    hosted.look()
    ask(hosted)
    hosted.github.close(requests(hosted)[0].number, OWNER)

    ask(hosted)

    assert [p.state for p in requests(hosted)] == ["closed"]


def test_a_person_may_have_it_asked_again(hosted: Hosted) -> None:
    hosted.look()
    ask(hosted)
    hosted.github.close(requests(hosted)[0].number, OWNER)
    wish(hosted.store, "reopen", BRANCH, Wish(by=OWNER, at=0.0))

    ask(hosted)

    assert [p.state for p in requests(hosted)] == ["open"]
    answer = find_answer(hosted.store, "reopen", BRANCH)
    assert answer is not None
    assert answer.well


def test_where_the_branch_is_gone_another_one_is_opened(hosted: Hosted) -> None:
    hosted.look()
    ask(hosted)
    hosted.github.close(requests(hosted)[0].number, OWNER)
    hosted.github.delete_branch(BRANCH, OWNER)
    wish(hosted.store, "reopen", BRANCH, Wish(by=OWNER, at=0.0))

    ask(hosted)

    assert [p.state for p in requests(hosted)] == ["open", "closed"]


def test_a_configuration_that_is_removed_again_is_a_no(hosted: Hosted) -> None:
    hosted.look()
    ask(hosted)
    hosted.github.merge(requests(hosted)[0].number, OWNER)
    hosted.push({CONFIG_PATH: None})
    hosted.look()

    ask(hosted)

    assert [p.state for p in requests(hosted)] == ["merged"]


def test_a_registry_with_a_configuration_is_not_asked(hosted: Hosted) -> None:
    hosted.push({CONFIG_PATH: "version: 1\npuase: true\n"})  # a broken one is one
    hosted.look()

    ask(hosted)

    assert requests(hosted) == ()


def test_nobody_is_asked_before_the_first_look_or_while_all_is_paused(hosted: Hosted) -> None:
    ask(hosted)
    assert requests(hosted) == ()

    hosted.look()
    pause(hosted.store, "an incident")
    ask(hosted)

    assert requests(hosted) == ()


def test_killed_after_the_push_the_next_start_opens_it(hosted: Hosted) -> None:
    hosted.look()
    ask(hosted)
    (first,) = requests(hosted)
    del hosted.github.world.tickets[first.number]

    ask(hosted)

    (shown,) = requests(hosted)
    assert shown.head_sha == first.head_sha


def test_a_fork_can_not_answer_for_the_registry(hosted: Hosted) -> None:
    hosted.look()
    hosted.github.open_pull_request_from_fork("sam", {"x": "y"}, branch=BRANCH)

    ask(hosted)

    assert [p.from_fork for p in requests(hosted)] == [False]


def test_the_proposed_configuration_is_good_and_says_what_holds_without_it() -> None:
    uncommented = re.sub(r"(?m)^# (?=[a-z ]+:|  )", "", PROPOSED).replace("windows: []", "windows:")

    given, whole = read_config(PROPOSED), read_config(uncommented)

    assert (given.faults, given.record) == ((), BotConfig())
    assert whole.faults == ()
    assert whole.record is not None
    assert whole.record.model_copy(update={"windows": ()}) == BotConfig()
    assert len(whole.record.windows) == 1


def test_the_proposed_configuration_shows_every_key() -> None:
    keys = {key.rpartition(".")[2] for key in describe(BotConfig())}

    assert [key for key in keys if f"{key}:" not in PROPOSED] == []
    assert set(Permissions.model_fields) <= keys
