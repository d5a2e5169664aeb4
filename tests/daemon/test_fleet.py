"""Devices lent to jobs: side by side, one a device, cordoned, drained."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from daemon.bot import open_bot, open_store
from daemon.cli.main import main
from daemon.fleet.found import local_devices, own_cores
from daemon.fleet.lending import Lending
from daemon.fleet.pool import Pool
from daemon.host import Gpu, Host
from daemon.jobs import JobRefusedError, Progress, Task
from daemon.report import Report
from operator_registry.record import Record
from optimizer.evaluate.device_state import DeviceState
from optimizer.job import OptimizeRequest, OptimizeResult, Result
from optimizer.runners.access import LocalAccess
from optimizer.store import Store
from tests.daemon.origins import HERE, SCRIPTED, Origin
from tests.daemon.test_routing import H200, optimize

UUID = "GPU-1c2a3b4d-0000-0000-0000-000000000001"
GPUS = (Gpu("NVIDIA H200", "sm_90", UUID), Gpu("NVIDIA H200", "sm_90", "GPU-2d"))
ONE, TWO = "a/gpu-1c2a3b4d", "a/gpu-2d"
DEVICES = local_devices(Host("x86-64-v4", GPUS), "a", cpus=1, cores=range(4))
is_partible = pytest.mark.skipif(len(own_cores()) < 2, reason="one core makes one device")


@dataclass
class Held:
    """Does jobs that last until they are let go, and notes what they were given."""

    seen: list[OptimizeRequest] = field(default_factory=list)
    go: threading.Event = field(default_factory=threading.Event)
    error: str = ""

    def run(
        self,
        task: Task,
        request: Record,
        *,
        on_progress: Callable[[Progress], None] = lambda _: None,
        keep_going: Callable[[], bool] = lambda: True,
    ) -> Result | None:
        assert isinstance(request, OptimizeRequest)
        self.seen.append(request)
        while keep_going() and not self.go.wait(0.01):
            pass
        if self.error:
            raise JobRefusedError(self.error, "it is gone")
        return (
            OptimizeResult(operator="scale", hardware="h200", message="finished", verdict=None)
            if self.go.is_set()
            else None
        )


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(f"sqlite:///{tmp_path / 'store.sqlite'}")
    store.migrate()
    return store


@pytest.fixture
def lending(store: Store, tmp_path: Path) -> Lending:
    artefacts = tmp_path / "artefacts"
    lending = Lending(store, "me", time.time, lambda: DEVICES, artefacts=artefacts, host="a")
    lending.look()
    return lending


@pytest.fixture
def held() -> Held:
    return Held()


@pytest.fixture
def pool(held: Held, lending: Lending) -> Iterator[Pool]:
    pool = Pool(held, lending)
    yield pool
    held.go.set()
    pool.close()


def ask(number: int) -> OptimizeRequest:
    return optimize(H200).model_copy(update={"goal_key": f"goal-{number}"})


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < until, "it never came to be"
        time.sleep(0.01)


def fail(artefacts: Path, times: int) -> None:
    state = DeviceState(device=f"h200-{UUID[4:].replace('-', '')}")
    for _ in range(times):
        state = state.after("hung", at="2026-11-30T12:00:00+00:00")
    file = artefacts / "devices" / f"{state.device}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(state.to_json(), encoding="utf-8")


def test_each_job_has_a_device_of_its_own(pool: Pool, held: Held) -> None:
    for number in range(3):
        assert pool.run("optimize", ask(number)) is None
    wait_until(lambda: len(held.seen) == 2)

    given = [request.device for request in held.seen]
    assert sorted(device.name for device in given if device) == sorted({ONE, TWO})
    assert all(isinstance(d.access, LocalAccess) and d.access.gpu for d in given if d)
    assert not pool.has_room(H200)
    assert not pool.is_going("goal-2")


def test_a_result_is_told_once_and_frees_the_device(pool: Pool, held: Held, store: Store) -> None:
    pool.run("optimize", ask(1))
    held.go.set()
    wait_until(lambda: pool.is_done("goal-1"))

    assert isinstance(pool.run("optimize", ask(1)), OptimizeResult)
    assert not pool.is_going("goal-1")
    assert [device.holder for device in store.devices()] == [None] * 3


def test_a_job_goes_elsewhere_when_it_was_lost(pool: Pool, held: Held) -> None:
    held.error = "DeviceLostError"
    held.go.set()
    for _ in range(2):
        pool.run("optimize", ask(1))
        wait_until(lambda: pool.is_done("goal-1"))
        with pytest.raises(JobRefusedError):
            pool.run("optimize", ask(1))

    assert {request.device.name for request in held.seen if request.device} == {ONE, TWO}


def test_a_task_waits_rather_than_go_back_to_where_it_was_lost(lending: Lending) -> None:
    lending.note_loss("k", ONE)
    other = lending.lend(H200, key="k", task="t")

    assert other is not None
    assert other.device.name == TWO
    assert lending.lend(H200, key="k", task="t") is None
    lending.note_loss("k", TWO)
    back = lending.lend(H200, key="k", task="t")
    assert back is not None
    assert back.device.name == ONE


def test_an_end_that_nobody_asks_for_ends_no_wait(
    pool: Pool, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = list[float]()
    pool.run("optimize", ask(1))
    held.go.set()
    wait_until(lambda: pool.is_done("goal-1"))
    monkeypatch.setattr("daemon.fleet.pool.time.sleep", waits.append)

    pool.wait(0.25)
    pool.forget("goal-1")

    assert waits == [0.25]
    assert not pool.is_going("goal-1")


def test_devices_of_another_machine_are_not_lent(lending: Lending, store: Store) -> None:
    theirs = Lending(store, "they", time.time, lambda: (), host="b")
    theirs.look()

    assert not theirs.knows(H200)
    assert theirs.lend(H200, key="k", task="t") is None
    assert lending.knows(H200)


def test_a_lease_that_has_ended_is_not_prolonged_nor_given_back_for_the_next(
    store: Store,
) -> None:
    now = [1000.0]
    lending = Lending(store, "me", lambda: now[0], lambda: DEVICES[:1], host="a")
    lending.look()
    first = lending.lend(H200, key="k", task="first")
    now[0] += lending.ttl_s
    second = lending.lend(H200, key="l", task="second")
    assert first is not None
    assert second is not None
    assert first.device == second.device

    assert not first.renew()
    first.give_back()

    assert second.renew()
    (device,) = store.devices()
    assert device.task == "second"


def test_a_drained_device_hands_its_job_back(pool: Pool, held: Held, store: Store) -> None:
    pool.run("optimize", ask(1))
    (name,) = [device.name for device in store.devices() if device.holder]

    store.rule_device(name, "draining", why="repair", by="person", now=time.time())
    wait_until(lambda: pool.is_done("goal-1"))

    assert pool.run("optimize", ask(1)) is None
    assert {device.name: device.state(time.time()) for device in store.devices()}[
        name
    ] == "cordoned"


def test_all_devices_cordoned_is_why_a_goal_waits(lending: Lending, store: Store) -> None:
    assert lending.find_obstacle(H200) is None
    for name in (ONE, TWO):
        store.rule_device(name, "cordoned", why="too hot", by="person", now=1)

    assert "too hot" in (lending.find_obstacle(H200) or "")
    assert lending.lend(H200, key="k", task="t") is None


def test_the_processor_waits_for_the_gpus(lending: Lending) -> None:
    gpu = lending.lend(H200, key="k", task="t")
    cpu = H200.model_copy(
        update={"target": "cpu", "compile": H200.compile.model_copy(update={"arch": "x86-64-v4"})}
    )

    assert gpu is not None
    assert not lending.has_room(cpu)
    gpu.give_back()
    assert lending.has_room(cpu)
    assert lending.lend(cpu, key="k", task="t") is not None
    assert not lending.has_room(H200)


def test_a_health_check_cordons_a_device_and_frees_it(
    lending: Lending, store: Store, tmp_path: Path
) -> None:
    fail(tmp_path / "artefacts", 2)
    lending.look()
    assert {device.rule for device in store.devices()} == {None}

    fail(tmp_path / "artefacts", 3)
    lending.look()
    (ill,) = [device for device in store.devices() if device.rule]
    assert (ill.name, ill.ruled_by) == (ONE, "health")
    assert "hung" in ill.why

    next((tmp_path / "artefacts" / "devices").iterdir()).unlink()
    lending.look()
    assert {device.rule for device in store.devices()} == {None}

    fail(tmp_path / "artefacts", 3)
    lending.look()
    assert [device.name for device in store.devices() if device.rule] == [ONE]


def test_a_person_frees_what_a_health_check_has_cordoned(
    lending: Lending, store: Store, tmp_path: Path
) -> None:
    fail(tmp_path / "artefacts", 3)
    lending.look()
    store.rule_device(TWO, "cordoned", why="busy", by="person", now=1)

    store.uncordon_device(ONE, now=time.time())
    lending.look()
    lease = lending.lend(H200, key="k", task="t")

    assert lease is not None
    assert lease.device.name == ONE
    assert list((tmp_path / "artefacts" / "devices").iterdir()) == []


def partible(origin: Origin) -> Origin:
    for name in ("gelu_bias", "softmax", "rms_norm"):
        note = origin.folder / "notes"
        origin.add_operator(f"note {note}; sleep 1; better 2.0", name=name)
    return origin


def turn(origin: Origin, *, cpus: int, is_stopped: Callable[[], bool] = lambda: False) -> Report:
    settings = origin.settings.model_copy(update={"cpus": cpus})
    with open_bot(settings, jobs=SCRIPTED, is_stopped=is_stopped) as bot:
        return bot.cycle.run()


@is_partible
def test_several_goals_are_searched_at_once_and_all_are_published(tmp_path: Path) -> None:
    origin = partible(Origin(tmp_path))
    most = 0

    def look() -> bool:
        nonlocal most
        with Store(origin.settings.store_url) as store:
            most = max(most, sum(d.holder is not None for d in store.devices()))
        return False

    report = turn(origin, cpus=2, is_stopped=look)

    assert most == 2
    assert sorted(end.verdict for end in report.ends) == ["better"] * 3
    assert all(end.publication is not None for end in report.ends)
    assert len((tmp_path / "notes").read_text().splitlines()) == 3
    assert report.held == ()


@is_partible
def test_told_to_stop_it_hands_back_all_that_runs(tmp_path: Path) -> None:
    origin = partible(Origin(tmp_path))
    notes = tmp_path / "notes"

    report = turn(
        origin,
        cpus=2,
        is_stopped=lambda: notes.exists() and len(notes.read_text().splitlines()) == 2,
    )

    assert report.stopped
    with open_store(origin.settings) as store:
        assert [goal.holder for goal in store.pending_goals()] == [None] * 3
        assert {device.holder for device in store.devices()} == {None}


@is_partible
def test_a_job_that_dies_leaves_the_others_alone(tmp_path: Path) -> None:
    origin = Origin(tmp_path)
    origin.add_operator("crash", name="softmax")
    origin.add_operator("sleep 1; better 2.0")

    report = turn(origin, cpus=2)

    assert sorted(end.verdict for end in report.ends) == ["better", "failed"]
    assert len(report.errors) == 3


def test_one_device_is_leased_while_its_job_runs(tmp_path: Path) -> None:
    origin = Origin(tmp_path)
    origin.add_operator(f"note {tmp_path / 'notes'}; sleep 1; better 2.0")
    seen: set[str] = set()

    def look() -> bool:
        with Store(origin.settings.store_url) as store:
            seen.update(device.task for device in store.devices() if device.holder)
        return False

    turn(origin, cpus=1, is_stopped=look)

    assert seen == {f"gelu_bias on {HERE}"}


def test_the_command_shows_devices_and_queue_and_rules_devices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    origin = Origin(tmp_path)
    origin.add_operator("better 2.0")
    turn(origin, cpus=1, is_stopped=lambda: True)
    monkeypatch.setenv("KERNELEVOLVE_STATE", str(origin.settings.state))

    assert main(["fleet", "cordon", "cpu", "--why", "being repaired"]) == 0
    assert main(["fleet"]) == 0
    said = capsys.readouterr().out
    assert "being repaired" in said
    assert f"gelu_bias on {HERE}" in said
    (held,) = turn(origin, cpus=1).held
    assert "cordoned: being repaired" in held.why

    assert main(["fleet", "uncordon", "cpu"]) == 0
    assert [end.verdict for end in turn(origin, cpus=1).ends] == ["better"]
    assert main(["fleet", "drain", "nothing", "--why", "x"]) == 2
    assert "names no one device" in capsys.readouterr().err


@is_partible
def test_a_job_has_the_cores_of_its_device(tmp_path: Path) -> None:
    origin = Origin(tmp_path)
    file = tmp_path / "cores"
    origin.add_operator(f"cores {file}; better 2.0")

    turn(origin, cpus=2)

    assert len(file.read_text().split()) == len(own_cores()) // 2
