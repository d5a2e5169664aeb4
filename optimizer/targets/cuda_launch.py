"""Compiled Triton kernels on an NVIDIA device: loaded and launched through the driver."""

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import torch

from optimizer.targets.artefact import not_built, read_artefact
from optimizer.targets.cubin import CubinFacts, Parameters
from optimizer.targets.driver import PLAIN_SHARED_BYTES, Driver, open_driver
from optimizer.targets.target import Compiled, Instance, KernelTable, Launcher


def find_cuda_obstacle(arch: str) -> str | None:
    """Return why this machine can't run what is built for an architecture, None where it can."""
    try:
        open_driver()
    except OSError as error:
        return str(error)
    if not torch.cuda.is_available():
        return f"torch {torch.__version__} finds no CUDA device"
    device = torch.cuda.current_device()
    major, minor = torch.cuda.get_device_capability(device)
    if arch != f"sm_{major}{minor}":
        name = torch.cuda.get_device_name(device)
        return f"{name} is sm_{major}{minor} and can't run code for {arch}"
    return None


def load_kernels(folder: Path) -> KernelTable:
    """Return the kernels of a built folder, for the current device.

    Raises:
        OSError: There is no driver, no device, or one of another architecture.
    """
    artefact = read_artefact(folder, target="cuda")
    if obstacle := find_cuda_obstacle(artefact.arch):
        msg = f"{folder} can't be loaded: {obstacle}"
        raise OSError(msg)
    driver = open_driver()
    device = torch.cuda.current_device()
    torch.zeros(1, device=f"cuda:{device}")  # makes torch's context, which kernels share
    if not driver.has_context():
        driver.use_device(device)
    functions = {c.symbol: _load(driver, folder, c, device) for c in artefact.compiled}
    # The public way to the current stream makes an object and takes ten times as long.
    current_stream: Callable[[int], int] = torch._C._cuda_getCurrentRawStream  # noqa: SLF001
    return CudaKernels(driver, device, functions, current_stream)


@dataclass(frozen=True)
class Function:
    """A kernel that the driver has loaded."""

    handle: int
    facts: CubinFacts


@dataclass(frozen=True)
class CudaKernels:
    """The kernels of a loaded folder, for the device that was current when it was loaded."""

    driver: Driver
    device: int
    functions: Mapping[str, Function]
    current_stream: Callable[[int], int]
    """Returns torch's current stream of a device, as the driver knows it."""

    def launcher(self, instance: Instance) -> Launcher:
        """See `KernelTable.launcher`."""
        function = self.functions.get(instance.symbol)
        if function is None:
            raise not_built(instance)
        return CudaLauncher(self, function, Parameters(instance.types))


class CudaLauncher:
    """Launches a kernel on torch's current stream.

    The parameters' memory is made once; a launch writes values into it. The driver copies them
    before it returns, so that one memory serves all launches, one at a time.
    """

    def __init__(self, kernels: CudaKernels, function: Function, parameters: Parameters) -> None:
        self._driver = kernels.driver
        self._device = kernels.device
        self._stream = kernels.current_stream
        self._function = function.handle
        self._facts = function.facts
        self._threads = function.facts.warps * 32
        self._pack = parameters.packed.pack_into
        self._memory = ctypes.create_string_buffer(parameters.packed.size)
        base = ctypes.addressof(self._memory)
        places = [base + offset for offset in parameters.offsets]
        self._places = (ctypes.c_void_p * len(places))(*places)
        self._places_address = ctypes.addressof(self._places)
        self._lock = Lock()

    def __call__(self, grid: tuple[int, ...], arguments: Sequence[int | float]) -> None:
        """Launch.

        Raises:
            DriverError: The driver refuses.
        """
        scratch = self._make_scratch(grid) if self._facts.scratch_bytes else None
        address = 0 if scratch is None else scratch.data_ptr()
        with self._lock:
            self._pack(self._memory, 0, *arguments, address, 0)
            code = self._launch(*grid)
            if code and not self._driver.has_context():
                # The first use of the device by this thread, with nothing of torch before it.
                self._driver.use_device(self._device)
                code = self._launch(*grid)
        if code:
            what = f"launch of {self._facts.name} with grid {grid}"
            raise self._driver.error(what, code)

    def _launch(self, x: int, y: int = 1, z: int = 1) -> int:
        code: int = self._driver.launch_kernel(
            self._function, x, y, z, self._threads, 1, 1, self._facts.shared_bytes,
            self._stream(self._device), self._places_address, None,
        )  # fmt: skip
        return code

    def _make_scratch(self, grid: tuple[int, ...]) -> torch.Tensor:
        """Return global scratch memory; it is freed in stream order, so after the kernel."""
        size = self._facts.scratch_bytes * math.prod(grid)
        return torch.empty(size, dtype=torch.uint8, device=f"cuda:{self._device}")


def _load(driver: Driver, folder: Path, compiled: Compiled, device: int) -> Function:
    cubin = folder / compiled.file
    facts = CubinFacts.from_json(cubin.with_suffix(".json").read_text(encoding="utf-8"))
    handle = driver.load_function(cubin.read_bytes(), facts.name)
    if facts.shared_bytes > PLAIN_SHARED_BYTES:
        driver.allow_shared(handle, facts.shared_bytes, device=device)
    return Function(handle, facts)
