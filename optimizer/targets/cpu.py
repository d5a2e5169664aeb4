"""C++ for the host's processor: built by g++, several candidates at a time, called by ctypes."""

import ctypes
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from optimizer.errors import RunnerError
from optimizer.targets.artefact import (
    describe,
    not_built,
    read_artefact,
    source_sha256,
    write_artefact,
)
from optimizer.targets.symbols import foreign_symbols
from optimizer.targets.target import (
    Artefact,
    Build,
    BuildError,
    Instance,
    KernelTable,
    Launcher,
)
from optimizer.targets.translation_unit import (
    exported_name,
    file_of,
    find_missing,
    is_loner,
    write_exports,
    write_unit,
)

# Nothing here relaxes IEEE arithmetic for a whole process: -ffast-math would link code that turns
# denormals off for torch as well. A kernel that wants its sums reordered says so with omp simd.
FLAGS: Final = (
    "-std=c++17", "-O3", "-fopenmp", "-fPIC", "-shared", "-fno-math-errno", "-fno-trapping-math",
    "-ffp-contract=fast", "-fno-semantic-interposition", "-fno-gnu-unique", "-w",
    "-fmax-errors=20", "-fdiagnostics-color=never",
)  # fmt: skip
COMPILER: Final = "g++"
REMEDY: Final = "apt-get install g++"
_LIBRARY: Final = "kernels.so"
_OWN_INIT_BYTES: Final = 8
_LOG_CHARACTERS: Final = 6000
_BLAMED = re.compile(r"\bvariant_(\d+)\.cpp:\d+")
_OWN_NAMES = re.compile(r"(?:\bvariant_\w+::)?(\b\w+?)_[0-9a-f]{12}_[0-9a-f]{12}\b")
_INIT_ARRAY = re.compile(r"\(INIT_ARRAYSZ\)\s+(\d+)")
_V3: Final = frozenset({"avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"})
_V4: Final = _V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
_LEVELS: Final = ("x86-64-v2", "x86-64-v3", "x86-64-v4")


def host_cpu_arch() -> str:
    """Return the x86-64 level of this machine's processor, such as ``x86-64-v3``."""
    flags = set(Path("/proc/cpuinfo").read_text(encoding="utf-8").split())
    if flags >= _V4:
        return "x86-64-v4"
    return "x86-64-v3" if flags >= _V3 else "x86-64-v2"


def find_cpu_obstacle(arch: str) -> str | None:
    """Return why this machine can't build and run C++ for a level, None where it can."""
    host = host_cpu_arch()
    if _level(arch) > _level(host):
        return f"this processor is {host}, which can't run code for {arch}"
    if shutil.which(COMPILER) is None:
        return f"there is no {COMPILER} here; install it: {REMEDY}"
    return None


@cache
def compiler_version() -> str:
    """Return the first line that the host compiler says of itself; empty where there is none."""
    try:
        done = subprocess.run((COMPILER, "--version"), capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.partition("\n")[0]


@dataclass(frozen=True)
class CpuTarget:
    """Builds for one level of the processor, such as ``x86-64-v3``."""

    arch: str

    @property
    def toolchain(self) -> str:
        """See `Target.toolchain`."""
        return " ".join((compiler_version(), *FLAGS, self.arch))

    def build(
        self, builds: Sequence[Build], folders: Sequence[Path]
    ) -> Sequence[Artefact | BuildError]:
        """See `Target.build`.

        Raises:
            RunnerError: No compiler.
        """
        if not compiler_version():
            msg = f"there is no {COMPILER} here; install it: {REMEDY}"
            raise RunnerError(msg)
        workers = len(os.sched_getaffinity(0))
        task = _Task(tuple(range(len(builds))), tuple(builds), tuple(folders))
        with ThreadPoolExecutor(max_workers=workers) as pool:
            parts = list(pool.map(self._build_together, _shared_out(task, workers)))
        found = {position: result for part in parts for position, result in part.items()}
        return [found[position] for position in range(len(builds))]

    def load(self, folder: Path) -> KernelTable:
        """See `Target.load`."""
        artefact = read_artefact(folder, target="cpu")
        if _level(artefact.arch) > _level(host_cpu_arch()):
            msg = f"{folder} is built for {artefact.arch}; this processor is {host_cpu_arch()}"
            raise OSError(msg)
        library = ctypes.CDLL(str((folder / _LIBRARY).resolve()))
        return CpuKernels(library, artefact)

    def _build_together(self, task: "_Task") -> dict[int, Artefact | BuildError]:
        """Build some of the candidates as one library; those that it can't take, alone."""
        with tempfile.TemporaryDirectory(prefix="kernelevolve-") as name:
            library = Path(name) / _LIBRARY
            log = find_missing(task.builds) or self._compile(task.builds, library)
            alone = len(task.builds) == 1
            if log is None and (alone or not _is_suspicious(library)):
                return {p: self._place(task, p, library) for p in task.positions}
        if len(task.builds) == 1:
            return {task.positions[0]: BuildError(_readable(log or ""))}
        blamed = _blamed(log or "") or set(range(len(task.builds)))
        parts = [task.part({index}) for index in sorted(blamed)]
        if rest := set(range(len(task.builds))) - blamed:
            parts.append(task.part(rest))
        return {p: result for part in parts for p, result in self._build_together(part).items()}

    def _compile(self, builds: Sequence[Build], library: Path) -> str | None:
        """Return the compiler's messages where it refuses, else None."""
        unit, exports = library.with_name("unit.cpp"), library.with_name("exports.map")
        unit.write_text(write_unit(builds), encoding="utf-8")
        exports.write_text(write_exports(builds), encoding="utf-8")
        done = subprocess.run(
            (
                COMPILER,
                *FLAGS,
                f"-march={self.arch}",
                f"-Wl,--version-script={exports}",
                "-o",
                str(library),
                str(unit),
            ),
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        return done.stderr if done.returncode else None

    def _place(self, task: "_Task", position: int, library: Path) -> Artefact:
        """Give a candidate's folder its copy of the library."""
        index = task.positions.index(position)
        build, folder = task.builds[index], task.folders[index]
        folder.mkdir(parents=True, exist_ok=True)
        # A new file, since a library that is in use must not change under its user.
        fresh = folder / f"{_LIBRARY}.new"
        shutil.copyfile(library, fresh)
        fresh.replace(folder / _LIBRARY)
        artefact = Artefact(
            target="cpu",
            arch=self.arch,
            source_sha256=source_sha256(build.code),
            compiled=tuple(describe(i, file=folder / _LIBRARY) for i in build.instances),
            foreign=foreign_symbols(folder / _LIBRARY),
        )
        write_artefact(folder, artefact)
        return artefact


@dataclass(frozen=True)
class _Task:
    """Candidates that are built as one library, and their places among all."""

    positions: tuple[int, ...]
    builds: tuple[Build, ...]
    folders: tuple[Path, ...]

    def part(self, indices: set[int]) -> "_Task":
        """Return the task for some of the candidates only."""
        kept = sorted(indices)
        return _Task(
            tuple(self.positions[i] for i in kept),
            tuple(self.builds[i] for i in kept),
            tuple(self.folders[i] for i in kept),
        )


@dataclass(frozen=True)
class CpuKernels:
    """The kernels of a loaded library."""

    library: ctypes.CDLL
    artefact: Artefact

    def launcher(self, instance: Instance) -> Launcher:
        """See `KernelTable.launcher`."""
        if instance.symbol not in {compiled.symbol for compiled in self.artefact.compiled}:
            raise not_built(instance)
        name = exported_name(instance, source=self.artefact.source_sha256)
        function = self.library[name]
        function.argtypes = [_c_type(kind) for kind in instance.types]
        function.restype = None

        def launch(grid: tuple[int, ...], arguments: Sequence[int | float]) -> None:
            function(*arguments)

        return launch


def _c_type(kind: str) -> type[ctypes.c_int64 | ctypes.c_double | ctypes.c_void_p]:
    match kind:
        case "i64":
            return ctypes.c_int64
        case "fp64":
            return ctypes.c_double
        case _:
            return ctypes.c_void_p


def _shared_out(task: _Task, workers: int) -> list[_Task]:
    """Return one task for each worker, and one for each candidate that must be built alone."""
    codes = [build.code for build in task.builds]
    # Of equal sources one is enough in a library: their exported names are the same.
    loners = {i for i, code in enumerate(codes) if is_loner(code) or code in codes[:i]}
    others = [i for i in range(len(task.builds)) if i not in loners]
    groups = [set(others[w::workers]) for w in range(workers)]
    return [task.part(group) for group in [*groups, *({i} for i in loners)] if group]


def _blamed(log: str) -> set[int]:
    """Return which candidates' code the compiler's errors stand in."""
    lines = [line for line in log.splitlines() if "error:" in line]
    return {int(position) for line in lines for position in _BLAMED.findall(line)}


def _readable(log: str) -> str:
    """Return the compiler's messages as if the candidate's code were a file of its own."""
    plain = _OWN_NAMES.sub(r"\1", log.replace(file_of(0), "kernel.cpp"))
    return plain[:_LOG_CHARACTERS]


def _is_suspicious(library: Path) -> bool:
    """Return whether a library does what not all candidates in it should answer for."""
    return _has_initialisers(library) or bool(foreign_symbols(library))


def _has_initialisers(library: Path) -> bool:
    """Return whether loading a library runs code of a candidate, which others must not suffer."""
    done = subprocess.run(
        ("readelf", "--dynamic", str(library)), capture_output=True, text=True, check=False
    )
    sizes = [int(size) for size in _INIT_ARRAY.findall(done.stdout)]
    return not sizes or max(sizes) > _OWN_INIT_BYTES


def _level(arch: str) -> int:
    return _LEVELS.index(arch) if arch in _LEVELS else len(_LEVELS)
