from daemon.host import Gpu, Host, detect_host, read_gpus
from operator_registry.registry import CATALOG, load_registry

HARDWARE = load_registry(CATALOG).hardware
H200 = Host(cpu_arch="x86-64-v4", gpus=(Gpu("NVIDIA H200", "sm_90"),))


def test_a_gpu_is_known_by_name_and_architecture() -> None:
    assert read_gpus(["NVIDIA H200, 9.0, GPU-1c", ""]) == (Gpu("NVIDIA H200", "sm_90", "GPU-1c"),)


def test_a_host_runs_its_own_hardware_only() -> None:
    assert H200.find_obstacle(HARDWARE["h200"]) is None
    assert H200.find_obstacle(HARDWARE["cpu-x86-64-v4"]) is None
    assert "this one is x86-64-v4" in (H200.find_obstacle(HARDWARE["cpu-x86-64-v3"]) or "")


def test_a_gpu_of_the_same_architecture_is_another_hardware() -> None:
    h100 = Host(cpu_arch="x86-64-v2", gpus=(Gpu("NVIDIA H100 80GB HBM3", "sm_90"),))

    assert "NVIDIA H100" in (h100.find_obstacle(HARDWARE["h200"]) or "")


def test_this_machine_is_something() -> None:
    assert detect_host().cpu.startswith("cpu-x86-64-v")
