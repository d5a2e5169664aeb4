from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from daemon.bot import make_forge, make_workspace, open_cycle, open_store
from daemon.forge import PullRequest
from daemon.jobs import JobDiedError, Jobs, Progress, Task
from daemon.pulls.publish import Declined, Opened, Unchanged, Updated
from daemon.report import Report
from daemon.talk.wishes import hold, stop_job, unhold
from daemon.watch import OtherRegistryError
from operator_registry.record import Record
from optimizer.job import Result
from optimizer.store import Store, StoredGoal
from tests.daemon.origins import HERE, SCRIPTED, Origin

BRANCH = f"kernelevolve/gelu_bias/{HERE}"


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    return Origin(tmp_path)


def turn(origin: Origin, is_stopped: Callable[[], bool] = lambda: False) -> Report:
    with open_cycle(origin.settings, jobs=SCRIPTED, is_stopped=is_stopped) as cycle:
        return cycle.run()


def pull_requests(origin: Origin) -> tuple[PullRequest, ...]:
    return make_forge(origin.settings, make_workspace(origin.settings)).pull_requests()


def pending(origin: Origin) -> tuple[StoredGoal, ...]:
    with open_store(origin.settings) as store:
        return store.pending_goals()


def test_a_registry_without_operators_has_nothing_to_do(origin: Origin) -> None:
    assert turn(origin) == Report()


def test_an_operator_that_is_added_becomes_a_pull_request(origin: Origin) -> None:
    turn(origin)
    origin.add_operator("trial 1; better 2.0")

    report = turn(origin)

    assert report.planned == (f"gelu_bias on {HERE}",)
    assert report.errors == ()
    (end,) = report.ends
    assert (end.verdict, end.publication) == ("better", Opened(number=1))
    assert end.ratio is not None
    assert end.ratio.estimate == 2.0
    (shown,) = pull_requests(origin)
    assert shown.head == BRANCH
    assert "2.00x faster" in shown.body
    files = origin.git.files(origin.git.fetch(BRANCH), f"kernels/gelu_bias/{HERE}")
    assert set(files) == {"evidence.json", "operator.json"}


def test_a_finished_goal_is_not_worked_on_again(origin: Origin) -> None:
    origin.add_operator("better 2.0")
    turn(origin)

    assert turn(origin) == Report()


def test_what_is_not_better_makes_no_pull_request(origin: Origin) -> None:
    origin.add_operator("trial 1")

    (end,) = turn(origin).ends

    assert (end.verdict, end.why, end.publication) == ("not_better", "nothing was faster", None)
    assert pull_requests(origin) == ()


def test_a_comment_makes_no_goal(origin: Origin) -> None:
    origin.add_operator("better 2.0")
    turn(origin)

    origin.add_operator("better 3.0")  # the summary alone

    assert turn(origin) == Report()


def test_a_changed_operator_updates_the_pull_request(origin: Origin) -> None:
    origin.add_operator("better 2.0")
    turn(origin)
    change_reference(origin, "better 3.0")

    (end,) = turn(origin).ends

    assert end.publication == Updated(number=1)


def test_a_closed_pull_request_spares_the_search(origin: Origin, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    origin.add_operator(f"note {notes}; better 2.0")
    turn(origin)
    make_forge(origin.settings, make_workspace(origin.settings)).close_pull_request(1)
    ask_again(origin)

    (end,) = turn(origin).ends

    assert end.publication == Declined(number=1)
    assert len(notes.read_text().splitlines()) == 1


def test_after_a_merge_a_new_state_folder_finds_the_kernel_there(
    origin: Origin, tmp_path: Path
) -> None:
    origin.add_operator("better 2.0")
    turn(origin)
    origin.merge(BRANCH)
    fresh = origin.settings.model_copy(update={"state": tmp_path / "fresh"})

    with open_cycle(fresh, jobs=SCRIPTED, is_stopped=lambda: False) as cycle:
        assert cycle.run() == Report()


def test_hardware_that_is_elsewhere_stays_in_the_queue(tmp_path: Path) -> None:
    origin = Origin(tmp_path, hardware=("h200",))
    origin.add_operator("better 2.0")

    report = turn(origin)

    (held,) = report.held
    assert "needs a GPU h200" in held.why
    assert [goal.hardware for goal in pending(origin)] == ["h200"]
    assert report.errors == ()


def test_a_broken_registry_leaves_the_last_good_one_in_force(origin: Origin) -> None:
    origin.add_operator("better 2.0")
    turn(origin)
    good = origin.first_files()["registry.yaml"].decode()
    replace_config(origin, "schema: 1\nhardwear: [x]\n")

    for _ in range(2):
        (error,) = turn(origin).errors
        assert "registry.yaml:2" in error

    replace_config(origin, good)
    assert turn(origin) == Report()


def test_a_job_that_dies_is_tried_three_times_in_all(origin: Origin) -> None:
    origin.add_operator("crash")

    reports = [turn(origin) for _ in range(4)]

    assert ["out of memory" in "".join(r.errors) for r in reports] == [True, True, True, False]
    assert reports[2].ends[0].verdict == "failed"
    assert pending(origin) == ()


def test_one_broken_goal_does_not_keep_the_others(origin: Origin) -> None:
    origin.add_operator("crash")
    origin.add_operator("better 2.0", name="softmax")

    report = turn(origin)

    assert [end.operator for end in report.ends] == ["softmax"]
    assert len(report.errors) == 1


def test_told_to_stop_it_hands_the_goal_back(origin: Origin, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    origin.add_operator(f"note {notes}; sleep 60; better 2.0")

    report = turn(origin, is_stopped=notes.exists)

    assert report.stopped
    (goal,) = pending(origin)
    assert goal.holder is None


@dataclass
class EndsTooLate:
    """Does jobs whose ends come when another process has the role already."""

    lost: bool = False

    def run(
        self,
        task: Task,
        request: Record,
        *,
        on_progress: Callable[[Progress], None] = lambda _: None,
        keep_going: Callable[[], bool] = lambda: True,
    ) -> Result | None:
        result = SCRIPTED.run(task, request, on_progress=on_progress, keep_going=keep_going)
        self.lost = True
        return result


def test_what_ends_once_the_role_is_lost_is_not_published_here(origin: Origin) -> None:
    origin.add_operator("better 2.0")
    late = EndsTooLate()
    with open_cycle(origin.settings, jobs=late, is_stopped=lambda: late.lost) as cycle:
        report = cycle.run()

    assert (report.ends, pull_requests(origin)) == ((), ())
    assert [end.verdict for end in turn(origin).ends] == ["better"]


def test_a_search_goes_on_under_the_same_key(origin: Origin, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    origin.add_operator(f"note {notes}; sleep 1; better 2.0")
    turn(origin, is_stopped=notes.exists)

    (end,) = turn(origin).ends

    assert end.publication == Opened(number=1)
    assert len(set(notes.read_text().splitlines())) == 1


def test_a_goal_whose_holder_is_dead_is_taken_again(origin: Origin) -> None:
    origin.add_operator("better 2.0")
    turn(origin, is_stopped=lambda: True)
    with open_store(origin.settings) as store:
        (goal,) = store.pending_goals()
        assert store.claim(goal.key, "killed", ttl_s=1e12, now=0)

    assert [end.verdict for end in turn(origin).ends] == ["better"]


def test_a_later_revision_takes_the_place_of_an_earlier_goal(origin: Origin) -> None:
    origin.add_operator("better 2.0")
    turn(origin, is_stopped=lambda: True)
    change_reference(origin, "better 3.0")

    report = turn(origin)

    assert [end.verdict for end in report.ends] == ["superseded", "better"]
    assert len(pull_requests(origin)) == 1


def test_an_operator_that_is_removed_is_no_longer_searched_for(origin: Origin) -> None:
    origin.add_operator("better 2.0")
    turn(origin, is_stopped=lambda: True)
    origin.commit("operators", {})

    assert [end.verdict for end in turn(origin).ends] == ["obsolete"]


def test_an_origin_that_is_away_is_an_error_and_costs_nothing(origin: Origin) -> None:
    origin.add_operator("better 2.0")
    turn(origin, is_stopped=lambda: True)
    away = origin.path.rename(origin.path.with_suffix(".away"))

    (error,) = turn(origin).errors
    assert "can't be reached" in error

    away.rename(origin.path)
    assert [end.verdict for end in turn(origin).ends] == ["better"]


def test_a_rewritten_history_is_read_afresh(origin: Origin) -> None:
    origin.add_operator("better 2.0")
    turn(origin)
    origin.run_git("update-ref", "refs/heads/main", f"{origin.head}~1")
    origin.add_operator("better 2.0", name="softmax")

    report = turn(origin)

    assert report.planned == (f"softmax on {HERE}",)


def test_the_registry_may_lie_in_a_folder_of_a_repository(origin: Origin) -> None:
    origin.add_operator("better 2.0")
    head = origin.git.fetch("main")
    files = {name: text.decode() for name, text in origin.git.files(head).items()}
    origin.commit("", {f"deep/registry/{name}": text for name, text in files.items()})
    settings = origin.settings.model_copy(update={"folder": "deep/registry"})

    with open_cycle(settings, jobs=SCRIPTED, is_stopped=lambda: False) as cycle:
        report = cycle.run()

    assert [end.publication for end in report.ends] == [Opened(number=1)]
    files_of_kernel = origin.git.files(origin.git.fetch(BRANCH), f"kernels/gelu_bias/{HERE}")
    assert "operator.json" in files_of_kernel


def test_the_published_kernel_is_the_one_to_beat(origin: Origin, tmp_path: Path) -> None:
    origin.add_operator("better 2.0")
    turn(origin)
    origin.merge(BRANCH)
    change_reference(origin, f"incumbent {tmp_path / 'seen'}; better 3.0")

    turn(origin)

    assert (tmp_path / "seen").read_text().split() == ["evidence.json", "operator.json"]


def test_what_was_verified_stays_told(origin: Origin) -> None:
    origin.add_operator("better 2.0")
    turn(origin)
    origin.merge(BRANCH)
    folder = f"kernels/gelu_bias/{HERE}"
    merged = origin.git.files(origin.git.fetch("main"), folder)
    texts = {name: text.decode() for name, text in merged.items()}
    origin.commit(folder, {**texts, "verifications.jsonl": "{}\n"})
    change_reference(origin, "better 3.0")

    turn(origin)

    files = origin.git.files(origin.git.fetch(BRANCH), folder)
    assert files["verifications.jsonl"] == b"{}\n"


def test_nothing_but_the_stores_and_clone_stays_behind(origin: Origin) -> None:
    origin.add_operator("better 2.0")

    turn(origin)

    assert list((origin.settings.state / "kernels").iterdir()) == []


def test_a_state_folder_belongs_to_one_registry(tmp_path: Path) -> None:
    one, other = Origin(tmp_path / "one"), Origin(tmp_path / "other")
    turn(one)
    settings = other.settings.model_copy(update={"state": one.settings.state})

    with (
        open_cycle(settings, jobs=SCRIPTED, is_stopped=lambda: False) as cycle,
        pytest.raises(OtherRegistryError, match="belongs to the registry"),
    ):
        cycle.run()


def test_what_was_published_before_a_kill_is_found_again(origin: Origin) -> None:
    origin.add_operator("better 2.0")
    turn(origin, is_stopped=lambda: True)
    with (
        open_cycle(origin.settings, jobs=SCRIPTED, is_stopped=lambda: False) as cycle,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(cycle.store, "finish", die)  # the last step of all
        with pytest.raises(KeyboardInterrupt):
            cycle.run()

    (end,) = turn(origin).ends

    assert end.publication == Unchanged(number=1)


def test_a_search_that_a_person_stops_ends_and_proposes_nothing(
    origin: Origin, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    origin.add_operator(f"note {notes}; sleep 60; better 2.0")

    def stop_once_it_runs() -> bool:
        for goal in cycle.store.pending_goals() if notes.exists() else ():
            stop_job(cycle.store, goal.key, "someone")
        return False

    with open_cycle(origin.settings, jobs=SCRIPTED, is_stopped=stop_once_it_runs) as cycle:
        report = cycle.run()

    assert [(end.verdict, end.why) for end in report.ends] == [("stopped", "someone said stop")]
    assert not report.stopped
    assert pending(origin) == ()
    assert pull_requests(origin) == ()


def test_a_job_that_dies_of_being_stopped_is_no_failed_one(origin: Origin) -> None:
    origin.add_operator("crash")
    with open_cycle(origin.settings, jobs=SCRIPTED, is_stopped=lambda: False) as cycle:
        cycle.jobs = StoppedJobs(store=cycle.store)
        report = cycle.run()

    assert [end.verdict for end in report.ends] == ["stopped"]
    assert report.errors == ()


def test_a_goal_whose_pull_request_is_held_waits(origin: Origin) -> None:
    origin.add_operator("better 2.0")
    with open_store(origin.settings) as store:
        hold(store, BRANCH, "someone")

    report = turn(origin)
    with open_store(origin.settings) as store:
        unhold(store, BRANCH)

    assert [held.why for held in report.held] == ["people hold its pull request"]
    assert [end.verdict for end in turn(origin).ends] == ["better"]


@dataclass(frozen=True)
class StoppedJobs(Jobs):
    """Jobs that die when they are told to stop."""

    store: Store | None = None

    def run(self, *_: object, **__: object) -> None:
        assert self.store is not None
        (goal,) = self.store.pending_goals()
        stop_job(self.store, goal.key, "someone")
        raise JobDiedError(-9, "")


def die(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def change_reference(origin: Origin, script: str) -> None:
    origin.add_operator(script)
    files = origin.git.files(origin.git.fetch("main"), "operators/gelu_bias")
    texts = {name: content.decode() for name, content in files.items()}
    texts["reference.py"] += "\n\ndef another() -> None:\n    pass\n"
    origin.commit("operators/gelu_bias", texts)


def ask_again(origin: Origin) -> None:
    """Make a goal of everything once more: the hardware's environment moves."""
    head = origin.git.fetch("main")
    files = origin.git.files(head, "hardware")
    texts = {name: content.decode() for name, content in files.items()}
    texts[f"{HERE}.yaml"] += "environment: {torch: '9'}\n"
    origin.commit("hardware", texts)


def replace_config(origin: Origin, text: str) -> None:
    head = origin.git.fetch("main")
    files = origin.git.files(head, under=["hardware", "operators", "registry.yaml"])
    texts = {name: content.decode() for name, content in files.items()}
    origin.commit("", {**texts, "registry.yaml": text})
