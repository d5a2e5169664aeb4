"""The environment of this machine, in which a result holds."""

import platform
import re
from contextlib import suppress
from pathlib import Path
from typing import Final

import torch

from knowledge.evaluation import Environment
from operator_registry.hardware import HardwareSpec
from optimizer.targets.cpu import compiler_version
from optimizer.targets.driver import open_driver

_DRIVER_FILE: Final = Path("/proc/driver/nvidia/version")
_DRIVER = re.compile(r"Kernel Module.*?\s(\d+\.\d+(?:\.\d+)?)\s")
_CPU_FACTS: Final = ("cpu family", "model", "stepping")


def detect_environment(hardware: HardwareSpec) -> Environment:
    """Return what this machine is for results on a hardware.

    Where the hardware's device is absent, the environment says so in the device's place: what is
    found there was checked by an interpreter and never timed.
    """
    facts = {
        "arch": hardware.compile.arch,
        "torch": str(torch.__version__),
        "python": platform.python_version(),
        "threads": torch.get_num_threads(),
    }
    if hardware.target == "cpu":
        return Environment(device=cpu_name(), compiler=compiler_version(), **facts)
    import triton  # noqa: PLC0415 - slow, and absent where only C++ is built

    device = f"absent; Triton's interpreter on {cpu_name()}"
    if torch.cuda.is_available():
        device = torch.cuda.get_device_name(torch.cuda.current_device())
    return Environment(device=device, triton=triton.__version__, driver=driver_version(), **facts)


def cpu_name() -> str:
    """Return the processor's own name, with the numbers that tell models of one name apart."""
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    lines = [line.split(":", 1) for line in text.partition("\n\n")[0].splitlines() if ":" in line]
    facts = {name.strip(): value.strip() for name, value in lines}
    numbers = "-".join(facts.get(name, "?") for name in _CPU_FACTS)
    return f"{facts.get('model name', platform.machine())} ({numbers})"


def driver_version() -> str:
    """Return the NVIDIA driver's version, or else that of its CUDA; empty where there is none."""
    with suppress(OSError):
        if found := _DRIVER.search(_DRIVER_FILE.read_text(encoding="utf-8")):
            return found.group(1)
    with suppress(OSError):
        return f"CUDA {open_driver().version()}"
    return ""
