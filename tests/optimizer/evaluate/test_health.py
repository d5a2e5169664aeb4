"""A device that fails again and again is left alone until somebody has looked at it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from optimizer.doctor import find_devices
from optimizer.errors import RunnerError
from optimizer.evaluate import health
from optimizer.evaluate.device_state import DeviceState
from optimizer.evaluate.health import CordonedError, Watch
from optimizer.evaluate.probing import probe, probe_answer
from optimizer.evaluate.process import Place, Process
from optimizer.evaluate.sandbox import ChildError


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watch:
    monkeypatch.setattr(health, "_PAUSE_S", 0.0)
    return Watch(tmp_path / "scale", "h200-1")


def fail() -> Process:
    msg = "CUDA error: device-side assert"
    raise RunnerError(msg)


def cordon(watch: Watch) -> None:
    with pytest.raises(CordonedError):
        watch.open(fail, lambda: None)


@pytest.mark.parametrize("factor", [1, 7, 65535])
def test_a_device_that_is_well_gives_the_answer(factor: int) -> None:
    assert probe(factor, "cpu") == probe_answer(factor)


def test_one_fault_cordons_nothing() -> None:
    state = DeviceState(device="d").after("hung", at="now")

    assert not state.cordoned
    assert state.after("hung", at="now").after("hung", at="now").cordoned


def test_a_device_that_keeps_failing_is_cordoned_and_stays_so(watch: Watch) -> None:
    cordon(watch)

    with pytest.raises(CordonedError, match=r"device-side assert.*then delete"):
        Watch(watch.folder, watch.device).refuse_cordoned()
    Watch(watch.folder, "h200-2").refuse_cordoned()


def test_to_delete_its_file_lifts_the_cordon(watch: Watch) -> None:
    cordon(watch)
    watch.file.unlink()

    watch.refuse_cordoned()


def test_the_doctor_shows_the_cordon_and_how_to_lift_it(watch: Watch) -> None:
    cordon(watch)

    (ability,) = find_devices(watch.folder)

    assert not ability.able
    assert "device-side assert" in ability.detail
    assert str(watch.file) in ability.remedy
    assert list(find_devices(watch.folder.parent)) == [ability]


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    place = Place(device="cpu", threads=1, cache_bytes=0, folder=tmp_path_factory.mktemp("place"))
    with Process(place) as process:
        process.greet(timed=False)
        yield process


def test_a_process_that_finds_the_device_well_clears_its_name(
    watch: Watch, process: Process
) -> None:
    starts = iter([fail, fail])

    def start() -> Process:
        return next(starts, lambda: process)()

    assert watch.open(start, lambda: None) is process
    assert not watch.file.exists()


def test_a_worker_that_is_gone_is_not_well(process: Process) -> None:
    process.kill()

    with pytest.raises(ChildError):
        process.probe()
