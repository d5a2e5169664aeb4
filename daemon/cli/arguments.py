"""What a command was asked about: folders, operators and hardware, found or refused."""

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TypeVar

from daemon.host import detect_host
from operator_registry.hardware import HardwareSpec
from operator_registry.registry import CATALOG, Operator, Registry, load_registry

Anything = TypeVar("Anything")


class MisuseError(Exception):
    """The command was asked for something that is not there; the message says what is."""


def find_registry_folder(given: Path | None) -> Path:
    """Return the registry's folder: the given one, else the current one, else ours.

    Raises:
        MisuseError: There is no registry in the given one.
    """
    if given is None:
        here = Path()
        return here if (here / "registry.yaml").exists() else CATALOG
    if not given.is_dir():
        msg = f"{given} is no folder; name the one that holds registry.yaml"
        raise MisuseError(msg)
    return given


def find_operator(registry: Registry, name: str) -> Operator:
    """Return an operator.

    Raises:
        MisuseError: There is none of that name.
    """
    return _pick(registry.operators, name, kind="operator")


def find_hardware(registry: Registry, name: str) -> HardwareSpec:
    """Return a hardware; ``cpu`` is this machine's own processor.

    Raises:
        MisuseError: There is none of that name.
    """
    wanted = detect_host().cpu if name == "cpu" else name
    return _pick(registry.hardware, wanted, kind="hardware")


def load_given(folder: Path | None) -> Registry:
    """Return the registry that a command works on.

    Raises:
        MisuseError: There is no such folder.
        RegistryError: It has faults.
    """
    return load_registry(find_registry_folder(folder))


def _pick(known: Mapping[str, Anything], name: str, *, kind: str) -> Anything:
    if name in known:
        return known[name]
    near = get_close_matches(name, known, n=1)
    meant = f"did you mean {near[0]}? " if near else ""
    msg = f"the registry has no {kind} {name}; {meant}it has {', '.join(sorted(known)) or 'none'}"
    raise MisuseError(msg)
