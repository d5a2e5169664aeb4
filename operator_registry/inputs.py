"""Inputs of an operator for a workload, drawn from a seed; needs torch."""

import linecache
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType

import torch
from torch import Tensor

from operator_registry.distributions import Source
from operator_registry.registry import Operator
from operator_registry.spec import (
    Distribution,
    IdsFrom,
    InputSpec,
    Lengths,
    Made,
    Normal,
    Offsets,
    OneMoreAxis,
    OperatorSpec,
    Permutation,
    RangeAxis,
    Scalar,
    SortedUniqueIds,
    SumAxis,
    Uniform,
    Workload,
)

Size = int | tuple[int, ...]
"""One size, or one for each member of a list of tensors."""
Value = Tensor | list[Tensor]


def load_reference(operator: Operator) -> ModuleType:
    """Return the reference's module. This runs foreign code: only in a process to be killed."""
    name = f"kernelevolve_reference_{operator.name}_{operator.digest[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    file = f"<{operator.name}/reference.py>"
    module = ModuleType(name)
    module.__file__ = file
    # Tracebacks and torch.compile look the lines up here, and the module by its name.
    lines = operator.source.splitlines(keepends=True)
    linecache.cache[file] = (len(operator.source), None, lines, file)
    sys.modules[name] = module
    try:
        exec(compile(operator.source, file, "exec", dont_inherit=True), module.__dict__)  # noqa: S102
    except BaseException:
        del sys.modules[name]
        raise
    return module


def make_inputs(  # noqa: PLR0913 - all that a draw depends on
    operator: Operator,
    workload: Workload,
    *,
    seed: int,
    scale: float = 1.0,
    distribution: Distribution = "stated",
    device: str | torch.device = "cpu",
    module: ModuleType | None = None,
) -> tuple[Value, ...]:
    """Return the inputs in the order of the spec, the same ones for the same seed and device.

    Args:
        operator: The operator.
        workload: Sizes and dtypes.
        seed: Decides all values.
        scale: A factor on the values of floating inputs.
        distribution: By which values are drawn, all inside the domain; ``stated``: by the spec's
            own description. Values of the kind ``made`` are always so.
        device: Where the inputs are made.
        module: The reference's module, for values of the kind ``made``; loaded if absent.

    Raises:
        ValueError: A function for values of the kind ``made`` returns another shape or dtype.
    """
    generator = torch.Generator(device=device).manual_seed(seed)
    precision = operator.spec.precision
    greatest = max(precision.input_scales, default=1.0)
    source = Source(generator, distribution, precision.domain, greatest)
    draw = _Draw(operator, workload, source, scale, module)
    return tuple(draw.value(name) for name in operator.spec.inputs)


def resolve_sizes(
    spec: OperatorSpec, inputs: Sequence[Value], attributes: Mapping[str, Scalar] | None = None
) -> dict[str, Size]:
    """Return the size of each axis that the inputs show, by their shapes.

    Raises:
        ValueError: An input has another rank, length or kind than the spec says.
    """
    if len(inputs) != len(spec.inputs):
        wanted = f"{len(spec.inputs)} inputs ({', '.join(spec.inputs)})"
        msg = f"{spec.name} takes {wanted}, got {len(inputs)}"
        raise ValueError(msg)
    sizes: dict[str, Size] = {}
    for (name, tensor), value in zip(spec.inputs.items(), inputs, strict=True):
        if tensor.list_over is None:
            if not isinstance(value, Tensor):
                msg = f"{spec.name}: {name} must be a tensor, got {type(value).__name__}"
                raise ValueError(msg)
            _bind(sizes, name, tensor.shape, value.shape)
            continue
        if isinstance(value, Tensor) or not all(isinstance(member, Tensor) for member in value):
            msg = f"{spec.name}: {name} must be a list of tensors over {tensor.list_over}"
            raise ValueError(msg)
        _bind(sizes, name, (tensor.list_over,), (len(value),))
        _bind_members(spec, sizes, name, value)
    return sizes


def _bind(sizes: dict[str, Size], name: str, axes: Sequence[str], shape: Sequence[int]) -> None:
    if len(axes) != len(shape):
        msg = f"{name} has the shape {tuple(shape)}, wanted [{', '.join(axes)}]"
        raise ValueError(msg)
    for axis, size in zip(axes, shape, strict=True):
        if sizes.setdefault(axis, size) != size:
            msg = f"{name} has {size} along {axis}, which is {sizes[axis]} elsewhere"
            raise ValueError(msg)


def _bind_members(
    spec: OperatorSpec, sizes: dict[str, Size], name: str, members: Sequence[Tensor]
) -> None:
    axes = spec.inputs[name].shape
    gathered: dict[str, list[int]] = {axis: [] for axis in axes if spec.has_member_sizes(axis)}
    for member in members:
        single: dict[str, Size] = {k: v for k, v in sizes.items() if k not in gathered}
        _bind(single, name, axes, member.shape)
        for axis, size in zip(axes, member.shape, strict=True):
            if axis in gathered:
                gathered[axis].append(size)
            else:
                sizes[axis] = size
    for axis, each in gathered.items():
        if sizes.setdefault(axis, tuple(each)) != tuple(each):
            msg = f"{name} has {tuple(each)} along {axis}, which is {sizes[axis]} elsewhere"
            raise ValueError(msg)


@dataclass
class _Draw:
    """One draw of all inputs; an input that others are made from is made first."""

    operator: Operator
    workload: Workload
    source: Source
    scale: float
    module: ModuleType | None
    made: dict[str, Value] = field(default_factory=dict)

    def value(self, name: str) -> Value:
        if name not in self.made:
            tensor = self.operator.spec.inputs[name]
            if tensor.list_over is None:
                self.made[name] = self._tensor(tensor, 0)
            else:
                members = self._size(tensor.list_over, 0)
                self.made[name] = [self._tensor(tensor, member) for member in range(members)]
        return self.made[name]

    def _member(self, name: str, member: int) -> Tensor:
        value = self.value(name)
        return value if isinstance(value, Tensor) else value[member]

    def _size(self, axis: str, member: int) -> int:
        match self.operator.spec.axes[axis]:
            case RangeAxis():
                return self.workload.sizes[axis]
            case OneMoreAxis(one_more_than=other):
                return self._size(other, member) + 1
            case SumAxis(sum_of=name):
                return int(self._member(name, member).sum())

    def _tensor(self, tensor: InputSpec, member: int) -> Tensor:
        shape = tuple(self._size(axis, member) for axis in tensor.shape)
        dtype: torch.dtype = getattr(torch, self.workload.dtypes.get(tensor.dtype, tensor.dtype))
        value = self._values(tensor, shape, dtype, member)
        at_the_end = isinstance(tensor.values, Normal) and self.source.distribution == "hostile"
        if self.scale != 1.0 and value.is_floating_point() and not at_the_end:
            value = value * self.scale
        return value.to(dtype)

    def _values(  # noqa: PLR0911 - one case for each kind of values
        self, tensor: InputSpec, shape: tuple[int, ...], dtype: torch.dtype, member: int
    ) -> Tensor:
        source = self.source
        match tensor.values:
            case Normal() as values:
                return source.normal(values, shape, dtype)
            case Uniform() as values:
                return source.uniform(values, shape, dtype)
            case Lengths() as values:
                return source.lengths(values, shape)
            case SortedUniqueIds() as values:
                return source.sorted_ids(values, shape[0])
            case Permutation():
                return source.permutation(shape[0])
            case Offsets(of=name):
                lengths = self._member(name, member)
                return torch.nn.functional.pad(lengths.cumsum(0), (1, 0))
            case IdsFrom(table=name, hit_share=hit_share):
                return source.ids(self._member(name, member), shape, hit_share)
            case Made(function=name):
                return self._made_by(name, tensor, shape, dtype)

    def _made_by(
        self, function: str, tensor: InputSpec, shape: tuple[int, ...], dtype: torch.dtype
    ) -> Tensor:
        if self.module is None:
            self.module = load_reference(self.operator)
        sizes = {**self.workload.sizes, **dict(zip(tensor.shape, shape, strict=True))}
        value = getattr(self.module, function)(self.source.generator, sizes, dtype)
        if not isinstance(value, Tensor) or (tuple(value.shape), value.dtype) != (shape, dtype):
            got = (
                f"{tuple(value.shape)} {value.dtype}" if isinstance(value, Tensor) else repr(value)
            )
            msg = f"{self.operator.name}: {function} made {got:.200}, wanted {shape} {dtype}"
            raise ValueError(msg)
        return value.to(self.source.generator.device)
