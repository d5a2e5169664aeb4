"""Which devices a machine has, and which of them disturb each other."""

from daemon.fleet.found import (
    access_of,
    count_side_by_side,
    disturbs,
    fits,
    is_elsewhere,
    local_devices,
)
from daemon.host import Gpu, Host
from operator_registry.registry import CATALOG, load_registry
from optimizer.runners.access import LocalAccess, RayAccess
from optimizer.store import NewDevice

HARDWARE = load_registry(CATALOG).hardware
GPUS = tuple(Gpu("NVIDIA H200", "sm_90", f"GPU-{digit * 8}-7") for digit in "12")
TWO = Host(cpu_arch="x86-64-v4", gpus=GPUS)
FIRST, SECOND, CPU = local_devices(TWO, "a", cpus=1, cores=range(8))


def test_each_gpu_and_the_processor_is_a_device() -> None:
    assert [d.name for d in (FIRST, SECOND, CPU)] == ["a/gpu-11111111", "a/gpu-22222222", "a/cpu"]
    assert access_of(FIRST).access == LocalAccess(gpu="GPU-11111111-7")
    assert access_of(CPU).access == LocalAccess()


def test_a_device_fits_its_own_hardware_only() -> None:
    assert [fits(FIRST, HARDWARE[name]) for name in ("h200", "cpu-x86-64-v4")] == [True, False]
    assert [fits(CPU, HARDWARE[name]) for name in ("h200", "cpu-x86-64-v4")] == [False, True]
    assert not fits(CPU, HARDWARE["cpu-x86-64-v3"])


def test_gpus_work_side_by_side_and_the_processor_alone() -> None:
    assert not disturbs(FIRST, SECOND)
    assert disturbs(FIRST, CPU)
    assert count_side_by_side([FIRST, SECOND, CPU]) == 2
    assert count_side_by_side([FIRST, CPU]) == 1


def test_two_machines_do_not_disturb_each_other() -> None:
    (other,) = local_devices(Host(cpu_arch="x86-64-v4"), "b", cpus=1, cores=range(8))

    assert not disturbs(CPU, other)
    assert count_side_by_side([CPU, other]) == 2


def test_a_processor_in_parts_has_a_device_for_each() -> None:
    parts = local_devices(Host(cpu_arch="x86-64-v4"), "a", cpus=2, cores={0, 1, 2, 5})

    assert [access_of(part).access for part in parts] == [
        LocalAccess(cores=(0, 1)),
        LocalAccess(cores=(2, 5)),
    ]
    assert not disturbs(*parts)


def test_there_are_no_more_parts_than_cores() -> None:
    assert len(local_devices(Host(cpu_arch="x86-64-v4"), "a", cpus=4, cores={0, 1})) == 2


def test_a_device_of_a_cluster_is_elsewhere() -> None:
    access = RayAccess(address="head:1", needs={"h200/gpu0": 1})
    far = NewDevice(name="b/gpu0", host="b", hardware="h200", access=access.to_json())

    assert is_elsewhere(far)
    assert fits(far, HARDWARE["h200"])
    assert not is_elsewhere(FIRST)
