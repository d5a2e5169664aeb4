from pathlib import Path

import pytest

from daemon.bot import open_cycle, open_store
from daemon.host import Host
from daemon.status import Status, find_status
from tests.daemon.origins import HERE, SCRIPTED, Origin

NOWHERE = Host(cpu_arch="x86-64-v2")
THIS = Host(cpu_arch=HERE.removeprefix("cpu-"))


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    return Origin(tmp_path)


def turn(origin: Origin, *, work: bool = True) -> None:
    with open_cycle(origin.settings, jobs=SCRIPTED, is_stopped=lambda: not work) as cycle:
        cycle.run()


def status(origin: Origin, host: Host = THIS) -> Status:
    with open_store(origin.settings) as store:
        return find_status(store, host)


def test_before_the_first_turn_there_is_no_registry(origin: Origin) -> None:
    assert status(origin).registry is None


def test_what_waits_says_why_it_is_wanted(origin: Origin) -> None:
    origin.add_operator("better 2.0")
    turn(origin, work=False)

    found = status(origin)

    (goal,) = found.waiting
    assert (goal.operator, goal.state, goal.why) == ("gelu_bias", "queued", ("operator added",))
    assert found.processed == origin.head


def test_what_this_machine_cannot_do_says_so(origin: Origin) -> None:
    origin.add_operator("better 2.0")
    turn(origin, work=False)

    (goal,) = status(origin, NOWHERE).waiting

    assert goal.state == "held"
    assert "this one is x86-64-v2" in (goal.obstacle or "")


def test_what_is_claimed_runs(origin: Origin) -> None:
    origin.add_operator("better 2.0")
    turn(origin, work=False)
    with open_store(origin.settings) as store:
        store.claim(store.pending_goals()[0].key, "me", ttl_s=1e12, now=0)

    assert status(origin).waiting[0].state == "running"


def test_what_ended_says_how(origin: Origin) -> None:
    origin.add_operator("trial 1")
    turn(origin)

    (past,) = status(origin).ended

    assert (past.end.verdict, past.end.why) == ("not_better", "nothing was faster")


def test_a_broken_head_is_shown_until_it_is_mended(origin: Origin) -> None:
    good = origin.first_files()["registry.yaml"].decode()
    hardware = origin.first_files()[f"hardware/{HERE}.yaml"].decode()
    broken = origin.commit("", {"registry.yaml": "schema: 1\n"})
    turn(origin)
    assert status(origin).broken == broken

    origin.commit("", {"registry.yaml": good, f"hardware/{HERE}.yaml": hardware})
    turn(origin)

    assert status(origin).broken is None
