from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.forge import ForgeBusyError
from daemon.outbox import (
    ACK,
    GONE,
    EditComment,
    NewComment,
    React,
    post_comment,
    post_reaction,
    post_sticky,
)
from daemon.talk.sticky import status_marker
from optimizer.store import Effect
from tests.daemon.talk import Talk, talking
from tests.github.quirks import Fault, FaultKind

UNSURE: tuple[FaultKind, ...] = ("502 after", "hangs up after")
LOST: tuple[FaultKind, ...] = ("502 before", "hangs up before", "503", "html")


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    with talking(tmp_path) as talk:
        yield talk


def hit(talk: Talk, kind: FaultKind, path: str, *, times: int = 1) -> None:
    talk.github.quirks.faults.append(Fault(kind, "POST|PATCH", path, times=times))


@pytest.mark.parametrize("kind", UNSURE + LOST)
def test_a_comment_is_written_once_whatever_becomes_of_the_answer(
    talk: Talk, kind: FaultKind
) -> None:
    hit(talk, kind, "/comments$")
    post_comment(talk.store, talk.request, "hello", key="k", now=talk.clock())

    talk.settle(20)

    assert [body.split("\n")[0] for body in talk.said()] == ["hello"]


@pytest.mark.parametrize("kind", UNSURE)
def test_a_comment_that_is_not_shown_at_once_is_not_written_again(
    talk: Talk, kind: FaultKind
) -> None:
    hit(talk, kind, "/comments$")
    talk.github.quirks.stale_lists = 1
    post_comment(talk.store, talk.request, "hello", key="k", now=talk.clock())

    talk.settle(20)

    assert len(talk.said()) == 1


def test_a_process_that_died_at_it_may_have_written_it(talk: Talk) -> None:
    post_comment(talk.store, talk.request, "hello", key="k", now=talk.clock())
    (effect,) = talk.store.due_effects(now=talk.clock())
    payload = NewComment.from_json(effect.payload)
    talk.store.start_effect(effect.id)
    talk.forge.add_comment(talk.request, f"hello\n\n{payload.marker}")

    talk.restart()
    talk.settle(20)

    assert len(talk.said()) == 1
    found = talk.store.find_effect(effect.key)
    assert found is not None
    assert found.remote is not None
    assert found.error is None


def test_the_same_comment_is_asked_for_once(talk: Talk) -> None:
    assert post_comment(talk.store, talk.request, "hello", key="k", now=talk.clock())
    assert not post_comment(talk.store, talk.request, "hello", key="k", now=talk.clock())


def test_a_marker_that_somebody_else_wrote_hides_nothing(talk: Talk) -> None:
    post_comment(talk.store, talk.request, "hello", key="k", now=talk.clock())
    (effect,) = talk.store.due_effects(now=talk.clock())
    talk.say(NewComment.from_json(effect.payload).marker)

    talk.settle()

    assert len(talk.said()) == 1


def test_a_reaction_to_a_comment_that_is_gone_ends(talk: Talk) -> None:
    comment = talk.say("hello")
    talk.github.delete_comment(comment)
    post_reaction(talk.store, React(comment_id=comment, reaction="+1"), now=talk.clock())

    talk.settle(20)

    found = talk.store.find_effect(f"react/{comment}/+1")
    assert found is not None
    assert (found.remote, found.error) == (GONE, None)


def test_what_the_host_refuses_is_given_up_and_told(talk: Talk) -> None:
    theirs = EditComment(comment_id=talk.say("hello"), body="mine")
    talk.store.post(
        Effect(key="e", kind="edit_comment", payload=theirs.to_json()), now=talk.clock()
    )

    talk.settle(20)

    (failed,) = talk.store.given_up_effects()
    assert failed.key == "e"


def test_an_effect_of_another_version_is_given_up(talk: Talk) -> None:
    talk.store.post(Effect(key="e", kind="dance", payload="{}"), now=talk.clock())

    talk.settle()

    assert [effect.key for effect in talk.store.given_up_effects()] == ["e"]


def test_what_is_urgent_does_not_wait_for_the_rest(talk: Talk) -> None:
    for number in range(5):
        post_comment(talk.store, talk.issue, "hello", key=f"{number}", now=talk.clock())
    comment = talk.say("hello")
    eyes = React(comment_id=comment, reaction="eyes")
    post_reaction(talk.store, eyes, now=talk.clock(), priority=ACK)

    talk.acknowledgements.run()

    assert talk.reactions(comment) == ["eyes"]
    assert talk.said(talk.issue) == []


def test_in_a_pause_only_what_may_be_is_done(talk: Talk) -> None:
    one, other = talk.say("one"), talk.say("other")
    told = React(comment_id=one, reaction="eyes", while_paused=True)
    post_reaction(talk.store, told, now=talk.clock())
    post_reaction(talk.store, React(comment_id=other, reaction="eyes"), now=talk.clock())
    talk.paused = True

    talk.settle()

    assert (talk.reactions(one), talk.reactions(other)) == (["eyes"], [])
    talk.paused = False
    talk.settle()
    assert talk.reactions(other) == ["eyes"]


def test_when_the_host_wants_a_rest_nothing_is_lost(talk: Talk) -> None:
    fault = Fault("429", "POST", "/comments$", retry_after_s=120)
    talk.github.quirks.faults.append(fault)
    post_comment(talk.store, talk.request, "hello", key="k", now=talk.clock())

    with pytest.raises(ForgeBusyError):
        talk.outbox.run()
    talk.clock.now_s += 121
    talk.settle(12)

    assert len(talk.said()) == 1
    assert talk.github.impatient == []


class TestStatusComment:
    def test_there_is_one_however_often_it_changes(self, talk: Talk) -> None:
        for _ in range(5):
            talk.ask("/status")

        assert len(talk.said()) == 1

    def test_changes_are_gathered(self, talk: Talk) -> None:
        post_sticky(talk.store, talk.request, now=talk.clock())
        talk.outbox.run()

        assert post_sticky(talk.store, talk.request, now=talk.clock())
        assert not post_sticky(talk.store, talk.request, now=talk.clock())
        assert talk.store.due_effects(now=talk.clock() + 14) == ()
        assert len(talk.store.due_effects(now=talk.clock() + 15)) == 1

    def test_what_says_the_same_is_not_sent_again(self, talk: Talk) -> None:
        for _ in range(3):
            post_sticky(talk.store, talk.request, now=talk.clock())
            talk.settle()

        writes = [r for r in talk.github.requests if r.method in {"POST", "PATCH"}]
        assert sum("/comments" in request.path for request in writes) == 1

    def test_a_deleted_one_is_written_anew(self, talk: Talk) -> None:
        talk.ask("/status")
        mine = talk.store.recall(f"sticky/{talk.request}")
        assert mine is not None
        talk.github.delete_comment(int(mine))

        talk.ask("/status")

        assert len(talk.said()) == 1

    def test_a_lost_memory_finds_it_again_and_not_the_spoof(self, talk: Talk) -> None:
        spoof = talk.say(f"{status_marker(talk.request)}\nall is well")
        talk.ask("/status")
        talk.store.mark(f"sticky/{talk.request}", "")

        talk.ask("/help")

        assert len(talk.said()) == 1
        assert talk.github.world.comments[spoof].body.endswith("all is well")
        assert "/help" in talk.said()[0]

    def test_a_name_of_a_command_or_a_person_does_nothing_there(self, talk: Talk) -> None:
        talk.ask("/explain @octo|</table><img src=x>")
        talk.ask("/status")

        body = talk.said()[0]

        assert "@octo" not in body.replace("`/explain @octo/</table><img src=x>`", "")
        assert not any(line.startswith("/") for line in body.splitlines())

    def test_in_a_pause_it_is_written_for_those_who_may_ask_then(self, talk: Talk) -> None:
        talk.paused = True
        post_sticky(talk.store, talk.request, now=talk.clock(), while_paused=True)
        post_sticky(talk.store, talk.issue, now=talk.clock())

        talk.settle()

        assert (len(talk.said()), talk.said(talk.issue)) == (1, [])
