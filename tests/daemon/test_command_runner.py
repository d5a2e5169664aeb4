from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.config.file import BotConfig, Limits
from daemon.planner import Work
from daemon.report import End
from daemon.talk.asking import job_name
from daemon.talk.wishes import answer_wish, find_stop, find_wish, is_held
from optimizer.store import QueuedGoal, StoredGoal
from tests.daemon.talk import (
    BRANCH,
    HARDWARE,
    OPERATOR,
    READER,
    STRANGER,
    WRITER,
    Talk,
    talking,
)
from tests.github.quirks import Fault


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    with talking(tmp_path) as talk:
        yield talk


def end_goal(talk: Talk, verdict: str = "not_better", why: str = "nothing was faster") -> None:
    (goal,) = talk.goals()
    end = End.of(goal, verdict, why)  # type: ignore[arg-type] # one of its verdicts each
    talk.store.finish(goal.key, verdict=verdict, result=end.to_json(), now=talk.clock())
    talk.settle()


def claim(talk: Talk) -> StoredGoal:
    (goal,) = talk.goals()
    talk.store.claim(goal.key, "worker", ttl_s=3600, now=talk.clock())
    return goal


def die(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


class TestOptimize:
    def test_it_queues_a_search_and_tells_how_it_went(self, talk: Talk) -> None:
        command = talk.ask("/optimize budget=2m")
        (goal,) = talk.goals()
        claim(talk)
        talk.settle()
        (running,) = talk.store.commands()
        end_goal(talk)

        assert (command.state, command.goal_key) == ("running", goal.key)
        assert (goal.operator, goal.hardware) == (OPERATOR, HARDWARE)
        assert Work.from_json(goal.payload).budget_s == 120
        assert running.told.endswith("runs")
        (ended,) = talk.store.commands()
        assert (ended.state, ended.told) == ("done", "not better (nothing was faster)")
        assert talk.reactions(command.comment_id) == ["eyes", "rocket", "+1"]

    def test_in_an_issue_it_names_what_it_is_about(self, talk: Talk) -> None:
        assert "which operator?" in talk.ask("/optimize", on=talk.issue).told
        assert "which hardware?" in talk.ask("/optimize op=gelu_bias", on=talk.issue).told

        told = talk.ask(f"/optimize op=softmax hw={HARDWARE}", on=talk.issue)

        assert told.state == "running"
        assert [goal.operator for goal in talk.goals()] == ["softmax"]

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("/optimize op=gelu_bia", "did you mean 'gelu_bias'?"),
            ("/optimize hw=h2000", "the registry searches no h2000"),
            ("/optimize budget=5h", "need the permission maintain"),
        ],
    )
    def test_what_can_not_be_is_refused_with_the_reason(
        self, talk: Talk, text: str, told: str
    ) -> None:
        command = talk.ask(text)

        assert command.state == "refused"
        assert told in command.told
        assert talk.goals() == ()
        assert talk.reactions(command.comment_id) == ["eyes", "-1"]

    def test_who_maintains_may_spend_more(self, talk: Talk) -> None:
        assert talk.ask("/optimize budget=5h", by="mia").state == "running"

    def test_the_same_search_is_queued_once(self, talk: Talk) -> None:
        talk.ask("/optimize budget=2m")
        talk.ask("/optimize budget=2m")

        (goal,) = talk.goals()
        end_goal(talk)

        assert [c.goal_key for c in talk.store.commands()] == [goal.key] * 2
        assert {c.state for c in talk.store.commands()} == {"done"}

    def test_a_goal_of_a_newer_version_keeps_its_place(self, talk: Talk) -> None:
        talk.queue()
        newer = talk.goals()[0].model_copy(update={"key": "newer", "operator_digest": "0" * 64})
        end_goal(talk)
        queued = {name: getattr(newer, name) for name in QueuedGoal.model_fields}
        talk.store.enqueue(QueuedGoal(**queued), now=talk.clock())

        assert "another version" in talk.ask("/optimize").told
        assert [goal.key for goal in talk.goals()] == ["newer"]

    def test_what_is_being_stopped_is_not_waited_for(self, talk: Talk) -> None:
        stopped = talk.ask("/optimize").goal_key
        claim(talk)
        talk.ask("/stop")

        again = talk.ask("/optimize")

        assert again.state == "running"
        assert again.goal_key != stopped

    def test_a_held_pull_request_is_not_searched_for(self, talk: Talk) -> None:
        talk.ask("/hold")

        assert "unhold first" in talk.ask("/optimize").told

    def test_a_kill_between_the_queue_and_the_note_queues_nothing_twice(self, talk: Talk) -> None:
        with pytest.MonkeyPatch.context() as patch:
            real = talk.store.change_command
            calls: list[object] = []

            def change(*arguments: object, **named: object) -> None:
                calls.append(arguments)
                if len(calls) == 2:
                    raise KeyboardInterrupt
                real(*arguments, **named)  # type: ignore[arg-type] # as given

            patch.setattr(talk.store, "change_command", change)
            talk.say("/optimize")
            with pytest.raises(KeyboardInterrupt):
                talk.settle()
        (before,) = talk.goals()
        talk.restart()

        talk.settle()

        (after,) = talk.goals()
        assert after.key == before.key
        assert [c.state for c in talk.store.commands()] == ["running"]


class TestRetry:
    def test_what_failed_last_is_tried_again_three_times(self, talk: Talk) -> None:
        first = talk.queue()
        end_goal(talk, "failed", "out of memory")

        for _ in range(3):
            assert talk.ask("/retry").state == "running"
            end_goal(talk, "failed", "out of memory")

        assert "3 times more already" in talk.ask("/retry").told
        keys = {c.goal_key for c in talk.store.commands() if c.goal_key}
        assert keys == {f"{first}:retry:{n}" for n in (1, 2, 3)}

    def test_what_did_not_fail_is_not_tried_again(self, talk: Talk) -> None:
        assert "nothing failed" in talk.ask("/retry").told
        talk.queue()
        end_goal(talk)
        assert "nothing failed" in talk.ask("/retry").told

    def test_an_operator_that_changed_since_is_not_searched_as_it_was(self, talk: Talk) -> None:
        talk.queue()
        (goal,) = talk.goals()
        old = goal.model_copy(update={"key": "old", "operator_digest": "0" * 64})
        end_goal(talk)
        queued = {name: getattr(old, name) for name in QueuedGoal.model_fields}
        talk.store.enqueue(QueuedGoal(**queued), now=talk.clock())
        end_goal(talk, "failed", "out of memory")

        assert "has changed since" in talk.ask("/retry").told

    def test_a_failure_is_told_to_who_asked(self, talk: Talk) -> None:
        talk.ask("/optimize")
        end_goal(talk, "failed", "no <b>graph</b> @octo")

        (status, told) = talk.said()

        assert told.startswith(f"@{WRITER}: `/optimize`: failed")
        assert "<b>" not in told + status
        assert "@octo" not in told + status


class TestStop:
    def test_what_waits_ends_at_once(self, talk: Talk) -> None:
        talk.ask("/optimize")

        stop = talk.ask("/stop")

        assert (stop.state, talk.goals()) == ("done", ())
        assert [c.told for c in talk.store.commands() if c.goal_key] == [
            f"stopped ({WRITER} said stop)"
        ]

    def test_it_is_done_when_what_ran_has_ended(self, talk: Talk) -> None:
        talk.queue()
        goal = claim(talk)

        assert talk.ask("/stop").state == "running"
        assert find_stop(talk.store, goal.key) == WRITER
        end_goal(talk, "stopped", "x")

        (stop,) = talk.store.commands()
        assert (stop.state, stop.told) == ("done", f"job {job_name(goal.key)} is stopped")

    def test_a_job_can_be_named_from_anywhere(self, talk: Talk) -> None:
        keys = [talk.queue(), talk.queue("softmax")]

        stop = talk.ask(f"/stop {keys[1][:8]}", on=talk.issue)

        assert stop.state == "done"
        assert [goal.key for goal in talk.goals()] == keys[:1]
        assert "there is no job" in talk.ask("/stop 00000000", on=talk.issue).told

    def test_after_a_kill_in_the_middle_of_it_the_rest_is_stopped(self, talk: Talk) -> None:
        keys = [talk.queue(), talk.queue(revision="e" * 40)]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(talk.store, "change_command", die)
            talk.say("/stop")
            with pytest.raises(KeyboardInterrupt):
                talk.settle()
        talk.restart()

        talk.settle()

        (stop,) = talk.store.commands()
        assert (stop.state, talk.goals()) == ("done", ())
        assert all(job_name(key) in stop.told for key in keys)

    def test_other_jobs_go_on(self, talk: Talk) -> None:
        talk.queue("softmax")

        assert talk.ask("/stop").told == "nothing waits or runs here"
        assert len(talk.goals()) == 1

    def test_who_asked_for_it_may_stop_it_without_any_permission(self, talk: Talk) -> None:
        talk.ask("/optimize")
        talk.github.set_role(WRITER, "none")
        talk.clock.now_s += 100

        assert talk.ask("/stop").state == "done"

    def test_strangers_stop_nothing(self, talk: Talk) -> None:
        talk.ask("/optimize")

        assert talk.ask("/stop", by=READER).state == "refused"
        assert len(talk.goals()) == 1

    def test_it_is_heard_beyond_every_rate_and_in_a_pause(self, talk: Talk) -> None:
        talk.config = BotConfig(limits=Limits(commands_per_hour=1, device_hours_per_day=0))
        talk.ask("/optimize")
        assert talk.ask("/status").state == "refused"
        talk.paused = True

        stop = talk.ask("/stop")

        assert stop.state == "done"
        assert talk.reactions(stop.comment_id) == ["eyes", "+1"]

    def test_a_verification_is_stopped_too(self, talk: Talk) -> None:
        verify = talk.ask("/verify")

        assert talk.ask("/stop").told == "the verification is stopped"
        assert find_stop(talk.store, f"verify/{BRANCH}") == WRITER
        (ended,) = [c for c in talk.store.commands() if c.id == verify.id]
        assert (ended.state, ended.told) == ("failed", f"{WRITER} said stop")


class TestBranch:
    @pytest.mark.parametrize("text", ["/verify budget=2m", "/benchmark budget=2m"])
    def test_a_verification_is_asked_for_at_the_head_that_was_seen(
        self, talk: Talk, text: str
    ) -> None:
        command = talk.ask(text)

        asked = find_wish(talk.store, "verify", BRANCH)

        assert command.state == "running"
        assert asked is not None
        assert (asked.sha, asked.budget_s) == (talk.github.git.heads()[BRANCH], 120)
        answer_wish(talk.store, "verify", BRANCH, "reproduced, 2.00x", well=True)
        talk.settle()
        (ended,) = talk.store.commands()
        assert (ended.state, ended.told) == ("done", "reproduced, 2.00x")

    def test_a_head_that_moved_is_not_run(self, talk: Talk) -> None:
        talk.say("/verify")
        talk.intake.run()
        talk.github.push(BRANCH, {"kernels/y": "evil"}, STRANGER, base=BRANCH)

        talk.settle()

        (command,) = talk.store.commands()
        assert (command.state, command.told[:18]) == ("refused", "the head has moved")
        assert find_wish(talk.store, "verify", BRANCH) is None

    def test_the_head_may_be_named(self, talk: Talk) -> None:
        head = talk.github.git.heads()[BRANCH]

        assert talk.ask(f"/verify sha={head[:9]}").state == "running"
        assert talk.ask("/verify sha=0000000").state == "refused"

    def test_nothing_of_a_fork_is_run(self, talk: Talk) -> None:
        number = talk.github.open_pull_request_from_fork(STRANGER, {"kernels/x": "evil"})

        assert "another repository" in talk.ask("/verify", on=number).told
        assert "no pull request of the bot's" in talk.ask("/rebase", on=number).told

    def test_a_branch_that_is_named_like_ours_is_not_ours(self, talk: Talk) -> None:
        talk.github.push("kernelevolve/softmax/h200", {"kernels/x": "evil"}, WRITER)
        number = talk.github.open_pull_request(WRITER, "kernelevolve/softmax/h200")

        assert "no pull request of the bot's" in talk.ask("/verify", on=number).told

    def test_holding_and_going_on(self, talk: Talk) -> None:
        assert talk.ask("/hold").state == "done"
        assert is_held(talk.store, BRANCH)
        assert "on hold" in talk.said()[0]
        assert "unhold first" in talk.ask("/rebase").told
        assert talk.ask("/unhold").told == "it goes on"
        assert not is_held(talk.store, BRANCH)

    def test_a_rebase_is_wished_for_and_its_end_told(self, talk: Talk) -> None:
        assert talk.ask("/rebase").state == "running"
        answer_wish(talk.store, "rebase", BRANCH, "it conflicts", well=False)
        talk.settle()

        (command,) = talk.store.commands()
        assert (command.state, command.told) == ("failed", "it conflicts")

    def test_only_what_is_closed_is_opened_again(self, talk: Talk) -> None:
        assert talk.ask("/reopen").told == "the pull request is open"
        talk.github.close(talk.request, "octo")
        assert talk.ask("/reopen").state == "running"
        assert find_wish(talk.store, "reopen", BRANCH) is not None

    def test_a_wish_that_nobody_grants_ends_as_failed(self, talk: Talk) -> None:
        talk.ask("/rebase")
        talk.clock.now_s += 3 * 3600
        talk.settle()

        assert [c.state for c in talk.store.commands()] == ["failed"]


class TestWhoMay:
    @pytest.mark.parametrize(
        "text", ["/optimize", "/retry", "/benchmark", "/verify", "/rebase", "/hold", "/reopen"]
    )
    def test_readers_change_nothing(self, talk: Talk, text: str) -> None:
        command = talk.ask(text, by=READER)

        assert (command.state, command.told[-5:]) == ("refused", "write")
        assert talk.reactions(command.comment_id) == ["eyes", "-1"]

    def test_readers_may_ask(self, talk: Talk) -> None:
        assert talk.ask("/status", by=READER).state == "done"
        assert talk.ask("/explain queue", by=READER).state == "done"

    def test_what_the_code_host_says_of_an_author_counts_for_nothing(self, talk: Talk) -> None:
        talk.github.quirks.associations_mislead = True

        assert talk.ask("/hold").state == "done"

    def test_a_no_is_explained_once_a_day_and_makes_no_status(self, talk: Talk) -> None:
        for _ in range(4):
            talk.ask("/hold", by=STRANGER)

        (told,) = talk.said()
        assert told.startswith(f"@{STRANGER}: `/hold`: hold is for those with the permission write")

    def test_a_permission_that_was_taken_away_counts_when_it_is_done(self, talk: Talk) -> None:
        talk.say("/hold")
        talk.intake.run()
        talk.github.set_role(WRITER, "read")

        talk.settle()

        assert [c.state for c in talk.store.commands()] == ["refused"]

    def test_while_nobody_knows_nobody_is_obeyed(self, talk: Talk) -> None:
        talk.github.quirks.faults.append(Fault("503", "GET", "/permission$", times=10_000))

        assert talk.ask("/hold").state == "received"
        talk.clock.now_s += 700
        talk.settle()

        assert [c.state for c in talk.store.commands()] == ["failed"]
        assert not is_held(talk.store, BRANCH)


class TestAnswers:
    def test_fifty_commands_make_one_status_and_one_answer_at_most(self, talk: Talk) -> None:
        talk.config = BotConfig(limits=Limits(commands_per_hour=10))
        for number in range(50):
            talk.say("/status" if number % 2 else "/statuss")

        talk.settle(60)

        said = talk.said()
        assert len([body for body in said if body.startswith("<!-- kernelevolve status")]) == 1
        assert len(said) <= 3
        assert {c.state for c in talk.store.commands()} == {"done", "refused", "misunderstood"}

    def test_what_is_nearly_a_command_is_answered_with_what_was_meant(self, talk: Talk) -> None:
        command = talk.ask("/optimise")

        assert command.state == "misunderstood"
        assert talk.reactions(command.comment_id) == ["confused"]
        assert "did you mean optimize?" in talk.said()[0]

    def test_a_sixth_command_of_a_comment_is_not_done(self, talk: Talk) -> None:
        talk.say("\n".join(["/status"] * 5 + ["/hold", "/hold"]))
        talk.settle()

        states = [c.state for c in reversed(talk.store.commands())]
        assert states == ["done"] * 5 + ["misunderstood"]
        assert not is_held(talk.store, BRANCH)

    def test_a_deleted_comment_is_not_obeyed(self, talk: Talk) -> None:
        comment = talk.say("/hold")
        talk.intake.run()
        talk.github.delete_comment(comment)

        talk.settle(20)

        assert [c.state for c in talk.store.commands()] == ["refused"]
        assert not is_held(talk.store, BRANCH)

    def test_in_a_pause_what_would_change_something_waits(self, talk: Talk) -> None:
        talk.paused = True
        assert talk.ask("/status").state == "done"
        assert talk.ask("/hold").state == "received"
        talk.paused = False
        talk.settle()

        assert is_held(talk.store, BRANCH)

    def test_the_queue_is_explained_and_no_answer_is_given_twice(self, talk: Talk) -> None:
        key = talk.queue()
        talk.ask("/explain queue")
        again = talk.ask("/explain queue")

        (_, told) = talk.said()
        assert again.told == "explained in a comment above, still true"
        assert f"`{key[:8]}` {OPERATOR}" in told.replace("&#95;", "_")
        assert "number 1 in the queue" in told
