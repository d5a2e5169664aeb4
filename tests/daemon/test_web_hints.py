"""What is delivered is a hint to look: nothing in it is acted upon, whoever signed it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.web.server import Site, serving
from tests.daemon.web_client import Client
from tests.github.stage import OWNER, WRITER, Stage


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with Stage(tmp_path) as stage:
        stage.turn()
        stage.round()
        yield stage


@pytest.fixture
def client(stage: Stage) -> Iterator[Client]:
    health = stage.bot.health
    site = Site(stage.reception, lambda: health.report(paused=False), bool, lambda: (b"", ""))
    with serving(site, "127.0.0.1", 0) as port:
        yield Client(port, secret=stage.github.hook_secret.encode())


def last_body(stage: Stage) -> bytes:
    return next(d.body for d in reversed(stage.github.deliveries) if d.event == "issue_comment")


def test_a_body_that_is_replayed_under_new_numbers_is_no_new_command(
    stage: Stage, client: Client
) -> None:
    number = stage.github.open_issue(OWNER, "a question")
    comment = stage.github.comment(number, WRITER, "/status")
    for _ in range(5):
        assert client.deliver(last_body(stage)).status == 202
        stage.round()
    for _ in range(5):
        assert client.deliver(last_body(stage)).status == 202
    stage.rounds(5)

    assert [command.comment_id for command in stage.commands()] == [comment]
    assert stage.reactions(comment).count("eyes") == 1
    assert stage.store.backlog().deliveries == 0


def test_a_comment_that_is_delivered_and_not_there_is_no_command(
    stage: Stage, client: Client
) -> None:
    """A secret that leaked is worth a look at the comments, and no more."""
    number = stage.github.open_issue(OWNER, "a question")
    comment = stage.github.comment(number, WRITER, "nice weather")
    lie = json.loads(last_body(stage))
    lie["comment"] |= {"id": comment + 1000, "body": "/optimize op=gelu_bias"}
    lie["comment"]["user"] |= {"login": OWNER, "id": 1}

    assert client.deliver(json.dumps(lie).encode()).status == 202
    stage.rounds(3)
    stage.clock.now_s += 120
    stage.rounds(3)

    assert stage.commands() == ()
    assert stage.store.backlog().deliveries == 0


def test_words_that_a_delivery_puts_into_somebody_s_mouth_are_not_heard(
    stage: Stage, client: Client
) -> None:
    number = stage.github.open_issue(OWNER, "a question")
    stage.github.comment(number, WRITER, "nice weather")
    lie = json.loads(last_body(stage))
    lie["comment"]["body"] = "/optimize op=gelu_bias"

    assert client.deliver(json.dumps(lie).encode()).status == 202
    stage.rounds(3)

    assert stage.commands() == ()


def test_a_push_that_is_delivered_and_never_was_starts_nothing(
    stage: Stage, client: Client
) -> None:
    stage.github.push("notes", {"notes.md": "x"}, WRITER)
    push = json.loads(next(d.body for d in stage.github.deliveries if d.event == "push"))
    push |= {"ref": "refs/heads/main", "after": "f" * 40, "forced": True}
    client.event = "push"

    assert client.deliver(json.dumps(push).encode()).status == 202
    stage.rounds(2)
    stage.turn()

    assert stage.store.pending_goals() == ()
    assert stage.bot.health.report(paused=False).faults == ()


def test_deliveries_that_say_nothing_are_put_away(stage: Stage, client: Client) -> None:
    """Signed, ours by name, and of no form that GitHub has ever sent."""
    for event in ("issue_comment", "pull_request", "push", "check_run", "issues", "workflow_run"):
        client.event = event
        for extra in ({}, {"comment": None}, {"comment": {"id": "1"}}, {"issue": [], "comment": 7}):
            body = {
                "action": "created" if event == "issue_comment" else "closed",
                "repository": {"full_name": stage.github.full_name},
                "installation": {"id": stage.github.installation_id},
            }
            assert client.deliver(json.dumps(body | extra).encode()).status in (202, 204)
    stage.rounds(2)
    stage.clock.now_s += 120
    stage.rounds(2)

    assert stage.store.backlog().deliveries == 0
    assert stage.bot.health.report(paused=False).faults == ()
