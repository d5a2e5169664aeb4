"""What a child must see of the file system so that Python, PyTorch, compilers and drivers run.

All else is hidden: the user's home, other programs' data, the judge's own folders.
"""

import site
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).parents[2]
_PACKAGES: Final = ("operator_registry", "knowledge", "optimizer")
_SYSTEM: Final = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store",
    "/opt/nvidia", "/opt/rocm",
    "/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
    "/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/localtime", "/etc/OpenCL",
    "/etc/vulkan", "/etc/nvidia",
    "/sys/bus", "/sys/class", "/sys/dev", "/sys/devices", "/sys/module", "/sys/kernel/mm",
)  # fmt: skip
_LIBRARIES: Final = ("LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "ROCM_PATH")
"""Variables that name folders which a driver or a compiler is looked for in."""
_OPTIONAL: Final = Path("/opt")
_DEVICES: Final[Mapping[str, tuple[str, ...]]] = {
    "cpu": (),
    "cuda": ("nvidia*", "dxg", "kfd", "dri"),  # AMD's devices have this name in PyTorch too
}


def readable(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the files and folders that a child may read.

    Args:
        environment: The judge's; it says where libraries and modules lie.
    """
    names = (*_LIBRARIES, "PYTHONPATH", "PATH")
    return _readable(tuple((name, environment.get(name, "")) for name in names))


def shown_with(shown: tuple[str, ...], more: Iterable[Path]) -> tuple[str, ...]:
    """Return paths that are shown already, and those of more that do not lie in them."""
    known = {Path(path) for path in shown}
    added = (
        path for path in outermost(more) if known.isdisjoint([*Path(path).parents, Path(path)])
    )
    return (*shown, *added)


@cache
def _readable(named: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """Return the same, found once: it takes as long as all walls together."""
    wanted = [*map(Path, _SYSTEM), *_python_needs(), *_told(dict(named))]
    return outermost(path for path in wanted if path.exists())


def outermost(paths: Iterable[Path]) -> tuple[str, ...]:
    """Return the paths of which no other one is a parent; links and what they lead to, both."""
    both = {Path(form) for path in paths for form in (path.absolute(), path.resolve())}
    return tuple(sorted(str(path) for path in both if both.isdisjoint(path.parents)))


def devices(kind: str) -> tuple[str, ...]:
    """Return the device files of a kind of device, as PyTorch names it."""
    found = [path for pattern in _DEVICES[kind] for path in Path("/dev").glob(pattern)]
    return tuple(sorted(map(str, found)))


@cache
def _python_needs() -> tuple[Path, ...]:
    """Return the interpreter, its library, and where packages are installed."""
    prefixes = {Path(p) for p in (sys.prefix, sys.base_prefix, sys.exec_prefix) if p != "/"}
    installed = {Path(path) for path in sysconfig.get_paths().values() if path}
    own = {Path(sys.executable).parent, Path(sys.executable).resolve().parent}
    sites = {Path(path) for path in (*site.getsitepackages(), site.getusersitepackages())}
    packages = {_ROOT / name for name in _PACKAGES}
    return tuple(prefixes | installed | own | sites | packages)


def _told(environment: Mapping[str, str]) -> list[Path]:
    """Return folders that the environment names, as far as they are nobody's home."""
    libraries = [p for name in _LIBRARIES for p in environment[name].split(":") if p]
    modules = [path for path in environment["PYTHONPATH"].split(":") if path]
    programs = [path for path in environment["PATH"].split(":") if path]
    optional = [
        _OPTIONAL / Path(path).relative_to(_OPTIONAL).parts[0]
        for path in (*programs, *libraries)
        if _OPTIONAL in Path(path).parents
    ]
    named = [Path(path) for path in (*libraries, *modules)]
    homes = {Path.home(), Path("/"), _ROOT}
    return [*optional, *(path for path in named if path.is_absolute() and path not in homes)]
