"""Whether an operator's public workloads lie inside what its spec allows."""

from collections.abc import Iterator
from typing import get_args

from operator_registry.checks.draft import Draft
from operator_registry.fault import Finding, name_one_of
from operator_registry.spec import AttributeSpec, RangeAxis, Scalar, TargetName, Workload


def check_workloads(draft: Draft) -> Iterator[Finding]:
    """Yield what disagrees between the workloads and the axes, dtypes and attributes."""
    named: dict[str, int] = {}
    alike: dict[object, str] = {}
    for place, workload in draft.workloads.items():
        if workload.name in named:
            message = f"workload {workload.name} stands here again"
            yield Finding(("workloads", place, "name"), message, "give each its own name")
        named.setdefault(workload.name, place)
        yield from _check_alike(place, workload, alike)
        yield from _check_sizes(draft, place, workload)
        yield from _check_dtypes(draft, place, workload)
        yield from _check_attributes(draft, place, workload)
        if len(set(workload.targets)) < len(workload.targets):
            message = f"workload {workload.name} names a target twice"
            yield Finding(("workloads", place, "targets"), message, "name each once")


def _check_alike(place: int, workload: Workload, alike: dict[object, str]) -> Iterator[Finding]:
    for target in workload.targets or get_args(TargetName):
        parts = (workload.sizes, workload.dtypes, workload.attributes)
        key = (target, *(tuple(sorted(part.items())) for part in parts))
        other = alike.setdefault(key, workload.name)
        if other != workload.name:
            message = f"workload {workload.name} measures the same as {other}"
            yield Finding(
                ("workloads", place), message, "keep one of them, with the sum of weights"
            )
            return


def _check_sizes(draft: Draft, place: int, workload: Workload) -> Iterator[Finding]:
    where = ("workloads", place, "sizes")
    if not draft.axes.known:
        return
    ranged = {name: axis for name, axis in draft.axes if isinstance(axis, RangeAxis)}
    for name, size in workload.sizes.items():
        if name not in draft.axes.names:
            message = f"workload {workload.name} sizes the unknown axis {name!r}"
            yield Finding((*where, name), message, name_one_of(name, ranged))
        elif name in ranged:
            yield from _check_size((*where, name), workload.name, size, ranged[name])
        elif name in draft.axes.entries:
            message = f"workload {workload.name} sizes {name}, which follows from the inputs"
            yield Finding((*where, name), message, "remove it")
    for name in ranged:
        if name not in workload.sizes:
            message = f"workload {workload.name} has no size for the axis {name}"
            yield Finding(where, message, f"add `{name}:` to its sizes")


def _check_size(
    where: tuple[str | int, ...], workload: str, size: int, axis: RangeAxis
) -> Iterator[Finding]:
    name = where[-1]
    if not axis.min <= size <= axis.max:
        message = f"workload {workload} has {name} = {size}, outside {axis.min}..{axis.max}"
        yield Finding(where, message, "change the size or the axis' range")
    elif size % axis.multiple_of:
        message = f"workload {workload} has {name} = {size}, no multiple of {axis.multiple_of}"
        below = size - size % axis.multiple_of
        nearest = below if below >= axis.min else below + axis.multiple_of
        yield Finding(where, message, f"write {nearest}, or change the axis")


def _check_dtypes(draft: Draft, place: int, workload: Workload) -> Iterator[Finding]:
    where = ("workloads", place, "dtypes")
    if not draft.dtypes.known:
        return
    for name, dtype in workload.dtypes.items():
        options = draft.dtypes.entries.get(name)
        if name not in draft.dtypes.names:
            message = f"workload {workload.name} binds the unknown dtype variable {name}"
            yield Finding((*where, name), message, name_one_of(name, draft.dtypes.names))
        elif options and dtype not in options:
            message = (
                f"workload {workload.name} binds {name} to {dtype}, which dtypes does not list"
            )
            yield Finding((*where, name), message, f"use one of {', '.join(options)}, or list it")
    for name in draft.dtypes.names:
        if name not in workload.dtypes:
            message = f"workload {workload.name} leaves the dtype variable {name} open"
            yield Finding(where, message, f"add `dtypes: {{{name}: ...}}` to it")


def _check_attributes(draft: Draft, place: int, workload: Workload) -> Iterator[Finding]:
    if not draft.attributes.known:
        return
    for name, value in workload.attributes.items():
        where = ("workloads", place, "attributes", name)
        attribute = draft.attributes.entries.get(name)
        if name not in draft.attributes.names:
            message = f"workload {workload.name} sets the unknown attribute {name!r}"
            yield Finding(where, message, name_one_of(name, draft.attributes.names))
        elif attribute and _sort(value) != _sort(attribute.value):
            message = f"workload {workload.name} sets {name} to {value}, of another type"
            yield Finding(where, message, f"write it like {attribute.value}")
        elif attribute and not _is_inside(value, attribute):
            inside = f"{attribute.min}..{attribute.max}"
            message = f"workload {workload.name} sets {name} to {value}, outside {inside}"
            yield Finding(where, message, "change the value or the attribute's range")


def _is_inside(value: Scalar, attribute: AttributeSpec) -> bool:
    is_above = attribute.min is None or attribute.min <= value
    return is_above and (attribute.max is None or value <= attribute.max)


def _sort(value: Scalar) -> str:
    return type(value).__name__
