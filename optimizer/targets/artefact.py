"""The record that a build leaves beside its files."""

import hashlib
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from optimizer.targets.target import Artefact, Compiled, Instance

_NAME: Final = "artefact.json"


def write_artefact(folder: Path, artefact: Artefact) -> None:
    """Write the record; the last thing that a build does, so a folder with it is complete."""
    (folder / _NAME).write_text(artefact.to_json(indent=1), encoding="utf-8")


def is_built(folder: Path) -> bool:
    """Return whether a build into the folder came to its end."""
    return (folder / _NAME).is_file()


def read_artefact(folder: Path, *, target: str) -> Artefact:
    """Return the record of a built folder.

    Raises:
        OSError: There is none, or it is of another target.
    """
    path = folder / _NAME
    try:
        artefact = Artefact.from_json(path.read_text(encoding="utf-8"))
    except ValidationError as error:
        msg = f"{path} is no artefact of this version; build it again"
        raise OSError(msg) from error
    if artefact.target != target:
        msg = f"{path} was built for {artefact.target}, wanted is {target}; build it again"
        raise OSError(msg)
    return artefact


def describe(instance: Instance, *, file: Path, **facts: int | None) -> Compiled:
    """Return what is told of one compiled instance."""
    return Compiled(
        kernel=instance.kernel,
        symbol=instance.symbol,
        file=file.name,
        sha256=hashlib.sha256(file.read_bytes()).hexdigest(),
        **facts,
    )


def source_sha256(code: str) -> str:
    """Return the hash of a source, by which an artefact tells what it was made from."""
    return hashlib.sha256(code.encode()).hexdigest()


def not_built(instance: Instance) -> KeyError:
    """Return the error for an instance that a folder does not hold."""
    return KeyError(f"{instance.kernel} was not built for {instance.to_json()}")
