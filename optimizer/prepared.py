"""A call with all worked out that its sizes decide; running it takes addresses and launches."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol, TypeAlias

import torch
from torch import Tensor

from optimizer.binding import (
    ALIGNMENT,
    Address,
    Argument,
    Array,
    Binding,
    BoundLaunch,
    Number,
    Table,
    Unread,
)
from optimizer.calls import Value, output_maker
from optimizer.errors import CallError
from optimizer.expression import cdiv, integer
from optimizer.list_output import ListOutput
from optimizer.plan import Launch, LibraryCall, ReadSize
from optimizer.scope import speaking_of
from optimizer.steps import (
    Buffer,
    Frame,
    Layout,
    Step,
    make_launch,
    make_library_call,
    make_read,
)
from optimizer.tables import WORD_BYTES, Tables
from optimizer.targets.target import KernelTable

_BUFFER_ALIGNMENT: Final = 256
_Bound: TypeAlias = BoundLaunch | LibraryCall | ReadSize | None


class Allocate(Protocol):
    """Makes memory, like `torch.empty`."""

    def __call__(
        self, size: Sequence[int], /, *, dtype: torch.dtype, device: torch.device
    ) -> Tensor:
        """Return a contiguous tensor that begins at a multiple of 16 bytes."""
        ...


@dataclass(frozen=True)
class Allocators:
    """What makes a call's memory."""

    scratch: Allocate
    outputs: Allocate
    """Asked once for each output, in the spec's order."""


class PreparedCall:
    """A plan at the sizes of one call.

    All that kernels are passed stands in one list of values, in this order: the addresses of single
    inputs, outputs and buffers, the addresses of tables and arrays, and the known numbers. A
    launch picks its arguments from there.
    """

    def __init__(
        self,
        binding: Binding,
        *,
        kernels: KernelTable,
        device: torch.device,
        allocate: Allocators,
        tables: Tables,
    ) -> None:
        self._binding = binding
        self._scope = binding.scope
        self._tables = tables
        self._device = device
        self._makers = [self._maker(name, allocate.outputs) for name in binding.spec.outputs]
        buffers, scratch_bytes, self._zero_bytes = _lay_out(binding)
        self._offsets = [buffer.offset for buffer in buffers.values()]
        self._make_scratch = partial(
            allocate.scratch, (scratch_bytes,), dtype=torch.uint8, device=device
        )
        self._words = _Words(binding)
        self._numbers: list[int | float] = []
        # What a compiled kernel assumes of addresses, C++ does not.
        self._mask = ALIGNMENT - 1 if binding.plan.language == "triton" else 0
        self._indices = _indices(binding)
        bounds = [binding.launch(s) if isinstance(s, Launch) else s for s in binding.plan.steps]
        for bound in bounds:
            if isinstance(bound, BoundLaunch):
                self._words.add(bound.arguments)
        self._table_base = len(self._indices)
        self._number_base = self._table_base + len(self._words.offsets)
        layout = Layout(binding, buffers)
        made = [self._step(bound, layout, kernels) for bound in _grouped(bounds)]
        self._steps = [step for step in made if step is not None]

    def __call__(self, inputs: Sequence[Value]) -> tuple[Value, ...]:
        """Run the plan and return its outputs.

        Raises:
            PlanError: A size that the data decide is out of its range.
        """
        outputs: list[Value | ListOutput] = [make() for make in self._makers]
        values, fit = _addresses([*inputs, *outputs], self._mask)
        if not fit:
            inputs = [_straightened(value) for value in inputs]
            values, fit = _addresses([*inputs, *outputs], self._mask)
            if not fit:
                msg = f"allocate gave memory that does not begin at a multiple of {ALIGNMENT} bytes"
                raise CallError(msg)
        frame = Frame(inputs, outputs, values, self._scope)
        if self._offsets:
            self._add_scratch(frame)
        if self._words.offsets:
            address, frame.kept = self._tables.place(self._words.fill(frame))
            values += [address + WORD_BYTES * offset for offset in self._words.offsets]
        values += self._numbers
        for step in self._steps:
            step(frame)
        return tuple(o.members() if isinstance(o, ListOutput) else o for o in frame.outputs)

    def _add_scratch(self, frame: Frame) -> None:
        frame.scratch = self._make_scratch()
        if self._zero_bytes:
            frame.scratch[: self._zero_bytes].zero_()
        base = frame.scratch.data_ptr()
        frame.values += [base + offset for offset in self._offsets]

    def _step(
        self, bound: _Bound | tuple[ReadSize, ...], layout: Layout, kernels: KernelTable
    ) -> Step | None:
        match bound:
            case BoundLaunch():
                places = [self._place(argument) for argument in bound.arguments]
                launcher = kernels.launcher(bound.instance)
                skip_empty = self._binding.plan.language == "triton"
                return make_launch(bound, launcher, places, skip_empty=skip_empty)
            case LibraryCall():
                return make_library_call(bound, layout)
            case tuple():
                return make_read(bound, layout)
            case ReadSize() | None:
                return None

    def _place(self, argument: Argument) -> int | Unread:
        """Return the index of an argument among the values."""
        match argument:
            case Address(name):
                return self._indices[name]
            case Table() | Array():
                return self._table_base + self._words.position(argument)
            case Number(value):
                self._numbers.append(value)
                return self._number_base + len(self._numbers) - 1
            case Unread():
                return argument

    def _maker(self, name: str, allocate: Allocate) -> Callable[[], Value | ListOutput]:
        binding = self._binding
        return output_maker(
            binding.spec,
            name,
            sizes=binding.sizes,
            dtype=getattr(torch, binding.memory[name].dtype),
            make=partial(allocate, device=self._device),
        )


class _Words:
    """The int64 words of a call's tables and arrays, one after another."""

    def __init__(self, binding: Binding) -> None:
        self._spec = binding.spec
        self._keys: list[Table | Array] = []
        self._lengths = {
            name: _members(binding, tensor.list_over)
            for name, tensor in {**binding.spec.inputs, **binding.spec.outputs}.items()
            if tensor.list_over is not None
        }
        self.offsets: list[int] = []
        self._end = 0

    def add(self, arguments: Sequence[Argument]) -> None:
        """Reserve words for those arguments that need them, each argument once."""
        for argument in arguments:
            if isinstance(argument, Table | Array) and argument not in self._keys:
                self._keys.append(argument)
                self.offsets.append(self._end)
                self._end += _even(self._length(argument))

    def position(self, argument: Table | Array) -> int:
        """Return the argument's place among those that were added."""
        return self._keys.index(argument)

    def fill(self, frame: Frame) -> list[int]:
        """Return the words of one call; each array begins at a multiple of 16 bytes."""
        words: list[int] = []
        inputs, outputs = list(self._spec.inputs), list(self._spec.outputs)
        for key in self._keys:
            match key:
                case Array(values):
                    words += values
                case Table(name) if name in inputs:
                    words += [member.data_ptr() for member in frame.inputs[inputs.index(name)]]
                case Table(name):
                    words += _member_addresses(frame.outputs[outputs.index(name)])
            if len(words) % 2:
                words.append(0)
        return words

    def _length(self, argument: Table | Array) -> int:
        return len(argument.values) if isinstance(argument, Array) else self._lengths[argument.name]


def _even(length: int) -> int:
    return length + length % 2


def _members(binding: Binding, list_over: str) -> int:
    return integer(list_over, binding.scope.values)


def _member_addresses(output: Value | ListOutput) -> list[int]:
    if isinstance(output, ListOutput):
        return output.addresses()
    return [member.data_ptr() for member in output]


def _grouped(bounds: Sequence[_Bound]) -> list[_Bound | tuple[ReadSize, ...]]:
    """Return the steps, reads of one buffer that follow each other taken together."""
    found: list[_Bound | tuple[ReadSize, ...]] = []
    for bound in bounds:
        last = found[-1] if found else None
        if not isinstance(bound, ReadSize):
            found.append(bound)
        elif isinstance(last, tuple) and last[-1].buffer == bound.buffer:
            found[-1] = (*last, bound)
        else:
            found.append((bound,))
    return found


def _addresses(values: Sequence[Value | ListOutput], mask: int) -> tuple[list[int | float], bool]:
    """Return single tensors' addresses, and whether all memory is as kernels assume.

    That is contiguous, and at addresses without a bit of the mask.
    """
    addresses: list[int | float] = []
    bits = 0
    fit = True
    for value in values:
        if isinstance(value, Tensor):
            address = value.data_ptr()
            addresses.append(address)
            bits |= address
            fit = fit and value.is_contiguous()
        elif isinstance(value, ListOutput):
            bits |= value.memory.data_ptr()
        else:
            for member in value:
                bits |= member.data_ptr()
                fit = fit and member.is_contiguous()
    return addresses, fit and not bits & mask


def _straightened(value: Value) -> Value:
    if not isinstance(value, Tensor):
        return [_straight(member) for member in value]
    return _straight(value)


def _straight(tensor: Tensor) -> Tensor:
    if tensor.is_contiguous() and not tensor.data_ptr() % ALIGNMENT:
        return tensor
    return tensor.clone(memory_format=torch.contiguous_format)


def _indices(binding: Binding) -> dict[str, int]:
    """Return the index of each single tensor and buffer among the values."""
    spec = binding.spec
    names = [n for n in (*spec.inputs, *spec.outputs) if not binding.memory[n].listed]
    return {name: index for index, name in enumerate([*names, *_zeroed_first(binding)])}


def _zeroed_first(binding: Binding) -> list[str]:
    buffers = binding.plan.buffers
    return sorted(buffers, key=lambda name: not buffers[name].zeroed)


def _lay_out(binding: Binding) -> tuple[dict[str, Buffer], int, int]:
    """Return the buffers one after another, all their bytes, and those to be zeroed in front."""
    laid: dict[str, Buffer] = {}
    end = zeroed = 0
    for name in _zeroed_first(binding):
        buffer = binding.plan.buffers[name]
        with speaking_of(f"buffer {name}"):
            shape = tuple(integer(text, binding.scope.values) for text in buffer.shape)
        laid[name] = Buffer(end, shape, getattr(torch, binding.memory[name].dtype))
        end += max(1, cdiv(laid[name].size_bytes, _BUFFER_ALIGNMENT)) * _BUFFER_ALIGNMENT
        zeroed = end if buffer.zeroed else zeroed
    return laid, end, zeroed
