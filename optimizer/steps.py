"""The steps of a launch plan, each made ready to run: a launch, a library call, a read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any

import torch
from torch import Tensor

from operator_registry.spec import OperatorSpec
from optimizer.binding import Address, Binding, BoundLaunch, Table, Unread, upper_bound
from optimizer.calls import Value, check_size
from optimizer.errors import PlanError
from optimizer.expression import Size
from optimizer.list_output import ListOutput
from optimizer.plan import LibraryCall, ReadSize
from optimizer.scope import Scope
from optimizer.targets.target import Launcher


class Frame:
    """One call under way."""

    kept: object = None
    """What must live until all kernels are launched."""
    scratch: Tensor | None = None

    def __init__(
        self,
        inputs: Sequence[Value],
        outputs: list[Value | ListOutput],
        values: list[int | float],
        scope: Scope,
    ) -> None:
        self.inputs = inputs
        self.outputs = outputs
        self.values = values
        self.scope = scope
        self.read: dict[str, Size] = {}


Step = Callable[[Frame], None]


@dataclass(frozen=True)
class Buffer:
    """Where a buffer lies in the call's scratch memory."""

    offset: int
    shape: tuple[int, ...]
    dtype: torch.dtype

    @property
    def size_bytes(self) -> int:
        """How much memory it takes."""
        elements = 1
        for size in self.shape:
            elements *= size
        return elements * self.dtype.itemsize


@dataclass(frozen=True)
class Layout:
    """Where the tensors of a call are found."""

    binding: Binding
    buffers: Mapping[str, Buffer]

    def tensor(self, frame: Frame, name: str) -> Value:
        """Return the input, output or buffer of a name."""
        spec = self.binding.spec
        if name in spec.inputs:
            return frame.inputs[list(spec.inputs).index(name)]
        if name in spec.outputs:
            output = frame.outputs[list(spec.outputs).index(name)]
            return output.members() if isinstance(output, ListOutput) else output
        buffer = self.buffers[name]
        assert frame.scratch is not None  # noqa: S101 - a buffer's offset says that there is one
        memory = frame.scratch[buffer.offset : buffer.offset + buffer.size_bytes]
        return memory.view(buffer.dtype).view(buffer.shape)


def make_launch(
    bound: BoundLaunch, launcher: Launcher, places: Sequence[int | Unread], *, skip_empty: bool
) -> Step | None:
    """Return the step that launches a kernel; None where there is nothing to launch.

    Args:
        bound: The launch.
        launcher: The compiled kernel.
        places: For each argument its index among the frame's values, or what is not known yet.
        skip_empty: Whether an empty grid is nothing to launch, rather than without meaning.
    """
    known = [place for place in places if isinstance(place, int)]
    grid = bound.grid
    if grid is None or not bound.sure or len(known) < len(places):
        return partial(_launch_late, bound, launcher, tuple(places), skip_empty)
    if skip_empty and 0 in grid:
        return None
    pick: Callable[[list[int | float]], Sequence[int | float]] = (
        itemgetter(*known) if len(known) > 1 else lambda values: [values[i] for i in known]
    )

    def launch(frame: Frame) -> None:
        launcher(grid, pick(frame.values))

    return launch


def make_library_call(step: LibraryCall, layout: Layout) -> Step:
    """Return the step that calls an ATen out-variant.

    Raises:
        PlanError: No such function, or it does not write into what it is given.
    """
    function, schema = _find_function(step)
    outs = [argument.name for argument in schema.arguments if argument.is_out]
    ins = [argument for argument in schema.arguments if not argument.is_out]
    if not outs or len(outs) != len(step.out):
        msg = f"{step.op} writes {len(outs)} tensors that it is given, the plan has {len(step.out)}"
        raise PlanError(msg)
    if len(step.arguments) > len(ins):
        msg = f"{step.op} takes {len(ins)} arguments, the plan gives {len(step.arguments)}"
        raise PlanError(msg)
    if unknown := [name for name in step.out if name not in layout.binding.memory]:
        msg = f"{step.op} writes {', '.join(unknown)}, which is no output and no buffer"
        raise PlanError(msg)
    arguments = [layout.binding.argument(text) for text in step.arguments]
    positional = sum(not argument.kwarg_only for argument in ins[: len(arguments)])

    def call(frame: Frame) -> None:
        given = [_library_argument(a, layout, frame, text) for a, text in zip(
            arguments, step.arguments, strict=True)]  # fmt: skip
        named = {a.name: v for a, v in zip(ins[positional:], given[positional:], strict=False)}
        into = {name: layout.tensor(frame, out) for name, out in zip(outs, step.out, strict=True)}
        shapes = [_shapes(value) for value in into.values()]
        function(*given[:positional], **named, **into)
        if shapes != [_shapes(value) for value in into.values()]:
            msg = f"{step.op} needs outputs of another shape than {shapes}"
            raise PlanError(msg)

    return call


def make_read(steps: Sequence[ReadSize], layout: Layout) -> Step:
    """Return the step that waits for the device and reads sizes from one buffer, all at once."""
    binding = layout.binding
    name = steps[0].buffer
    bounds = [upper_bound(binding.spec, step.axis, binding.setting.sizes) for step in steps]
    # Names that a read decides are of use only to steps that come after it.
    closing = binding.plan.steps[-len(steps) :] == tuple(steps)
    texts = [text for step in steps for text in (step.index, step.count) if text is not None]
    known = _ranges(steps, binding.scope) if all(map(binding.scope.knows, texts)) else None

    def read(frame: Frame) -> None:
        first, counts = known or _ranges(steps, frame.scope)
        begin, end = min(first), max(map(sum, zip(first, counts, strict=True)))
        memory = layout.tensor(frame, name)
        if not isinstance(memory, Tensor):
            msg = f"sizes are read from a buffer or tensor; {name} is a list"
            raise PlanError(msg)
        words = memory.reshape(-1)[begin:end].tolist()
        if len(words) != end - begin:
            msg = f"{name} has {memory.numel()} elements; {end - begin} from {begin} on are read"
            raise PlanError(msg)
        for step, bound, index, count in zip(steps, bounds, first, counts, strict=True):
            found = tuple(map(int, words[index - begin : index - begin + count]))
            size = found if isinstance(bound, tuple) or count != 1 else found[0]
            check_size(step.axis, size, bound, where=step.buffer)
            frame.read[step.axis] = size
            narrow(frame.outputs, binding.spec, step.axis, size)
        if not closing:
            frame.scope = binding.scope_after(frame.read)

    return read


def _ranges(steps: Sequence[ReadSize], scope: Scope) -> tuple[list[int], list[int]]:
    """Return for each read its first index and how many words it takes."""
    first = [int(scope.fixed(step.index)) for step in steps]
    return first, [1 if s.count is None else int(scope.fixed(s.count)) for s in steps]


def narrow(outputs: list[Value | ListOutput], spec: OperatorSpec, axis: str, size: Size) -> None:
    """Cut the outputs that have an axis to its true size."""
    for position, tensor in enumerate(spec.outputs.values()):
        for dimension, name in enumerate(tensor.shape):
            if name != axis:
                continue
            whole = outputs[position]
            if isinstance(whole, ListOutput):
                whole.narrow(dimension, size)
            elif isinstance(whole, Tensor):
                outputs[position] = whole.narrow(dimension, 0, _of_member(size, 0))


def _launch_late(
    bound: BoundLaunch,
    launcher: Launcher,
    places: tuple[int | Unread, ...],
    skip_empty: bool,  # noqa: FBT001 - `partial` binds it by position, out of any caller's sight
    frame: Frame,
) -> None:
    """Launch a kernel whose grid, arguments or condition a read size decides."""
    scope = frame.scope
    if bound.step.when is not None and not scope.fixed(bound.step.when):
        return
    if unread := [text for text in bound.step.grid if not scope.knows(text)]:
        msg = f"grid of {bound.step.kernel}: {unread[0]!r} is used before it is read"
        raise PlanError(msg)
    grid = scope.grid(bound.step)
    if skip_empty and 0 in grid:
        return
    arguments = [
        frame.values[place] if isinstance(place, int) else scope.fixed(place.expression)
        for place in places
    ]
    launcher(grid, arguments)


def _find_function(step: LibraryCall) -> tuple[Callable[..., object], Any]:
    """Return an ATen function and its schema, whose class torch does not type."""
    namespace, _, name = step.op.partition("::")
    packet, _, overload = name.partition(".")
    found = getattr(getattr(torch.ops.aten, packet, None), overload or "default", None)
    if namespace != "aten" or not isinstance(found, torch._ops.OpOverload):  # noqa: SLF001 - no public name
        msg = f"{step.op} is no ATen function; wanted is a name such as aten::mm.out"
        raise PlanError(msg)
    return found, found._schema  # noqa: SLF001 - torch offers no other way to a schema


def _library_argument(
    argument: object, layout: Layout, frame: Frame, text: str
) -> Value | int | float:
    match argument:
        case Address(name) | Table(name):
            return layout.tensor(frame, name)
        case _:
            return frame.scope.fixed(text)


def _shapes(value: Value) -> list[tuple[int, ...]]:
    return [tuple(t.shape) for t in ([value] if isinstance(value, Tensor) else value)]


def _of_member(size: Size, member: int) -> int:
    return size[member] if isinstance(size, tuple) else size
