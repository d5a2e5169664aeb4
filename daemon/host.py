"""The machine that this is: what its processor and its GPUs are called, without torch."""

import platform
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from operator_registry.hardware import HardwareSpec

_LEVELS = (
    ("x86-64-v4", frozenset({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"})),
    ("x86-64-v3", frozenset({"avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"})),
)
_QUERY = ("nvidia-smi", "--query-gpu=name,compute_cap", "--format=csv,noheader")
_QUERY_S = 20


@dataclass(frozen=True)
class Gpu:
    """A GPU as its driver names it."""

    name: str
    arch: str


@dataclass(frozen=True)
class Host:
    """What this machine can run kernels on."""

    cpu_arch: str | None
    """The highest level of x86-64 that we have kernels for; None on another processor."""
    gpus: tuple[Gpu, ...] = ()

    @property
    def cpu(self) -> str | None:
        """Return the hardware that ``cpu`` means on this machine's command line."""
        return self.cpu_arch and f"cpu-{self.cpu_arch}"

    def find_obstacle(self, hardware: HardwareSpec) -> str | None:
        """Return why results for a hardware can't be made here; None where they can."""
        wanted = hardware.compile.arch
        if hardware.target == "cpu":
            if wanted == self.cpu_arch:
                return None
            return f"needs an {wanted} processor; this one is {self.cpu_arch or 'no x86-64-v3'}"
        found = ", ".join(gpu.name for gpu in self.gpus) or "none"
        for gpu in self.gpus:
            if gpu.arch == wanted and hardware.name.split("-")[0] in gpu.name.lower():
                return None
        return f"needs a GPU {hardware.name} ({wanted}); this machine has {found}"


def detect_host() -> Host:
    """Return what this machine is."""
    return Host(cpu_arch=_cpu_arch(), gpus=_gpus())


def level_of(flags: frozenset[str]) -> str | None:
    """Return the highest level of x86-64 that a processor with these flags has."""
    for level, needed in _LEVELS:
        if needed <= flags:
            return level
    return None


def read_gpus(lines: Sequence[str]) -> tuple[Gpu, ...]:
    """Return the GPUs in what ``nvidia-smi`` printed: ``NVIDIA H200, 9.0``."""
    pairs = (line.rpartition(",") for line in lines)
    return tuple(
        Gpu(name.strip(), f"sm_{capability.strip().replace('.', '')}")
        for name, _, capability in pairs
        if name
    )


def _cpu_arch() -> str | None:
    if platform.machine() != "x86_64":
        return None
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("flags"):
            return level_of(frozenset(line.partition(":")[2].split()))
    return None


def _gpus() -> tuple[Gpu, ...]:
    if shutil.which(_QUERY[0]) is None:
        return ()
    try:
        done = subprocess.run(_QUERY, capture_output=True, text=True, timeout=_QUERY_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return ()
    return read_gpus(done.stdout.splitlines())
