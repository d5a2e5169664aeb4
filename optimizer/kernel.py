"""A published kernel: its folder's records, and how they are read and written (no torch).

The folder stands alone: ``operator.json`` and ``hardware.json`` (what it computes, on what),
``dispatch.json`` (what serves which sizes), a folder for each variant with its code, ``plan.json``
(the candidate without its code), ``evidence.json`` and ``plots/``, ``verifications.jsonl`` (append
only) and a README for people.
"""

import hashlib
import math
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import Field, ValidationError

from knowledge.evidence import Evidence
from operator_registry.hardware import HardwareSpec
from operator_registry.record import Record, Slug
from operator_registry.registry import Operator
from optimizer.candidate import Candidate
from optimizer.errors import KernelFolderError

EVIDENCE_LIMIT_BYTES = 64_000
PLOT_LIMIT_BYTES = 200_000
VERIFICATIONS = "verifications.jsonl"
_CODE_FILES: Mapping[str, str] = {
    "triton": "kernel.py", "python": "kernel.py", "cpp": "kernel.cpp",
}  # fmt: skip
AnyRecord = TypeVar("AnyRecord", bound=Record)


class ByVariant(Record):
    """Served by one of the folder's variants."""

    kind: Literal["variant"] = "variant"
    variant: Slug


class ByPeer(Record):
    """Handed back to a PyTorch form, because no variant is as fast there."""

    kind: Literal["peer"] = "peer"
    peer: str
    """Form and mode, such as ``reference/eager``."""


class DispatchEntry(Record):
    """What serves the sizes around one public workload."""

    workload: Slug
    sizes: dict[str, int]
    dtypes: dict[str, str]
    served_by: Annotated[ByVariant | ByPeer, Field(discriminator="kind")]


class Dispatch(Record):
    """Which variant serves which call; frozen before the confirming run."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    operator: str
    operator_digest: str
    hardware: str
    entries: tuple[DispatchEntry, ...] = Field(min_length=1)

    def pick(self, sizes: Mapping[str, int], dtypes: Mapping[str, str]) -> DispatchEntry | None:
        """Return the entry nearest in log size among those of equal dtypes; None for no such."""
        equal = (entry for entry in self.entries if entry.dtypes == dict(dtypes))
        return min(equal, key=lambda entry: _distance(entry.sizes, sizes), default=None)


@dataclass(frozen=True)
class Variant:
    """A candidate with the evidence that got it published."""

    name: str
    candidate: Candidate
    evidence: Evidence


@dataclass(frozen=True)
class Kernel:
    """A kernel's folder as a value."""

    operator: Operator
    hardware: HardwareSpec
    dispatch: Dispatch
    variants: Mapping[str, Variant]


def make_kernel(
    operator: Operator, hardware: HardwareSpec, *, candidate: Candidate, evidence: Evidence
) -> Kernel:
    """Return the kernel that a confirming run has proven, its dispatch as the run froze it."""
    variant = Variant(variant_name(candidate), candidate, evidence)
    entries = tuple(
        DispatchEntry(
            workload=w.workload,
            sizes=w.sizes,
            dtypes=w.dtypes,
            served_by=(
                ByPeer(peer=w.served_by)
                if w.served_by in {peer.name for peer in w.peers}
                else ByVariant(variant=variant.name)
            ),
        )
        for w in evidence.workloads
    )
    dispatch = Dispatch(
        operator=operator.name,
        operator_digest=operator.digest,
        hardware=hardware.name,
        entries=entries,
    )
    return Kernel(operator, hardware, dispatch, {variant.name: variant})


def variant_name(candidate: Candidate) -> str:
    """Return the name of a candidate's folder: language and the start of its id."""
    return f"{candidate.plan.language}-{candidate.id[:12]}"


def source_sha256(code: str) -> str:
    """Return the hash by which evidence names the code that it is about."""
    return hashlib.sha256(code.encode()).hexdigest()


def read_kernel(folder: Path) -> Kernel:
    """Return the kernel of a folder; every hash in it has been compared.

    Raises:
        KernelFolderError: A file is absent, damaged, of another version or of another kernel.
    """
    operator = _read(Operator, folder / "operator.json")
    hardware = _read(HardwareSpec, folder / "hardware.json")
    dispatch = _read(Dispatch, folder / "dispatch.json")
    names = {e.served_by.variant for e in dispatch.entries if e.served_by.kind == "variant"}
    variants = {name: _read_variant(folder / name) for name in sorted(names)}
    kernel = Kernel(operator, hardware, dispatch, variants)
    if fault := find_mismatch(kernel):
        msg = f"{folder}: {fault}"
        raise KernelFolderError(msg)
    return kernel


def find_mismatch(kernel: Kernel) -> str | None:
    """Return why the files of a folder don't belong together, or None where they do."""
    if kernel.dispatch.operator_digest != kernel.operator.digest:
        return "dispatch.json is for another version of the operator than operator.json"
    for variant in kernel.variants.values():
        evidence = variant.evidence
        if evidence.source_sha256 != source_sha256(variant.candidate.code):
            return f"{variant.name}: the code is not the one that evidence.json is about"
        if evidence.candidate != variant.candidate.id:
            return f"{variant.name}: plan.json is not the one that evidence.json is about"
        if evidence.operator_digest != kernel.operator.digest:
            return f"{variant.name}: evidence.json is for another version of the operator"
    return None


def read_candidate(path: Path) -> Candidate:
    """Return a candidate from a variant's folder, from its code file, or from a JSON file.

    Raises:
        KernelFolderError: There is no plan beside the code, or a file is damaged.
    """
    if path.suffix == ".json" and path.name != "plan.json":
        return _read(Candidate, path)
    folder = path if path.is_dir() else path.parent
    candidate = _read(Candidate, folder / "plan.json")
    code = path if path.suffix in {".py", ".cpp"} else folder / code_file(candidate)
    return candidate.model_copy(update={"code": _text(code)})


def code_file(candidate: Candidate) -> str:
    """Return the name of the file that holds a candidate's code."""
    return _CODE_FILES[candidate.plan.language]


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Put a folder with these texts in the place of `folder`, as a whole or not at all.

    Lines that ``verifications.jsonl`` holds there stay.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        fresh.chmod(0o755)
        for name, text in files.items():
            (fresh / name).parent.mkdir(parents=True, exist_ok=True)
            (fresh / name).write_text(text, encoding="utf-8")
        told = folder / VERIFICATIONS
        (fresh / VERIFICATIONS).write_text(_text(told) if told.exists() else "", encoding="utf-8")
        _swap(fresh, folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _swap(fresh: Path, folder: Path) -> None:
    """A rename can't replace a filled folder: the old one steps aside for the moment between."""
    if folder.exists():
        aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        folder.replace(aside)
        fresh.replace(folder)
        shutil.rmtree(aside)
    else:
        fresh.replace(folder)


def _read_variant(folder: Path) -> Variant:
    evidence = _read(Evidence, folder / "evidence.json")
    return Variant(folder.name, read_candidate(folder), evidence)


def _read(record: type[AnyRecord], path: Path) -> AnyRecord:
    try:
        return record.from_json(_text(path))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        msg = f"{path}: {place}: {first['msg']}"
        raise KernelFolderError(msg) from error


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{path} can't be read: {error}"
        raise KernelFolderError(msg) from error


def _distance(one: Mapping[str, int], other: Mapping[str, int]) -> float:
    return sum(
        (math.log2(max(size, 1)) - math.log2(max(other.get(axis, size), 1))) ** 2
        for axis, size in one.items()
    )
