from daemon.host import Gpu, Host, detect_host, level_of, read_gpus
from operator_registry.registry import CATALOG, load_registry

HARDWARE = load_registry(CATALOG).hardware
H200 = Host(cpu_arch="x86-64-v4", gpus=(Gpu("NVIDIA H200", "sm_90"),))


def test_the_level_is_the_highest_that_all_flags_are_there_for() -> None:
    v3 = {"avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"}
    avx512 = {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}

    assert level_of(frozenset(v3)) == "x86-64-v3"
    assert level_of(frozenset(v3 | avx512)) == "x86-64-v4"
    assert level_of(frozenset({"sse2"})) is None


def test_a_gpu_is_known_by_name_and_architecture() -> None:
    assert read_gpus(["NVIDIA H200, 9.0", ""]) == (Gpu("NVIDIA H200", "sm_90"),)


def test_a_host_runs_its_own_hardware_only() -> None:
    assert H200.find_obstacle(HARDWARE["h200"]) is None
    assert H200.find_obstacle(HARDWARE["cpu-x86-64-v4"]) is None
    assert "this one is x86-64-v4" in (H200.find_obstacle(HARDWARE["cpu-x86-64-v3"]) or "")


def test_a_gpu_of_the_same_architecture_is_another_hardware() -> None:
    h100 = Host(cpu_arch=None, gpus=(Gpu("NVIDIA H100 80GB HBM3", "sm_90"),))

    assert "NVIDIA H100" in (h100.find_obstacle(HARDWARE["h200"]) or "")


def test_this_machine_is_something() -> None:
    host = detect_host()

    assert host.cpu is None or host.cpu in HARDWARE
