"""A registry: the operators, hardware and models of a folder. Parsed, never executed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from operator_registry.checks.hardware import check_devices, check_hardware
from operator_registry.checks.models import check_model
from operator_registry.document import LARGEST_FILE_BYTES
from operator_registry.fault import Fault, RegistryError
from operator_registry.hardware import HardwareSpec
from operator_registry.model import ModelSpec
from operator_registry.reading import (
    FILES_REMEMBERED,
    AnyRecord,
    Reading,
    missing,
    read_operator,
    read_record,
)
from operator_registry.record import Record, Slug, canonical_json, digest
from operator_registry.source import syntax_digest
from operator_registry.spec import OperatorSpec

__all__ = [
    "CATALOG",
    "Fault",
    "Operator",
    "Registry",
    "RegistryConfig",
    "RegistryError",
    "load_registry",
    "parse_registry",
    "read_files",
]

CATALOG = Path(__file__).parent / "catalog"
"""The registry that ships with this package."""
PATTERNS = ("registry.yaml", "operators/*/*", "hardware/*", "models/*")
"""Where a registry's files are; only ``.yaml``, ``.yml`` (to complain) and ``.py`` are read."""


class Operator(Record):
    """An operator's spec with the text of its reference: all that a judge needs."""

    spec: OperatorSpec
    source: str
    """The text of ``reference.py``."""

    @property
    def name(self) -> str:
        """Return the operator's name."""
        return self.spec.name

    @property
    def digest(self) -> str:
        """Return a hash of what is computed; prose, comments and owners do not change it."""
        spec = self.spec.model_copy(update={"summary": "", "owners": ()})
        # Canonical JSON sorts its keys, but the order of tensors is that of the arguments.
        order = f"{','.join(spec.inputs)} -> {','.join(spec.outputs)}"
        return digest(canonical_json(spec), order, syntax_digest(self.source))


class RegistryConfig(Record):
    """``registry.yaml``: what is searched for, and how hard."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    hardware: tuple[Slug, ...] = Field(min_length=1)
    """The devices that kernels are searched for."""
    minimum_gain: float = Field(default=1.05, ge=1)
    budget_s: float = Field(default=60.0, gt=0)


@dataclass(frozen=True)
class Registry:
    """All specs of one revision."""

    config: RegistryConfig
    operators: Mapping[str, Operator] = field(default_factory=dict)
    hardware: Mapping[str, HardwareSpec] = field(default_factory=dict)
    models: Mapping[str, ModelSpec] = field(default_factory=dict)


def load_registry(folder: Path) -> Registry:
    """Return the registry of a folder.

    Raises:
        RegistryError: Something in it is wrong; holds every fault.
    """
    return parse_registry(read_files(folder))


def read_files(folder: Path) -> dict[str, str]:
    """Return the texts of a registry's files by their path in the folder.

    Bytes that are no UTF-8 come back as lone surrogates, which `parse_registry` reports.
    """
    found = (path for pattern in PATTERNS for path in sorted(folder.glob(pattern)))
    return {
        path.relative_to(folder).as_posix(): _read(path)
        for path in found
        if path.suffix in {".yaml", ".yml", ".py"} and path.is_file()
    }


def parse_registry(files: Mapping[str, str]) -> Registry:
    """Return the registry that the files hold; nothing of it is run.

    Args:
        files: Texts by path in the registry, as `read_files` returns them.

    Raises:
        RegistryError: Something in them is wrong; holds every fault.
    """
    hardware = _read_hardware(files)
    operators = _read_operators(files)
    models = _read_models(files, operators=operators, hardware=hardware)
    config = _read_config(files, hardware=hardware)
    readings: tuple[Reading[Any], ...] = (
        *operators.values(),
        *hardware.values(),
        *models.values(),
        config,
    )
    faults = [*_misplaced(files), *(fault for reading in readings for fault in reading.faults)]
    if faults or config.record is None:
        raise RegistryError(faults)
    return Registry(
        config=config.record,
        operators={
            name: _make_operator(
                name,
                files[f"operators/{name}/operator.yaml"],
                files[f"operators/{name}/reference.py"],
            )
            for name in operators
        },
        hardware=_records(hardware),
        models=_records(models),
    )


@lru_cache(maxsize=FILES_REMEMBERED)
def _make_operator(folder: str, text: str, source: str) -> Operator:
    spec = read_operator(folder, text, source).record
    assert spec is not None  # noqa: S101 - what has no fault has a record
    return Operator(spec=spec, source=source)


def _read_operators(files: Mapping[str, str]) -> dict[str, Reading[OperatorSpec]]:
    folders = {path.split("/")[1] for path in files if path.startswith("operators/")}
    return {
        folder: read_operator(
            folder,
            files.get(f"operators/{folder}/operator.yaml"),
            files.get(f"operators/{folder}/reference.py"),
        )
        for folder in sorted(folders)
    }


def _read_hardware(files: Mapping[str, str]) -> dict[str, Reading[HardwareSpec]]:
    found = {}
    for stem, path in _stems(files, "hardware"):
        reading = read_record(HardwareSpec, path, files[path])
        findings = check_hardware(reading.record, stem) if reading.record else ()
        found[stem] = reading.with_findings(findings)
    return found


def _read_models(
    files: Mapping[str, str],
    *,
    operators: Mapping[str, Reading[OperatorSpec]],
    hardware: Mapping[str, Reading[HardwareSpec]],
) -> dict[str, Reading[ModelSpec]]:
    specs = {name: reading.record for name, reading in operators.items()}
    devices = {name: reading.record for name, reading in hardware.items()}
    found = {}
    for stem, path in _stems(files, "models"):
        reading = read_record(ModelSpec, path, files[path])
        if reading.record:
            findings = check_model(reading.record, stem, operators=specs, hardware=devices)
            reading = reading.with_findings(findings)
        found[stem] = reading
    return found


def _read_config(
    files: Mapping[str, str], *, hardware: Mapping[str, Reading[HardwareSpec]]
) -> Reading[RegistryConfig]:
    path = "registry.yaml"
    if path not in files:
        remedy = "add it with `schema: 1` and `hardware: [...]`; a registry's root holds it"
        return Reading(path, None, None, (missing(path, remedy),))
    reading = read_record(RegistryConfig, path, files[path])
    if reading.record is None:
        return reading
    devices = {name: each.record for name, each in hardware.items()}
    return reading.with_findings(check_devices(reading.record.hardware, devices))


def _misplaced(files: Mapping[str, str]) -> Iterator[Fault]:
    for path in files:
        if path.endswith(".yml"):
            message = "is not read, since it ends in .yml"
            remedy = f"rename it to {path.removesuffix('.yml')}.yaml"
            yield Fault(path=path, line=1, message=message, remedy=remedy)


def _stems(files: Mapping[str, str], folder: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the path of each YAML file of a folder."""
    for path in sorted(files):
        if path.startswith(f"{folder}/") and path.endswith(".yaml"):
            yield path.removeprefix(f"{folder}/").removesuffix(".yaml"), path


def _records(readings: Mapping[str, Reading[AnyRecord]]) -> dict[str, AnyRecord]:
    return {name: each.record for name, each in readings.items() if each.record is not None}


def _read(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(LARGEST_FILE_BYTES + 1).decode("utf-8", errors="surrogateescape")
