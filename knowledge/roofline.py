"""The least time that physics allows (pure)."""

import contextlib
from collections.abc import Mapping

from operator_registry.hardware import HardwareSpec
from operator_registry.spec import OperatorSpec, TensorSpec

BYTES: Mapping[str, int] = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2,
    "int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint8": 1, "bool": 1,
}  # fmt: skip
"""Bytes of an element of each dtype."""
FAR_LARGER = 4
"""How many times the last-level cache data must be, so that they surely pass through DRAM."""
Size = int | tuple[int, ...]
"""One size, or one for each member of a list of tensors."""


class UnboundAxisError(ValueError):
    """The sizes lack an axis that a tensor uses."""

    def __init__(self, axis: str) -> None:
        super().__init__(f"no size is given for axis {axis}")
        self.axis = axis


def memory_bound_ms(
    spec: OperatorSpec,
    sizes: Mapping[str, Size],
    hardware: HardwareSpec,
    *,
    dtypes: Mapping[str, str],
) -> float:
    """Return the time to move the operator's data through DRAM once, in milliseconds.

    A mark to compare with, not a proof: a kernel need not read all of a table, and small data stay
    in a cache.

    Args:
        spec: The operator.
        sizes: Elements along each axis of `spec`, those that the data decide included.
        hardware: The device, for its peak DRAM bandwidth.
        dtypes: The dtype of each variable of `spec`.

    Raises:
        UnboundAxisError: `sizes` lacks an axis that a tensor uses.
    """
    tensors = (*spec.inputs.values(), *spec.outputs.values())
    return sum(bytes_of(t, sizes, dtypes) for t in tensors) / _bytes_per_ms(hardware)


def public_rooflines_ms(spec: OperatorSpec, hardware: HardwareSpec) -> dict[str, float]:
    """Return the memory-bound time of each public workload on a device, by its name.

    Those are left out whose data decide a size.
    """
    found = {}
    for workload in spec.workloads_on(hardware.target):
        with contextlib.suppress(UnboundAxisError):
            sizes, dtypes = workload.sizes, workload.dtypes
            found[workload.name] = memory_bound_ms(spec, sizes, hardware, dtypes=dtypes)
    return found


def impossible_below_ms(
    spec: OperatorSpec,
    sizes: Mapping[str, Size],
    hardware: HardwareSpec,
    *,
    dtypes: Mapping[str, str],
) -> float:
    """Return the time below which a cold measurement must be broken; 0 where nothing can be said.

    Only the outputs count: each of their bytes must be written, while what of the inputs must be
    read depends on their values. They convict only where they are far larger than the last-level
    cache.

    Raises:
        UnboundAxisError: `sizes` lacks an axis that an output uses.
    """
    written = sum(bytes_of(t, sizes, dtypes) for t in spec.outputs.values())
    cache_bytes = hardware.limits.last_level_cache_mb * 1e6
    if written < FAR_LARGER * cache_bytes:
        return 0.0
    # A cache's worth of the output may still wait to be written back.
    return (written - cache_bytes) / _bytes_per_ms(hardware)


def bytes_of(tensor: TensorSpec, sizes: Mapping[str, Size], dtypes: Mapping[str, str]) -> int:
    """Return the bytes of a tensor, or of all members of a list of them.

    Raises:
        UnboundAxisError: `sizes` lacks an axis of it.
    """
    itemsize = BYTES[dtypes.get(tensor.dtype, tensor.dtype)]
    if tensor.list_over is None:
        return itemsize * _elements(tensor, sizes, 0)
    members = _size(sizes, tensor.list_over, 0)
    return itemsize * sum(_elements(tensor, sizes, member) for member in range(members))


def _elements(tensor: TensorSpec, sizes: Mapping[str, Size], member: int) -> int:
    elements = 1
    for axis in tensor.shape:
        elements *= _size(sizes, axis, member)
    return elements


def _size(sizes: Mapping[str, Size], axis: str, member: int) -> int:
    if axis not in sizes:
        raise UnboundAxisError(axis)
    size = sizes[axis]
    return size[member] if isinstance(size, tuple) else size


def _bytes_per_ms(hardware: HardwareSpec) -> float:
    return hardware.limits.dram_bandwidth_gb_s * 1e9 / 1e3
