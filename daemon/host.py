"""The machine that this is: what its processor and its GPUs are called, without torch."""

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from operator_registry.hardware import HardwareSpec
from optimizer.targets import host_cpu_arch

_QUERY = ("nvidia-smi", "--query-gpu=name,compute_cap,uuid", "--format=csv,noheader")
_QUERY_S = 20


@dataclass(frozen=True)
class Gpu:
    """A GPU as its driver names it."""

    name: str
    arch: str
    uuid: str = ""
    """By which CUDA can be told to show it alone."""


@dataclass(frozen=True)
class Host:
    """What this machine can run kernels on."""

    cpu_arch: str
    """The level of x86-64, such as ``x86-64-v3``."""
    gpus: tuple[Gpu, ...] = ()
    has_runners: bool = False
    """Whether the code host's runners do what this machine can't."""

    @property
    def cpu(self) -> str:
        """Return the hardware that ``cpu`` means on this machine's command line."""
        return f"cpu-{self.cpu_arch}"

    def find_obstacle(self, hardware: HardwareSpec) -> str | None:
        """Return why results for a hardware can't be made, here or by a runner, if they can't."""
        obstacle = self._find_own_obstacle(hardware)
        if obstacle is None or not self.has_runners:
            return obstacle
        if hardware.runner.labels:
            return None
        return f"{obstacle}, and no runner is named for it (`runner: {{labels: [...]}}`)"

    def is_here(self, hardware: HardwareSpec) -> bool:
        """Return whether this machine itself can make results for a hardware."""
        return self._find_own_obstacle(hardware) is None

    def _find_own_obstacle(self, hardware: HardwareSpec) -> str | None:
        wanted = hardware.compile.arch
        if hardware.target == "cpu":
            if wanted == self.cpu_arch:
                return None
            return f"needs a processor of level {wanted}; this one is {self.cpu_arch}"
        found = ", ".join(gpu.name for gpu in self.gpus) or "none"
        if any(is_kind(hardware, gpu.name, gpu.arch) for gpu in self.gpus):
            return None
        return f"needs a GPU {hardware.name} ({wanted}); this machine has {found}"


def is_kind(hardware: HardwareSpec, name: str, arch: str) -> bool:
    """Return whether a GPU is of a hardware.

    Args:
        hardware: As the registry describes it.
        name: What the driver calls the GPU.
        arch: What the compiler is told for it; empty where nobody has said.
    """
    alike = hardware.name.split("-")[0] in name.lower()
    return alike and arch in {"", hardware.compile.arch}


def detect_host(*, has_runners: bool = False) -> Host:
    """Return what this machine is.

    Args:
        has_runners: Whether the code host's runners do what it can't.
    """
    return Host(cpu_arch=host_cpu_arch(), gpus=_gpus(), has_runners=has_runners)


def read_gpus(lines: Sequence[str]) -> tuple[Gpu, ...]:
    """Return the GPUs in what ``nvidia-smi`` printed: ``NVIDIA H200, 9.0, GPU-1c2a...``."""
    rows = (tuple(cell.strip() for cell in line.rsplit(",", 2)) for line in lines if line)
    return tuple(
        Gpu(name, f"sm_{capability.replace('.', '')}", uuid) for name, capability, uuid in rows
    )


def _gpus() -> tuple[Gpu, ...]:
    if shutil.which(_QUERY[0]) is None:
        return ()
    try:
        done = subprocess.run(_QUERY, capture_output=True, text=True, timeout=_QUERY_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return ()
    return read_gpus(done.stdout.splitlines())
