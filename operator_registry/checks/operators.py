"""Whether the names in an operator's spec agree: axes, tensors, attributes."""

import keyword
from collections.abc import Iterator
from itertools import chain

from operator_registry.checks.draft import INTEGERS, Draft
from operator_registry.checks.precision import check_precision
from operator_registry.checks.values import check_values
from operator_registry.checks.workloads import check_workloads
from operator_registry.fault import Finding, dotted, name_one_of
from operator_registry.spec import OneMoreAxis, RangeAxis, SumAxis, TensorSpec

FUNCTIONS_OF_PLANS = frozenset(
    {"cdiv", "next_power_of_2", "min", "max", "total", "largest", "log2"}
)
"""A launch plan calls these by name (`optimizer.expression`), so no tensor may be called so."""
KEYWORDS = frozenset(keyword.kwlist) | {
    "auto", "bool", "case", "catch", "char", "const", "default", "delete", "do", "double", "enum",
    "explicit", "extern", "float", "friend", "goto", "inline", "int", "long", "mutable",
    "namespace", "new", "operator", "private", "protected", "public", "register", "short", "signed",
    "sizeof", "static", "struct", "switch", "template", "this", "throw", "typedef", "typename",
    "union", "unsigned", "using", "virtual", "void", "volatile",
}  # fmt: skip
"""Words of Python and C++: names of a spec become names in code."""


def check_operator(draft: Draft, folder: str) -> Iterator[Finding]:
    """Yield what disagrees in an operator's spec."""
    if draft.name is not None and draft.name != folder:
        message = f"name is {draft.name!r}, but the folder is {folder!r}"
        yield Finding(("name",), message, "give both the same name")
    yield from chain(
        _check_names(draft),
        _check_axes(draft),
        _check_tensors(draft),
        _check_use(draft),
        check_values(draft),
        _check_attributes(draft),
        check_precision(draft),
        check_workloads(draft),
    )


def _check_names(draft: Draft) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    for section in ("axes", "inputs", "attributes", "outputs"):
        for name in getattr(draft, section).names:
            if name in seen:
                message = f"{section}.{name} has the same name as {seen[name]}.{name}"
                yield Finding((section, name), message, "rename one: a plan knows both by name")
            seen.setdefault(name, section)
            if name in FUNCTIONS_OF_PLANS | KEYWORDS:
                message = f"{section}.{name} is a word of Python, C++ or launch plans"
                yield Finding((section, name), message, f"rename it, for example to {name}_")
    for section in ("inputs", "outputs"):
        if getattr(draft, section).known and not getattr(draft, section).names:
            yield Finding((section,), f"{section} is empty", "declare at least one tensor")


def _check_axes(draft: Draft) -> Iterator[Finding]:
    for name, axis in draft.axes:
        match axis:
            case SumAxis():
                yield from _check_sum_axis(draft, name, axis)
            case OneMoreAxis(one_more_than=other):
                where = ("axes", name, "one_more_than")
                if other not in draft.axes.names:
                    remedy = name_one_of(other, draft.axes.names)
                    yield Finding(where, f"{dotted(where)} names no axis: {other!r}", remedy)
                elif isinstance(draft.axes.entries.get(other), OneMoreAxis):
                    message = f"{dotted(where)} names {other}, which counts from another axis too"
                    yield Finding(where, message, "name an axis with a range or a sum")
            case RangeAxis():
                pass


def _check_sum_axis(draft: Draft, name: str, axis: SumAxis) -> Iterator[Finding]:
    where = ("axes", name, "sum_of")
    if axis.sum_of not in (*draft.inputs.names, *draft.outputs.names):
        if draft.inputs.known and draft.outputs.known:
            remedy = name_one_of(axis.sum_of, (*draft.inputs.names, *draft.outputs.names))
            yield Finding(where, f"{dotted(where)} names no tensor: {axis.sum_of!r}", remedy)
        return
    source = draft.find_tensor(axis.sum_of)
    if source and draft.dtypes_of(source) - INTEGERS:
        message = f"{dotted(where)} names {axis.sum_of}, whose dtype is no integer"
        yield Finding(where, message, "sum an integer tensor, such as lengths")
    if axis.sum_of in draft.inputs.names:
        if axis.at_most is not None:
            message = f"axes.{name}.at_most is of no use: the inputs decide this size"
            yield Finding(("axes", name, "at_most"), message, "remove it")
        return
    yield from _check_bound(draft, name, axis)


def _check_bound(draft: Draft, name: str, axis: SumAxis) -> Iterator[Finding]:
    if axis.at_most is None:
        message = f"axes.{name} has no at_most, though only the output {axis.sum_of} decides it"
        remedy = "add `at_most:` and an axis of the inputs that it can't exceed"
        yield Finding(("axes", name), message, remedy)
        return
    where = ("axes", name, "at_most")
    bound = draft.axes.entries.get(axis.at_most)
    if axis.at_most not in draft.axes.names:
        remedy = name_one_of(axis.at_most, draft.axes.names)
        yield Finding(where, f"{dotted(where)} names no axis: {axis.at_most!r}", remedy)
    elif isinstance(bound, SumAxis) and bound.sum_of in draft.outputs.names:
        message = f"{dotted(where)} names {axis.at_most}, which an output decides as well"
        yield Finding(where, message, "name an axis of the inputs")
    elif draft.list_axis_of(axis.at_most) not in {None, draft.list_axis_of(name)}:
        message = f"{dotted(where)} names {axis.at_most}, which has a size for each list member"
        yield Finding(where, message, "name an axis with one size")


def _check_tensors(draft: Draft) -> Iterator[Finding]:
    for section, name, tensor in draft.tensors():
        here = f"{section}.{name}"
        for place, axis in enumerate(tensor.shape):
            where = (section, name, "shape", place)
            if axis not in draft.axes.names:
                if draft.axes.known:
                    remedy = name_one_of(axis, draft.axes.names)
                    yield Finding(where, f"{here} has the unknown axis {axis!r}", remedy)
                continue
            yield from _check_axis_in_tensor(draft, where, axis, tensor)
        yield from _check_list(draft, section, name, tensor)
        is_open = not draft.dtypes_of(tensor) and tensor.dtype not in draft.dtypes.names
        if is_open and draft.dtypes.known:
            message = f"{here} has the dtype variable {tensor.dtype}, which dtypes lacks"
            remedy = name_one_of(tensor.dtype, draft.dtypes.names)
            if not draft.dtypes.names:
                remedy = f"add `dtypes: {{{tensor.dtype}: [float32]}}` or write a dtype"
            yield Finding((section, name, "dtype"), message, remedy)


def _check_axis_in_tensor(
    draft: Draft, where: tuple[str | int, ...], axis: str, tensor: TensorSpec
) -> Iterator[Finding]:
    here = dotted(where[:2])
    kind = draft.axes.entries.get(axis)
    outputs_decide = isinstance(kind, SumAxis) and kind.sum_of in draft.outputs.names
    if where[0] == "inputs" and outputs_decide:
        message = f"{here} has the axis {axis}, whose size only an output decides"
        yield Finding(where, message, "give it an axis of the inputs")
    list_axis = draft.list_axis_of(axis)
    if list_axis is not None and tensor.list_over != list_axis:
        message = f"{here} has the axis {axis}, which has one size for each member over {list_axis}"
        yield Finding(where, message, f"add `list_over: {list_axis}`")


def _check_list(draft: Draft, section: str, name: str, tensor: TensorSpec) -> Iterator[Finding]:
    where = (section, name, "list_over")
    over = tensor.list_over
    if over is None or not draft.axes.known:
        return
    if over not in draft.axes.names:
        remedy = name_one_of(over, draft.axes.names)
        yield Finding(where, f"{dotted(where)} names no axis: {over!r}", remedy)
    elif not isinstance(draft.axes.entries.get(over, RangeAxis(max=1)), RangeAxis):
        message = f"{dotted(where)} names {over}, which has no range"
        yield Finding(where, message, "count list members by an axis with `max:`")


def _check_use(draft: Draft) -> Iterator[Finding]:
    """Yield axes and dtype variables of which nothing tells the value."""
    sections = (draft.inputs, draft.outputs)
    if any(set(section.names) != set(section.entries) or not section.known for section in sections):
        return  # A tensor that can't be read may use them.
    shown = _axes_of(tensor for _, tensor in draft.inputs)
    in_outputs = _axes_of(tensor for _, tensor in draft.outputs)
    for name, axis in draft.axes:
        of_output = isinstance(axis, SumAxis) and axis.sum_of in draft.outputs.names
        if name in shown or (of_output and name in in_outputs):
            continue
        if name in in_outputs:
            message = f"axes.{name} stands in no input, so nothing tells its size"
            yield Finding(("axes", name), message, "use it in an input's shape")
        else:
            message = f"axes.{name} is used by no tensor"
            yield Finding(("axes", name), message, "use it in a shape, or remove it")
    used = {tensor.dtype for _, _, tensor in draft.tensors()}
    for name, options in draft.dtypes:
        where = ("dtypes", name)
        if not options or len(set(options)) < len(options):
            message = f"dtypes.{name} is empty or names a dtype twice"
            yield Finding(where, message, "name each dtype once")
        if name not in used:
            message = f"dtypes.{name} is used by no tensor"
            yield Finding(where, message, "use it as a tensor's dtype, or remove it")


def _axes_of(tensors: Iterator[TensorSpec]) -> frozenset[str]:
    return frozenset(
        axis for t in tensors for axis in (*t.shape, *([t.list_over] if t.list_over else []))
    )


def _check_attributes(draft: Draft) -> Iterator[Finding]:
    for name, attribute in draft.attributes:
        where = ("attributes", name)
        low, high = attribute.min, attribute.max
        if low is None and high is None:
            continue
        if low is None or high is None:
            missing = "min" if low is None else "max"
            yield Finding(where, f"{dotted(where)} has a range without {missing}", f"add {missing}")
        elif not type(low) is type(high) is type(attribute.value):
            message = f"{dotted(where)} mixes whole numbers, fractions or booleans"
            yield Finding(where, message, "write value, min and max alike, such as 1.0 and 2.0")
        elif not low <= attribute.value <= high:
            message = f"{dotted(where)} is {attribute.value}, outside its range {low}..{high}"
            yield Finding((*where, "value"), message, "move the value or the range")
