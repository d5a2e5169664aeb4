"""The configuration is heeded by whole turns."""

import threading
import time
from pathlib import Path

import pytest

from daemon.bot import make_forge, make_workspace, open_cycle, open_store
from daemon.host import detect_host
from daemon.pulls.publish import Opened
from daemon.report import Report
from daemon.status import find_status
from tests.daemon.origins import HERE, SCRIPTED, Origin

BRANCH = f"kernelevolve/gelu_bias/{HERE}"


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    return Origin(tmp_path)


def configure(origin: Origin, text: str) -> None:
    origin.commit(".github", {"kernelevolve.yml": f"version: 1\n{text}\n"})


def turn(origin: Origin) -> Report:
    with open_cycle(origin.settings, jobs=SCRIPTED, is_stopped=lambda: False) as cycle:
        return cycle.run()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("pause: true", "says `pause: true`"),
        ("hardware: [h200]", "selects no hardware"),
        ("windows: [{cron: '* * 30 feb *'}]", "windows"),
        ("limits: {device_hours_per_day: 0}", "needs 0.333 minutes of a device"),
    ],
)
def test_what_may_not_start_waits_in_the_queue_and_starts_when_it_may(
    origin: Origin, text: str, why: str
) -> None:
    configure(origin, text)
    origin.add_operator("better 2.0")

    (held,) = turn(origin).held
    assert why in held.why

    configure(origin, "")
    (end,) = turn(origin).ends
    assert end.publication == Opened(number=1)


def test_a_dry_run_proves_and_proposes_nothing_until_it_is_over(
    origin: Origin, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    configure(origin, "dry_run: true")
    origin.add_operator(f"note {notes}; better 2.0")

    assert turn(origin).ends == ()
    assert turn(origin).ends == ()
    assert BRANCH not in origin.branches()
    assert len(notes.read_text().splitlines()) == 1
    with open_store(origin.settings) as store:
        (goal,) = find_status(store, detect_host()).waiting
    assert goal.obstacle == "proven, and held back: a dry run proposes nothing"

    configure(origin, "")
    (end,) = turn(origin).ends
    assert (end.verdict, end.publication) == ("better", Opened(number=1))


def test_what_is_below_the_threshold_is_not_proposed(origin: Origin) -> None:
    configure(origin, "thresholds: {minimum_gain: 9.0}")
    origin.add_operator("better 2.0")

    (end,) = turn(origin).ends

    assert (end.verdict, end.publication) == ("not_better", None)
    assert end.why.endswith("the configuration asks for 9")
    assert BRANCH not in origin.branches()


def test_a_broken_configuration_leaves_the_last_good_one_in_force(origin: Origin) -> None:
    configure(origin, "pause: true")
    turn(origin)
    configure(origin, "puase: false")
    origin.add_operator("better 2.0")

    (held,) = turn(origin).held

    assert "says `pause: true`" in held.why


def test_labels_of_the_configuration_are_given(origin: Origin) -> None:
    configure(origin, "labels: [performance]")
    origin.add_operator("better 2.0")
    turn(origin)

    (shown,) = make_forge(origin.settings, make_workspace(origin.settings)).pull_requests()

    assert shown.labels == ("kernelevolve", "performance")


def test_a_pause_that_is_merged_ends_a_running_search(origin: Origin) -> None:
    origin.add_operator("trial 1; sleep 60; better 2.0")

    def pause() -> None:
        configure(origin, "pause: true")
        cycle.gate.config.run()

    merging = threading.Thread(target=pause)
    with open_cycle(
        origin.settings,
        jobs=SCRIPTED,
        is_stopped=lambda: False,
        on_progress=lambda _work, _event: merging.start(),
    ) as cycle:
        began = time.monotonic()
        report = cycle.run()
        merging.join()

        assert time.monotonic() - began < 30
        assert (report.ends, report.stopped) == ((), False)
        (goal,) = cycle.store.pending_goals()
        assert goal.holder is None
