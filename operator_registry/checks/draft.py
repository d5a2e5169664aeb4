"""The parts of an operator's document that can be read, even where others can't."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from operator_registry.document import Node
from operator_registry.spec import (
    AttributeSpec,
    Axis,
    DType,
    InputSpec,
    OperatorSpec,
    PrecisionPolicy,
    SumAxis,
    TensorSpec,
    Workload,
)

Entry = TypeVar("Entry")
INTEGERS: frozenset[DType] = frozenset({"int64", "int32", "int16", "int8", "uint8"})
FLOATS: frozenset[DType] = frozenset({"float64", "float32", "float16", "bfloat16"})


class Section(Generic[Entry]):
    """A mapping of a document: the names that stand in it, and the entries that can be read."""

    def __init__(self, names: Sequence[str], entries: Mapping[str, Entry], *, known: bool) -> None:
        self.names = tuple(names)
        self.entries = entries
        self.known = known
        """False where the section itself is absent or no mapping: nothing follows from it."""

    def __iter__(self) -> Iterator[tuple[str, Entry]]:
        """Yield each name with its entry, where the entry could be read."""
        yield from self.entries.items()


@dataclass(frozen=True)
class Draft:
    """An operator's document as far as it can be read, so that one error hides no other."""

    name: str | None
    axes: Section[Axis]
    dtypes: Section[tuple[DType, ...]]
    inputs: Section[InputSpec]
    attributes: Section[AttributeSpec]
    outputs: Section[TensorSpec]
    reference: str | None
    equivalents: tuple[str, ...]
    precision: PrecisionPolicy
    workloads: Mapping[int, Workload]

    def tensors(self) -> Iterator[tuple[str, str, TensorSpec]]:
        """Yield the section, the name and the spec of each tensor."""
        yield from (("inputs", name, tensor) for name, tensor in self.inputs)
        yield from (("outputs", name, tensor) for name, tensor in self.outputs)

    def find_tensor(self, name: str) -> TensorSpec | None:
        """Return an input or an output."""
        return self.inputs.entries.get(name) or self.outputs.entries.get(name)

    def list_axis_of(self, axis: str) -> str | None:
        """Return the axis over whose list members the sizes of `axis` differ, if they do."""
        kind = self.axes.entries.get(axis)
        source = self.find_tensor(kind.sum_of) if isinstance(kind, SumAxis) else None
        return source.list_over if source else None

    def dtypes_of(self, tensor: TensorSpec) -> frozenset[str]:
        """Return the dtypes that a tensor can have; none where its variable is not known."""
        if tensor.dtype in INTEGERS | FLOATS | {"bool"}:
            return frozenset({tensor.dtype})
        return frozenset(self.dtypes.entries.get(tensor.dtype, ()))


def make_draft(root: Node) -> Draft:
    """Return what can be read of an operator's document."""
    workloads = root.child("workloads")
    listed = workloads.value if workloads and isinstance(workloads.value, list) else []
    read = {i: _read(TypeAdapter(Workload), node) for i, node in enumerate(listed)}
    equivalents = root.child("equivalents")
    return Draft(
        name=_text(root.child("name")),
        axes=_section(root, "axes", TypeAdapter(Axis)),
        dtypes=_section(root, "dtypes", TypeAdapter(tuple[DType, ...]), optional=True),
        inputs=_section(root, "inputs", TypeAdapter(InputSpec)),
        attributes=_section(root, "attributes", TypeAdapter(AttributeSpec), optional=True),
        outputs=_section(root, "outputs", TypeAdapter(TensorSpec)),
        reference=_text(root.child("reference")),
        equivalents=_read(TypeAdapter(tuple[str, ...]), equivalents) or () if equivalents else (),
        precision=_precision(root),
        workloads={i: workload for i, workload in read.items() if workload},
    )


def draft_of(spec: OperatorSpec) -> Draft:
    """Return the draft of a document in which everything can be read."""
    return Draft(
        name=spec.name,
        axes=Section(tuple(spec.axes), spec.axes, known=True),
        dtypes=Section(tuple(spec.dtypes), spec.dtypes, known=True),
        inputs=Section(tuple(spec.inputs), spec.inputs, known=True),
        attributes=Section(tuple(spec.attributes), spec.attributes, known=True),
        outputs=Section(tuple(spec.outputs), spec.outputs, known=True),
        reference=spec.reference,
        equivalents=spec.equivalents,
        precision=spec.precision,
        workloads=dict(enumerate(spec.workloads)),
    )


def _section(
    root: Node, key: str, adapter: TypeAdapter[Any], *, optional: bool = False
) -> Section[Any]:
    node = root.child(key)
    if node is None or not isinstance(node.value, dict):
        return Section((), {}, known=optional and node is None)
    read = {name: _read(adapter, entry) for name, entry in node.value.items()}
    entries = {name: entry for name, entry in read.items() if entry is not None}
    return Section(tuple(read), entries, known=True)


def _precision(root: Node) -> PrecisionPolicy:
    node = root.child("precision")
    return (_read(TypeAdapter(PrecisionPolicy), node) if node else None) or PrecisionPolicy()


def _text(node: Node | None) -> str | None:
    return node.value if node and isinstance(node.value, str) else None


def _read(adapter: TypeAdapter[Entry], node: Node) -> Entry | None:
    """Return the entry, keys that it does not know left aside, or None."""
    plain = node.plain()
    try:
        return adapter.validate_json(json.dumps(plain), strict=True)
    except ValidationError as error:
        errors = error.errors(include_url=False)
    if any(each["type"] != "extra_forbidden" for each in errors):
        return None
    for each in errors:
        _remove(plain, each["loc"])
    try:
        return adapter.validate_json(json.dumps(plain), strict=True)
    except ValidationError:
        return None


def _remove(plain: Any, location: Sequence[str | int]) -> None:  # noqa: ANN401 - any document
    for key in location[:-1]:
        if isinstance(plain, dict) and key in plain:  # else it is a tag of pydantic's
            plain = plain[key]
    plain.pop(location[-1], None)
