"""Ways to build and run device code."""

from collections.abc import Callable, Mapping

from operator_registry.hardware import HardwareSpec
from operator_registry.spec import TargetName
from optimizer.targets.building import BuildingTable
from optimizer.targets.cpu import CpuTarget, find_cpu_obstacle, host_cpu_arch
from optimizer.targets.target import Target

__all__ = ["TARGETS", "BuildingTable", "find_obstacle", "host_cpu_arch", "make_target"]


def make_cpu_target(hardware: HardwareSpec) -> Target:
    """Return the way to build and run C++ for a processor."""
    return CpuTarget(hardware.compile.arch)


def make_cuda_target(hardware: HardwareSpec) -> Target:
    """Return the way to build and run Triton for an NVIDIA device."""
    from optimizer.targets.cuda import CudaTarget  # noqa: PLC0415 - Triton and torch load slowly

    return CudaTarget(
        hardware.compile.arch,
        shared_limit_bytes=hardware.limits.shared_memory_per_block_bytes,
    )


def find_cuda_obstacle(hardware: HardwareSpec) -> str | None:
    """Return why this machine can't run what is built for an NVIDIA device, None where it can."""
    from optimizer.targets.cuda_launch import find_cuda_obstacle as find  # noqa: PLC0415 - see above

    return find(hardware.compile.arch)


TARGETS: Mapping[TargetName, Callable[[HardwareSpec], Target]] = {
    "cpu": make_cpu_target,
    "cuda": make_cuda_target,
}
"""How to build and run for each kind of device."""


def make_target(hardware: HardwareSpec) -> Target:
    """Return the way to build and run for a hardware.

    Raises:
        KeyError: There is none for this kind of device yet.
    """
    return TARGETS[hardware.target](hardware)


def find_obstacle(hardware: HardwareSpec) -> str | None:
    """Return why this machine can't run what is built for a hardware, None where it can."""
    match hardware.target:
        case "cpu":
            return find_cpu_obstacle(hardware.compile.arch)
        case "cuda":
            return find_cuda_obstacle(hardware)
        case other:
            return f"kernels for {other} can't be run yet"
