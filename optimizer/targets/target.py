"""How source in a language becomes something that runs on a hardware."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, Protocol

from operator_registry.record import Record, digest
from optimizer.errors import OptimizerError

Launcher = Callable[[tuple[int, ...], Sequence[int | float]], None]
"""``launcher(grid, arguments)``: addresses and numbers, in order, on the current stream."""
Constant = int | float | bool | str


class BuildError(OptimizerError):
    """The compiler refused the code; the message is its log."""


class Instance(Record):
    """A kernel with all that its compiled form depends on.

    Argument types: ``*fp32 *fp16 *bf16 *fp64 *i64 *i32 *i16 *i8 *u8 *i1`` for tensors; for a table
    of addresses of tensors of type T ``*i64`` in Triton, which casts what it loads, and ``**T`` in
    C++; ``i32 i64 fp32`` for scalars (in C++ ``i64 fp64``). A constant that is a string is a dtype.
    """

    kernel: str
    types: tuple[str, ...]
    divisible: tuple[bool, ...] = ()
    """Which arguments (addresses, sizes) are multiples of 16; empty in C++."""
    constants: tuple[tuple[str, Constant], ...] = ()
    warps: int = 4
    stages: int = 1

    @property
    def symbol(self) -> str:
        """Return a name for the compiled form: the kernel and a short hash of the rest."""
        return f"{self.kernel}_{digest(self)[:12]}"


class Build(Record):
    """Code to compile and the instances wanted of it."""

    code: str
    instances: tuple[Instance, ...]


class Compiled(Record):
    """What the compiler reports of one instance."""

    kernel: str
    symbol: str
    file: str
    """The artefact's file, relative to the build's folder."""
    sha256: str
    registers: int | None = None
    spill_bytes: int | None = None
    shared_bytes: int | None = None
    warps: int | None = None


class Artefact(Record):
    """A build's result, written beside its files as ``artefact.json``."""

    schema_version: Literal[1] = 1
    target: str
    arch: str
    source_sha256: str
    compiled: tuple[Compiled, ...]
    foreign: tuple[str, ...] = ()
    """Symbols that it takes from whatever process loads it; native code only."""


class KernelTable(Protocol):
    """Compiled kernels, ready to be launched."""

    def launcher(self, instance: Instance) -> Launcher:
        """Return the launcher of an instance.

        Raises:
            KeyError: The instance was not built.
        """
        ...


class Target(Protocol):
    """One way to build and run. `build` needs no device; `load` does."""

    @property
    def toolchain(self) -> str:
        """What a compiled form depends on besides the code: compiler, version, flags, device."""
        ...

    def build(
        self, builds: Sequence[Build], folders: Sequence[Path]
    ) -> Sequence[Artefact | BuildError]:
        """Compile each build into its folder; one that fails does not harm the others.

        Runs in the calling process and may run the code's module level: call it in a worker that
        can be killed.
        """
        ...

    def load(self, folder: Path) -> KernelTable:
        """Return the kernels of a folder that `build` filled.

        Raises:
            OSError: The folder holds no artefact for this device.
        """
        ...
