import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from daemon.config.file import BotConfig, Limits
from daemon.forge import ForgeUnavailableError
from optimizer.store import Delivery
from tests.daemon.talk import BRANCH, STRANGER, WRITER, Talk, talking
from tests.github.quirks import Fault


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    with talking(tmp_path) as talk:
        yield talk


def texts(talk: Talk) -> list[str]:
    return [command.text for command in reversed(talk.store.commands())]


def deliver(talk: Talk, comment_id: int, *, name: str = "d1", event: str = "issue_comment") -> None:
    body = json.dumps({"action": "created", "comment": {"id": comment_id, "body": "/stop"}})
    delivery = Delivery(id=name, event=event, body=body, received_at=talk.clock())
    talk.store.receive(delivery)


def test_a_comment_is_taken_once_however_often_it_is_seen(talk: Talk) -> None:
    talk.say("/status\nand\n/help")

    talk.settle()
    talk.restart()
    talk.settle()

    assert texts(talk) == ["/status", "/help"]


def test_the_head_is_the_one_that_was_there_when_it_came(talk: Talk) -> None:
    head = talk.github.git.heads()[BRANCH]
    talk.say("/benchmark")
    talk.intake.run()
    talk.github.push(BRANCH, {"kernels/y": "y"}, STRANGER, base=BRANCH)
    talk.restart()
    talk.intake.run()

    assert [command.head_sha for command in talk.store.commands()] == [head]


def test_an_issue_has_no_head(talk: Talk) -> None:
    talk.say("/status", on=talk.issue)
    talk.intake.run()

    assert [command.head_sha for command in talk.store.commands()] == [None]


def test_the_bot_and_other_bots_are_not_heard(talk: Talk) -> None:
    talk.forge.add_comment(talk.request, "/stop")
    talk.github.world.user("robot[bot]").kind = "Bot"
    talk.say("/stop", by="robot[bot]")

    talk.settle()

    assert texts(talk) == []


def test_an_edited_comment_is_not_heard(talk: Talk) -> None:
    comment = talk.say("hello")
    talk.settle()
    talk.github.edit_comment(comment, "/stop", WRITER)

    talk.settle()

    assert texts(talk) == []


def test_a_command_that_is_edited_later_stays_what_it_was(talk: Talk) -> None:
    comment = talk.say("/hold")
    talk.intake.run()
    talk.clock.now_s += 1
    talk.github.edit_comment(comment, "/stop", WRITER)

    talk.settle()

    assert texts(talk) == ["/hold"]


def test_what_was_said_before_there_was_a_bot_is_not_for_it(talk: Talk) -> None:
    talk.say("/stop")
    talk.clock.now_s += 3600
    at = datetime.fromtimestamp(talk.clock(), UTC).isoformat()
    talk.store.mark("watermark/comments", at)  # as at the first look

    talk.settle()

    assert texts(talk) == []


def test_a_clock_that_went_ahead_and_back_makes_nobody_deaf(talk: Talk) -> None:
    talk.clock.now_s += 24 * 3600
    talk.say("hello")
    talk.settle()
    talk.clock.now_s -= 24 * 3600
    talk.say("/status")

    talk.settle()

    assert texts(talk) == ["/status"]


def test_what_came_while_the_bot_was_away_is_heard(talk: Talk) -> None:
    talk.clock.now_s += 3600
    talk.say("/status")
    talk.clock.now_s += 7 * 24 * 3600
    talk.restart()

    talk.settle()

    assert texts(talk) == ["/status"]


def test_lists_in_pages_are_read_to_their_end(talk: Talk) -> None:
    talk.github.quirks.most_per_page = 2
    for _ in range(7):
        talk.say("/status")

    talk.settle()

    assert len(texts(talk)) == 7


def test_a_kill_between_receipt_and_acknowledgement_costs_nothing(talk: Talk) -> None:
    comment = talk.say("/status")
    talk.github.quirks.faults.append(Fault("503", "POST", "/reactions$", times=1))
    talk.intake.run()
    talk.restart()

    talk.settle(20)

    assert set(talk.reactions(comment)) == {"eyes", "+1"}


def test_while_the_host_is_away_nothing_is_lost(talk: Talk) -> None:
    talk.say("/benchmark")
    talk.github.quirks.faults.append(Fault("503", "GET", "/pulls/", times=9))
    with pytest.raises(ForgeUnavailableError):
        talk.intake.run()
    talk.github.quirks.faults.clear()

    talk.settle()

    assert texts(talk) == ["/benchmark"]


def test_stop_does_not_wait_for_what_others_want(talk: Talk) -> None:
    talk.say("/benchmark")
    talk.say("/stop")
    talk.github.quirks.faults.append(Fault("503", "GET", "/pulls/", times=9))

    with pytest.raises(ForgeUnavailableError):
        talk.intake.run()

    assert texts(talk) == ["/stop"]


class TestDeliveries:
    def test_one_is_handled_once_its_comment_is_read(self, talk: Talk) -> None:
        deliver(talk, talk.say("/status"))

        talk.intake.run()

        assert talk.store.unhandled_deliveries() == ()
        assert texts(talk) == ["/status"]

    def test_what_a_payload_claims_is_not_believed(self, talk: Talk) -> None:
        deliver(talk, talk.say("hello"))

        talk.settle()

        assert texts(talk) == []

    def test_one_waits_for_a_list_that_lags_behind(self, talk: Talk) -> None:
        comment = talk.say("/status")
        talk.github.quirks.stale_lists = 1
        talk.github.world.comments[comment].created_at = talk.clock()
        deliver(talk, comment)
        deliver(talk, 999_999, name="d2")

        talk.settle()

        assert texts(talk) == ["/status"]
        assert [delivery.id for delivery in talk.store.unhandled_deliveries()] == ["d2"]
        talk.clock.now_s += 60
        talk.intake.run()
        assert talk.store.unhandled_deliveries() == ()

    @pytest.mark.parametrize("body", ["{}", "null", "[1]", '{"comment": 3}'])
    def test_one_that_makes_no_sense_is_put_aside(self, talk: Talk, body: str) -> None:
        delivery = Delivery(id="d", event="issue_comment", body=body, received_at=talk.clock())
        talk.store.receive(delivery)

        talk.intake.run()

        assert talk.store.unhandled_deliveries() == ()

    def test_of_other_events_nothing_is_to_be_taken(self, talk: Talk) -> None:
        deliver(talk, 1, event="push")

        talk.intake.run()

        assert talk.store.unhandled_deliveries() == ()


def test_only_what_is_accepted_is_acknowledged(talk: Talk) -> None:
    talk.config = BotConfig(limits=Limits(commands_per_hour=1))
    accepted, beyond, strange = talk.say("/status"), talk.say("/status"), talk.say("/statuss")

    talk.settle()

    assert talk.reactions(accepted)[0] == "eyes"
    assert talk.reactions(beyond) == []
    assert "eyes" not in talk.reactions(strange)
