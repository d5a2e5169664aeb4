"""A registry: the operators, hardware and models of a folder. Parsed, never executed."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import Field, ValidationError

from operator_registry.document import LARGEST_FILE_BYTES, DocumentError, parse_document
from operator_registry.fault import Fault, RegistryError
from operator_registry.hardware import HardwareSpec
from operator_registry.model import ModelSpec
from operator_registry.record import Record, Slug, canonical_json, digest
from operator_registry.source import syntax_digest
from operator_registry.spec import OperatorSpec

CATALOG = Path(__file__).parent / "catalog"
"""The registry that ships with this package."""

AnyRecord = TypeVar("AnyRecord", bound=Record)


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
    patterns = ("registry.yaml", "operators/*/*", "hardware/*", "models/*")
    found = (path for pattern in patterns for path in sorted(folder.glob(pattern)))
    return {
        path.relative_to(folder).as_posix(): _read(path)
        for path in found
        if path.suffix in {".yaml", ".yml", ".py"} and path.is_file()
    }


def parse_registry(files: Mapping[str, str]) -> Registry:
    """Return the registry that the files hold.

    Args:
        files: Texts by path, as `read_files` returns them.

    Raises:
        RegistryError: Something in them is wrong; holds every fault.
    """
    faults: list[Fault] = []
    config = _record(RegistryConfig, "registry.yaml", files, faults)
    operators: dict[str, Operator] = {}
    for name in _names(files, "operators/", "/operator.yaml"):
        spec = _record(OperatorSpec, f"operators/{name}/operator.yaml", files, faults)
        source = files.get(f"operators/{name}/reference.py", "")
        if spec:
            operators[name] = Operator(spec=spec, source=source)
    hardware: dict[str, HardwareSpec] = {}
    for name in _names(files, "hardware/", ".yaml"):
        if device := _record(HardwareSpec, f"hardware/{name}.yaml", files, faults):
            hardware[name] = device
    models: dict[str, ModelSpec] = {}
    for name in _names(files, "models/", ".yaml"):
        if model := _record(ModelSpec, f"models/{name}.yaml", files, faults):
            models[name] = model
    if faults or config is None:
        raise RegistryError(faults)
    return Registry(config, operators, hardware, models)


def _names(files: Mapping[str, str], start: str, end: str) -> Iterator[str]:
    for path in sorted(files):
        if path.startswith(start) and path.endswith(end):
            yield path[len(start) : -len(end)]


def _record(
    kind: type[AnyRecord], path: str, files: Mapping[str, str], faults: list[Fault]
) -> AnyRecord | None:
    if path not in files:
        faults.append(Fault(path=path, line=1, message="is missing", remedy="add it"))
        return None
    try:
        root, more = parse_document(path, files[path])
        faults += more
        return kind.model_validate_json(json.dumps(root.plain()), strict=True)
    except DocumentError as error:
        faults += error.faults
    except ValidationError as error:
        faults += [
            Fault(path=path, line=root.line_of(e["loc"]), message=e["msg"], remedy=str(e["loc"]))
            for e in error.errors()
        ]
    return None


def _read(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(LARGEST_FILE_BYTES + 1).decode("utf-8", errors="surrogateescape")
