from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.board.config_notice import LABEL, TITLE, ConfigNotice, render
from daemon.forge import Issue
from daemon.pause import pause, resume
from tests.daemon.hosted import CONFIG, OWNER, Hosted, open_hosted


@pytest.fixture
def hosted(tmp_path: Path) -> Iterator[Hosted]:
    with open_hosted(tmp_path) as hosted:
        yield hosted


def tell(hosted: Hosted, config: str) -> None:
    hosted.push({CONFIG: config})
    hosted.look()
    ConfigNotice(hosted.host, hosted.store, hosted.config, hosted.clock).run()


def issues(hosted: Hosted) -> list[Issue]:
    return list(hosted.host.issues(label=LABEL))


def test_a_broken_configuration_is_told_in_one_issue(hosted: Hosted) -> None:
    tell(hosted, "version: 1\n")
    assert issues(hosted) == []

    tell(hosted, "version: 1\npuase: true\n")
    tell(hosted, "version: 1\npuase: true\n\n")

    (issue,) = issues(hosted)
    assert (issue.title, issue.state) == (TITLE, "open")
    assert "The last good configuration stays in force." in issue.body
    assert "unknown key puase; did you mean 'pause'?" in issue.body


def test_while_all_is_paused_nothing_is_told(hosted: Hosted) -> None:
    pause(hosted.store, "an incident")
    tell(hosted, "version: 2\n")
    assert issues(hosted) == []

    resume(hosted.store)
    tell(hosted, "version: 2\n")

    assert len(issues(hosted)) == 1


def test_it_is_used_again_and_closed_once_mended(hosted: Hosted) -> None:
    tell(hosted, "version: 1\npuase: true\n")
    tell(hosted, "version: 1\n")
    assert [issue.state for issue in issues(hosted)] == ["closed"]

    tell(hosted, "version: 2\n")

    (issue,) = issues(hosted)
    assert issue.state == "open"
    assert "version is the number 2" in issue.body


def test_closed_by_a_person_the_same_faults_do_not_open_it_again(hosted: Hosted) -> None:
    tell(hosted, "version: 1\npuase: true\n")
    hosted.github.close(issues(hosted)[0].number, OWNER)

    tell(hosted, "version: 1\npuase: true\n# not now\n")

    assert [issue.state for issue in issues(hosted)] == ["closed"]


def test_an_issue_of_somebody_else_is_left_alone(hosted: Hosted) -> None:
    number = hosted.github.open_issue("sam", TITLE, "mine", labels=[LABEL])

    tell(hosted, "version: 1\npuase: true\n")

    theirs, ours = issues(hosted)
    assert (theirs.number, theirs.body) == (number, "mine")
    assert "puase" in ours.body


def test_an_issue_that_is_not_listed_yet_is_not_opened_twice(hosted: Hosted) -> None:
    tell(hosted, "version: 1\npuase: true\n")
    hidden = hosted.github.world.tickets.pop(issues(hosted)[0].number)

    tell(hosted, "version: 1\nwindow: []\n")

    assert issues(hosted) == []
    hosted.github.world.tickets[hidden.number] = hidden


def test_where_none_was_good_it_says_that_nothing_is_done() -> None:
    text = render(["a:1: b; c"], hold=f"{CONFIG} is broken, and none before it was good")

    assert text.startswith("Nothing is done until it is mended")


def test_faults_neither_ping_nor_break_out_of_the_list() -> None:
    text = render(["x:1: unknown key @everyone `</li>\n/stop; d"], hold=None)

    assert "@everyone" not in text
    assert "</li>" not in text
    assert "\n/stop" not in text
