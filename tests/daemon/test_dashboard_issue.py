from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.board.dashboard_issue import LABEL, Dashboard
from daemon.forge import Issue
from daemon.host import detect_host
from daemon.pulls.branches import retired_mark
from daemon.talk.wishes import find_wish
from optimizer.spending import Spending
from tests.daemon.hosted import CONFIG, OWNER, Hosted, open_hosted
from tests.daemon.origins import HERE

BOX = f"[ ] <!-- kernelevolve:search gelu_bias {HERE} -->"
BRANCH = f"kernelevolve/gelu_bias/{HERE}"


@pytest.fixture
def hosted(tmp_path: Path) -> Iterator[Hosted]:
    with open_hosted(tmp_path) as hosted:
        hosted.look()
        yield hosted


def show(hosted: Hosted) -> Issue:
    Dashboard(
        host=hosted.host,
        store=hosted.store,
        watch=hosted.watch,
        config=hosted.config,
        gate=hosted.gate,
        machine=detect_host(),
        clock=hosted.clock,
        find_faults=lambda: ("outbox: it broke",),
    ).run()
    return hosted.host.issues(label=LABEL)[-1]


def tick(hosted: Hosted, issue: Issue, box: str = BOX) -> None:
    assert box in issue.body
    body = issue.body.replace(box, box.replace("[ ]", "[x]"))
    hosted.github.edit_issue(issue.number, OWNER, body=body)


def writes(hosted: Hosted) -> list[str]:
    return [
        r.method for r in hosted.github.requests if r.path.startswith("/api") and r.method != "GET"
    ]


def test_there_is_one_and_it_is_kept_up_to_date(hosted: Hosted) -> None:
    first = show(hosted)
    hosted.push({CONFIG: "version: 1\ndry_run: true\n"})
    hosted.look()

    second = show(hosted)

    assert second.number == first.number
    assert "This is a dry run" in second.body
    assert "outbox: it broke" in second.body
    assert len(hosted.host.issues(label=LABEL)) == 1


def test_where_nothing_is_new_nothing_is_written(hosted: Hosted) -> None:
    show(hosted)
    hosted.github.requests.clear()

    show(hosted)

    assert writes(hosted) == []


def test_what_models_took_today_is_told_and_nothing_of_before(hosted: Hosted) -> None:
    store, now = hosted.store, hosted.clock()
    midnight = now - now % 86400
    search = store.open_search(
        "g", operator="scale", hardware="cpu", operator_digest="0" * 64, now=now
    )
    for tokens, at in ((7000, midnight - 1), (300, midnight), (21, now)):
        store.spend(search, Spending(tokens=tokens, money_usd=0.1), source="writer", now=at)

    assert "321 tokens for $0.20 today" in show(hosted).body


def test_a_tick_starts_a_search(hosted: Hosted) -> None:
    tick(hosted, show(hosted))

    after = show(hosted)

    (goal,) = hosted.store.pending_goals()
    assert (goal.operator, goal.hardware) == ("gelu_bias", HERE)
    assert goal.reasons == ("asked for on the dashboard",)
    assert BOX in after.body
    assert f"| `gelu_bias` on `{HERE}` | queued | asked for on the dashboard |" in after.body


def test_killed_before_the_text_is_written_a_tick_is_done_once(hosted: Hosted) -> None:
    issue = show(hosted)
    tick(hosted, issue)
    ticked = hosted.host.issues(label=LABEL)[0].body
    show(hosted)
    (goal,) = hosted.store.pending_goals()
    hosted.store.finish(goal.key, verdict="not_better", result="", now=1.0)
    hosted.github.edit_issue(issue.number, OWNER, body=ticked)

    show(hosted)

    assert hosted.store.pending_goals() == ()


def test_a_later_tick_starts_another_search(hosted: Hosted) -> None:
    tick(hosted, show(hosted))
    after = show(hosted)
    (goal,) = hosted.store.pending_goals()
    hosted.store.finish(goal.key, verdict="not_better", result="", now=1.0)

    tick(hosted, after)
    show(hosted)

    (again,) = hosted.store.pending_goals()
    assert again.key != goal.key


def test_what_waits_already_is_not_queued_again(hosted: Hosted) -> None:
    tick(hosted, show(hosted))
    tick(hosted, show(hosted))

    show(hosted)

    assert len(hosted.store.pending_goals()) == 1


def test_a_tick_for_what_is_not_there_does_nothing(hosted: Hosted) -> None:
    issue = show(hosted)
    body = issue.body.replace(BOX, "[x] <!-- kernelevolve:search nothing h100 -->")
    hosted.github.edit_issue(issue.number, OWNER, body=body)

    assert BOX in show(hosted).body
    assert hosted.store.pending_goals() == ()


def test_a_closed_pull_request_can_be_asked_for_again(hosted: Hosted) -> None:
    hosted.push({"kernels/x": "y"}, BRANCH)
    request = hosted.github.open_pull_request(hosted.github.bot.login, BRANCH)
    hosted.github.close(request, OWNER)
    box = f"[ ] <!-- kernelevolve:reopen gelu_bias {HERE} -->"

    tick(hosted, show(hosted), box)
    after = show(hosted)

    asked = find_wish(hosted.store, "reopen", BRANCH)
    assert asked is not None
    assert asked.by == "the dashboard"
    assert box not in after.body


def test_what_the_bot_closed_itself_was_no_no(hosted: Hosted) -> None:
    hosted.push({"kernels/x": "y"}, BRANCH)
    request = hosted.github.open_pull_request(hosted.github.bot.login, BRANCH)
    hosted.github.close(request, OWNER)
    assert "Closed by people" in show(hosted).body

    hosted.store.mark(retired_mark(request), "obsolete")

    assert "Closed by people" not in show(hosted).body


def test_a_closed_dashboard_is_left_alone(hosted: Hosted) -> None:
    issue = show(hosted)
    tick(hosted, issue)
    hosted.github.close(issue.number, OWNER)
    hosted.github.requests.clear()

    assert show(hosted).state == "closed"
    assert writes(hosted) == []
    assert hosted.store.pending_goals() == ()


def test_an_issue_of_somebody_else_is_no_dashboard(hosted: Hosted) -> None:
    body = f"<!-- kernelevolve-dashboard 0 -->\n\n- {BOX.replace('[ ]', '[x]')}"
    number = hosted.github.open_issue("sam", "dashboard", body, labels=[LABEL])

    shown = show(hosted)

    assert shown.number != number
    assert hosted.store.pending_goals() == ()


def test_where_writing_is_not_enough_there_are_no_boxes(hosted: Hosted) -> None:
    hosted.push({CONFIG: "version: 1\npermissions: {optimize: maintain}\n"})
    hosted.look()

    assert "[ ]" not in show(hosted).body


def test_what_is_held_says_why(hosted: Hosted) -> None:
    tick(hosted, show(hosted))
    show(hosted)
    hosted.push({CONFIG: "version: 1\nlimits: {device_hours_per_day: 0.25}\n"})
    hosted.look()

    body = show(hosted).body

    assert "needs 30 minutes of a device; of today's 15, 15 are left" in body


def test_a_broken_configuration_is_named_above_all(hosted: Hosted) -> None:
    hosted.push({CONFIG: "version: 1\npuase: true\n"})
    hosted.look()

    body = show(hosted).body

    assert "> [!WARNING]\n> The configuration is broken" in body
