"""Triton for NVIDIA devices, compiled ahead of time: no device and no driver is needed for it."""

import contextlib
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import triton
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import get_ptxas, sm_arch_from_capability
from triton.compiler import ASTSource

from optimizer.targets.artefact import (
    describe,
    source_sha256,
    write_artefact,
)
from optimizer.targets.cubin import CubinFacts, Parameters, entry_parameter_sizes
from optimizer.targets.cuda_launch import load_kernels
from optimizer.targets.target import (
    Artefact,
    Build,
    BuildError,
    Compiled,
    Instance,
    KernelTable,
)
from optimizer.targets.triton_source import explain, find_kernel, load_source

_SOURCE: Final = "kernel.py"
_DIVISIBLE: Final = [["tt.divisibility", 16]]
_MISCOUNTS = 9
"""So many in a row are no chance any more."""
_RESOURCES = re.compile(r"REG:(\d+) STACK:(\d+)")
_SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")


@dataclass(frozen=True)
class CudaTarget:
    """Builds for one architecture, such as ``sm_90``."""

    arch: str
    warp_size: int = 32
    shared_limit_bytes: int | None = None
    """What a block can have; more is refused when built, not when launched."""

    @property
    def toolchain(self) -> str:
        """See `Target.toolchain`."""
        return f"triton {triton.__version__} {self.arch}"

    def build(
        self, builds: Sequence[Build], folders: Sequence[Path]
    ) -> Sequence[Artefact | BuildError]:
        """See `Target.build`. Triton's own cache is not used: foreign code runs beside it."""
        workers = len(os.sched_getaffinity(0))
        with (
            tempfile.TemporaryDirectory(prefix="kernelevolve-") as cache,
            knobs.cache.scope(),
            ThreadPoolExecutor(max_workers=workers) as pool,
        ):
            knobs.cache.dir = cache
            waiting = [
                self._start(build, folder, pool)
                for build, folder in zip(builds, folders, strict=True)
            ]
            return [self._finish(*started) for started in waiting]

    def load(self, folder: Path) -> KernelTable:
        """See `Target.load`."""
        return load_kernels(folder)

    def _start(
        self, build: Build, folder: Path, pool: ThreadPoolExecutor
    ) -> "tuple[Build, Path, list[Future[Compiled]] | BuildError]":
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / _SOURCE
        path.write_text(build.code, encoding="utf-8")
        try:
            module = load_source(build.code, str(path), interpreted=False)
        except BuildError as error:
            return build, folder, error
        return build, folder, [
            pool.submit(self._compile, module, instance, folder) for instance in build.instances
        ]  # fmt: skip

    def _finish(
        self, build: Build, folder: Path, started: "list[Future[Compiled]] | BuildError"
    ) -> Artefact | BuildError:
        if isinstance(started, BuildError):
            return started
        try:
            compiled = tuple(future.result() for future in started)
        except BuildError as error:
            return error
        artefact = Artefact(
            target="cuda",
            arch=self.arch,
            source_sha256=source_sha256(build.code),
            compiled=compiled,
        )
        write_artefact(folder, artefact)
        return artefact

    def _compile(self, module: ModuleType, instance: Instance, folder: Path) -> Compiled:
        """Compile one instance into the folder.

        Raises:
            BuildError: The compiler refuses it, or it can't be launched.
        """
        source = _make_source(module, instance)
        options = {
            "num_warps": instance.warps,
            "num_stages": instance.stages,
            "enable_fp_fusion": True,
        }
        target = GPUTarget("cuda", self._capability, self.warp_size)
        try:
            kernel = _insist(lambda: triton.compile(source, target, options))
        except Exception as error:
            raise BuildError(explain(error)) from error
        facts = CubinFacts(
            name=kernel.metadata.name,
            warps=kernel.metadata.num_warps,
            shared_bytes=kernel.metadata.shared,
            scratch_bytes=kernel.metadata.global_scratch_size,
        )
        self._refuse(facts, instance, kernel)
        cubin = folder / f"{instance.symbol}.cubin"
        cubin.write_bytes(kernel.asm["cubin"])
        cubin.with_suffix(".ptx").write_text(kernel.asm["ptx"], encoding="utf-8")
        cubin.with_suffix(".json").write_text(facts.to_json(), encoding="utf-8")
        registers, spills = self._resources(cubin)
        return describe(
            instance,
            file=cubin,
            registers=registers,
            spill_bytes=spills,
            shared_bytes=facts.shared_bytes,
            warps=facts.warps,
        )

    def _refuse(self, facts: CubinFacts, instance: Instance, kernel: Any) -> None:  # noqa: ANN401 - Triton is untyped
        """Refuse what could not be launched as `CudaKernels` launches it.

        Raises:
            BuildError: Too much shared memory, or parameters of another kind.
        """
        limit = self.shared_limit_bytes
        if limit is not None and facts.shared_bytes > limit:
            msg = (
                f"{instance.kernel} wants {facts.shared_bytes} bytes of shared memory, over {limit}"
            )
            raise BuildError(msg)
        declared = entry_parameter_sizes(kernel.asm["ptx"])
        if declared != Parameters(instance.types).sizes or kernel.metadata.profile_scratch_size:
            ours = Parameters(instance.types).sizes
            msg = f"{instance.kernel} takes parameters of {declared} bytes, the launch gives {ours}"
            raise BuildError(msg)

    @property
    def _capability(self) -> int:
        return int(self.arch.removeprefix("sm_"))

    def _resources(self, cubin: Path) -> tuple[int | None, int | None]:
        """Return registers a thread and bytes of spill stores and loads, as far as told."""
        told = _output(knobs.nvidia.cuobjdump.path, "--dump-resource-usage", str(cubin))
        found = _RESOURCES.search(told)
        if found is None:
            return None, None
        registers, stack = map(int, found.groups())
        if stack == 0:
            return registers, 0
        # Only the assembler tells spills from local arrays; it has to be run once more.
        capability = self._capability
        told = _output(
            get_ptxas(capability).path, "-v", f"--gpu-name={sm_arch_from_capability(capability)}",
            str(cubin.with_suffix(".ptx")), "-o", os.devnull,
        )  # fmt: skip
        spills = _SPILLS.search(told)
        return registers, sum(map(int, spills.groups())) if spills else None


def _make_source(module: ModuleType, instance: Instance) -> Any:  # noqa: ANN401 - Triton is untyped
    """Return what Triton compiles.

    Raises:
        BuildError: No such kernel, or the plan passes it other arguments than it takes.
    """
    kernel = find_kernel(module, instance)
    types = dict(zip(kernel.arguments, instance.types, strict=True))
    even = {n for n, d in zip(kernel.arguments, instance.divisible, strict=True) if d}
    positions = {name: (index,) for index, name in enumerate(kernel.names)}
    return ASTSource(
        fn=kernel.function,
        signature={name: types.get(name, "constexpr") for name in kernel.names},
        constexprs={positions[name]: value for name, value in kernel.constants.items()},
        attrs={positions[name]: _DIVISIBLE for name in kernel.names if name in even},
    )


def _insist(compile_once: Callable[[], Any]) -> Any:  # noqa: ANN401 - Triton is untyped
    """Return what Triton compiles, also where Python loses count of a syntax tree's depth.

    Python 3.11 keeps the count where threads share it, and one sometimes finds another's: no fault
    of the code.
    """
    for _ in range(_MISCOUNTS):
        with contextlib.suppress(SystemError):
            return compile_once()
    return compile_once()


def _output(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr
