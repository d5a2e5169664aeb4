"""What this machine can build, run, time and sandbox, each found out by trying it."""

import importlib
import os
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Final

import torch

from optimizer.environment import cpu_name, driver_version
from optimizer.errors import OptimizerError
from optimizer.evaluate.device_state import find_states, remedy
from optimizer.evaluate.walls_probe import LOST, find_missing
from optimizer.evaluate.walls_probe import REMEDY as WALLS_REMEDY
from optimizer.job import Ability
from optimizer.profilers.counters import find_counter_tool
from optimizer.targets.cpu import REMEDY, CpuTarget, compiler_version, host_cpu_arch
from optimizer.targets.driver import open_driver
from optimizer.targets.target import Build, BuildError, Instance

_CPP: Final = """\
extern "C" void KERNEL(add_one)(const float* x, float* y, int64_t count) {
#pragma omp parallel for simd
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] + 1.0f;
}
"""
_TRITON: Final = """\
import triton
import triton.language as tl


@triton.jit
def add_one(x, y, count, BLOCK: tl.constexpr):
    for start in range(0, count, BLOCK):
        at = start + tl.arange(0, BLOCK)
        tl.store(y + at, tl.load(x + at, mask=at < count) + 1, mask=at < count)
"""
_TYPES: Final = ("*fp32", "*fp32")
_PIP: Final = "pip install 'triton>=3.6' 'numpy<2.4'"
_ARCH: Final = "sm_90"
_BUSY: Final = 0.7


def examine(state_folder: Path | None = None) -> tuple[Ability, ...]:
    """Return what this machine can do and, of what it can't, what to install.

    Args:
        state_folder: Where judges remember devices that failed.
    """
    devices = () if state_folder is None else find_devices(state_folder)
    return (*(check() for check in CHECKS), *devices)


def find_devices(state_folder: Path) -> Iterator[Ability]:
    """Yield each device that failed of late: it is cordoned, or on its way there."""
    for file, state in find_states(state_folder):
        last, how = state.faults[-1], "cordoned after " if state.cordoned else ""
        count = len(state.faults)
        yield Ability(
            name=f"run on {state.device}",
            able=not state.cordoned,
            detail=f"{how}{count} failures in a row, the last at {last.at}: {last.reason}",
            remedy=remedy(file) if state.cordoned else "",
        )


def _build_cpp() -> Ability:
    name = "build and run C++"
    arch = host_cpu_arch()
    if not compiler_version():
        return Ability(name=name, able=False, detail="there is no g++", remedy=REMEDY)
    instance = Instance(kernel="add_one", types=(*_TYPES, "i64"), warps=1)
    try:
        with tempfile.TemporaryDirectory(prefix="kernelevolve-") as folder:
            target = CpuTarget(arch)
            (built,) = target.build([Build(code=_CPP, instances=(instance,))], [Path(folder)])
            if isinstance(built, BuildError):
                raise built
            x, y = torch.zeros(3), torch.zeros(3)
            launch = target.load(Path(folder)).launcher(instance)
            launch((1,), (x.data_ptr(), y.data_ptr(), 3))
    except (OptimizerError, OSError) as error:
        remedy = f"{REMEDY} libgomp1"
        return Ability(name=name, able=False, detail=str(error), remedy=remedy)
    detail = f"{compiler_version()}, for {arch} on {cpu_name()}"
    return Ability(name=name, able=y.tolist() == [1.0] * 3, detail=detail)


def _time_cpu() -> Ability:
    threads, load = torch.get_num_threads(), os.getloadavg()[0]
    detail = f"{threads} threads, load {load:.1f}"
    busy = load > _BUSY * threads
    remedy = "end what else runs here, or results will be Unclear" if busy else ""
    return Ability(name="time on the processor", able=not busy, detail=detail, remedy=remedy)


def _compile_triton() -> Ability:
    name = f"compile Triton for NVIDIA devices ({_ARCH} tried)"
    target = _module("optimizer.targets.cuda")
    if target is None:
        return Ability(name=name, able=False, detail="there is no Triton", remedy=_PIP)
    instance = Instance(
        kernel="add_one", types=(*_TYPES, "i32"), divisible=(True, True, False),
        constants=(("BLOCK", 128),),
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="kernelevolve-") as folder:
        (built,) = target.CudaTarget(_ARCH).build(
            [Build(code=_TRITON, instances=(instance,))], [Path(folder)]
        )
    if isinstance(built, BuildError):
        return Ability(name=name, able=False, detail=str(built), remedy=_PIP)
    detail = f"{target.CudaTarget(_ARCH).toolchain}; needs no device"
    return Ability(name=name, able=True, detail=detail)


def _interpret_triton() -> Ability:
    name = "check Triton without a device"
    interpreter = _module("optimizer.targets.interpreter")
    if interpreter is None:
        return Ability(name=name, able=False, detail="there is no Triton", remedy=_PIP)
    instance = Instance(kernel="add_one", types=(*_TYPES, "i32"), constants=(("BLOCK", 2),))
    x, y = torch.zeros(3), torch.zeros(3)
    launch = interpreter.InterpreterTable(_TRITON).launcher(instance)
    try:
        launch((1,), (x.data_ptr(), y.data_ptr(), 3))
    except interpreter.INTERPRETER_ERRORS as error:
        # Triton 3.6 on numpy 2.4 fails at the first loop.
        return Ability(name=name, able=False, detail=str(error), remedy=_PIP)
    detail = "Triton's interpreter; at small sizes, never timed"
    return Ability(name=name, able=y.tolist() == [1.0] * 3, detail=detail)


def _run_cuda() -> Ability:
    name = "run and time on NVIDIA devices"
    try:
        open_driver()
    except OSError as error:
        remedy = "a machine with an NVIDIA device and its driver"
        return Ability(name=name, able=False, detail=str(error), remedy=remedy)
    if not torch.cuda.is_available():
        detail = f"there is a driver ({driver_version()}), but torch {torch.__version__} sees none"
        remedy = "the CUDA build of torch, and a device that this process may see"
        return Ability(name=name, able=False, detail=detail, remedy=remedy)
    names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    detail = f"{', '.join(names)}; driver {driver_version()}"
    return Ability(name=name, able=True, detail=detail)


def _count_cuda() -> Ability:
    name = "count what a winner does on an NVIDIA device"
    if find_counter_tool():
        return Ability(name=name, able=True, detail="Nsight Compute; seldom on virtual machines")
    return Ability(
        name=name,
        able=False,
        detail="there is no ncu: profiles lack DRAM bytes, bandwidth and stall reasons",
        remedy="install Nsight Compute (nsight-compute), where there is such a device",
    )


def _sign() -> Ability:
    name = "sign kernels and check signatures"
    if find_spec("cryptography") is not None:
        return Ability(name=name, able=True, detail="Ed25519; kernelevolve key new makes a key")
    detail = "there is no cryptography: signatures can't be made or checked"
    return Ability(name=name, able=False, detail=detail, remedy="pip install cryptography")


def _sandbox() -> Ability:
    name = "run foreign code behind walls"
    try:
        missing = find_missing()
    except (OptimizerError, OSError) as error:
        remedy = "allow starting processes and setting their limits (setrlimit, setsid)"
        return Ability(name=name, able=False, detail=str(error), remedy=remedy)
    if missing:
        detail = "; ".join(f"no wall of the kind {wall}: {LOST[wall]}" for wall in missing)
        return Ability(name=name, able=False, detail=detail, remedy=WALLS_REMEDY)
    detail = f"tried: {', '.join(LOST)}; each run also has a scrubbed environment and a deadline"
    return Ability(name=name, able=True, detail=detail)


def _module(name: str) -> ModuleType | None:
    """Return a module that needs Triton, None where Triton is absent."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


CHECKS: Final[tuple[Callable[[], Ability], ...]] = (
    _build_cpp, _time_cpu, _compile_triton, _interpret_triton, _run_cuda, _count_cuda, _sandbox,
    _sign,
)  # fmt: skip
"""All that is examined, in the order told."""
