"""Where a candidate's outputs lie in memory that the judge lends it, and what is found there.

The candidate writes; nobody copies for it. Once it has answered, the judge takes a copy of its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Protocol

import torch
from torch import Tensor

from knowledge.roofline import BYTES
from operator_registry.spec import OperatorSpec
from optimizer.evaluate import protocol as p
from optimizer.expression import cdiv
from optimizer.host_python import bounds_of, count_of
from optimizer.list_output import MemberLayout
from optimizer.shapes import output_shape

GAP_BYTES = 4096
"""Lies before, between and after outputs, and must stay as it was."""
ALIGNMENT = 256
MOST_SHIFT = 1 << 16
"""By how much all outputs of a call may lie further back than in another."""
Forms = tuple[p.Form | tuple[p.Form, ...], ...]
"""Shape and dtype of each output; of each member where an output is a list."""


class Memory(Protocol):
    """Memory of the judge that one process may write into."""

    @property
    def lent(self) -> p.LentMemory:
        """Where the process finds it."""
        ...

    @property
    def alive(self) -> bool:
        """Whether it can still be reached."""
        ...

    def fill(self, offset: int, nbytes: int, byte: int) -> None:
        """Fill a part of it.

        Raises:
            RunnerError: It can't be reached any more.
        """
        ...

    def read(self, offset: int, nbytes: int) -> Tensor | None:
        """Return a copy of a part of it as bytes; None where somebody has damaged it.

        Raises:
            RunnerError: It can't be reached any more.
        """
        ...

    def close(self) -> None:
        """Free it."""
        ...


class Lender(Protocol):
    """Makes such memory on one kind of device."""

    def lend(self, nbytes: int) -> Memory | None:
        """Return new memory of at least so many bytes; None where this machine can't lend any.

        Raises:
            RunnerError: There is no room for it.
        """
        ...

    @property
    def obstacle(self) -> str | None:
        """Why nothing can be lent here, and what that means, once it is known."""
        ...

    @property
    def busy_s(self) -> float:
        """Seconds for which a process of the judge's own was at work on the device."""
        ...

    def refuse(self, reason: str) -> None:
        """Lend no more: a process that held no foreign code yet could not use it."""
        ...

    def close(self) -> None:
        """End whatever holds the memory."""
        ...


@dataclass(frozen=True)
class Slot:
    """The place of one output: whole, at its upper bound where the data decide a size."""

    offset: int
    nbytes: int
    shapes: tuple[tuple[int, ...], ...]
    """Of the tensor, or of each member of a list."""
    starts: tuple[int, ...]
    """Where each of them begins, in bytes from the slot's own beginning."""


@dataclass(frozen=True)
class Layout:
    """The slots of one case, large enough for each of its sets."""

    slots: tuple[Slot, ...]
    """One for each output, then one for each size that the data decide, if it is asked for."""
    gaps: tuple[tuple[int, int], ...]
    """What no set may write into."""
    nbytes: int

    @property
    def offsets(self) -> tuple[int, ...]:
        """Where each slot begins."""
        return tuple(slot.offset for slot in self.slots)


@dataclass(frozen=True)
class Taken:
    """What a candidate left as its outputs, copied into memory of the judge alone."""

    forms: Forms
    """As the worker told them."""
    tensors: tuple[tuple[Tensor, ...] | None, ...]
    """For each output; None where it can't be read, or has a form that has no room there."""
    stray: bool = False
    """Whether something was written beside the outputs."""


def lay_out(
    spec: OperatorSpec,
    sizes: Sequence[Mapping[str, p.Size]],
    dtypes: Mapping[str, str],
    *,
    sized: bool,
) -> list[Layout]:
    """Return the layout for each set of a case; all slots of a name begin at the same place.

    Args:
        spec: The operator.
        sizes: For each set, as far as its inputs show them.
        dtypes: The case's dtype variables.
        sized: Whether the sizes that the data decide are written down as well (host: python).

    Raises:
        PlanError: The data decide a size for which the spec states no bound.
        CallError: An axis of an output has no size.
    """
    wanted = [_wanted(spec, one, dtypes, sized=sized) for one in sizes]
    offsets, gaps, end = [], [], 0
    for same in zip(*wanted, strict=True):
        offset = cdiv(end + GAP_BYTES, ALIGNMENT) * ALIGNMENT
        gaps.append((end, offset))
        offsets.append(offset)
        end = offset + max(slot.nbytes for slot in same)
    gaps.append((end, end + GAP_BYTES))
    return [
        Layout(
            tuple(
                Slot(offset, slot.nbytes, slot.shapes, slot.starts)
                for offset, slot in zip(offsets, one, strict=True)
            ),
            tuple(gaps),
            end + GAP_BYTES,
        )
        for one in wanted
    ]


def take(memory: Memory, layout: Layout, forms: Forms, *, shift: int, fill: int | None) -> Taken:
    """Return what lies in a tray.

    Args:
        memory: What the tray lies in.
        layout: Its slots.
        forms: The outputs' forms, as they were told.
        shift: By how much all slots lie further back.
        fill: What its gaps were filled with, to see whether they still hold it.
    """
    whole = memory.read(shift, layout.nbytes)
    if whole is None:
        return Taken(forms, (None,) * len(forms))
    tensors = tuple(
        _cut(whole, slot, form) for slot, form in zip(layout.slots, forms, strict=False)
    )
    stray = fill is not None and any(bool((whole[a:b] != fill).any()) for a, b in layout.gaps)
    return Taken(forms, tensors, stray=stray)


def _cut(whole: Tensor, slot: Slot, form: p.Form | tuple[p.Form, ...]) -> tuple[Tensor, ...] | None:
    """Return an output's tensors in the forms that the worker told; None where they don't fit."""
    claimed = (form,) if isinstance(form, p.Form) else form
    if len(claimed) != len(slot.shapes):
        return None
    mine = whole[slot.offset : slot.offset + slot.nbytes]
    found = []
    for one, bound, start in zip(claimed, slot.shapes, slot.starts, strict=True):
        fits = len(one.shape) == len(bound) and all(
            0 <= size <= most for size, most in zip(one.shape, bound, strict=True)
        )
        nbytes = prod(bound) * BYTES[one.dtype]
        if not fits or start + nbytes > slot.nbytes:
            return None
        tensor = mine[start : start + nbytes].view(getattr(torch, one.dtype)).view(bound)
        found.append(tensor[tuple(slice(0, size) for size in one.shape)])
    return tuple(found)


def _wanted(
    spec: OperatorSpec, sizes: Mapping[str, p.Size], dtypes: Mapping[str, str], *, sized: bool
) -> list[Slot]:
    bounds = bounds_of(spec, sizes)
    found = []
    for name, tensor in spec.outputs.items():
        dtype = getattr(torch, dtypes.get(tensor.dtype, tensor.dtype))
        shape = output_shape(spec, name, {**sizes, **bounds})
        if isinstance(shape, tuple):
            found.append(Slot(0, prod(shape) * dtype.itemsize, (shape,), (0,)))
        else:
            members = MemberLayout(shape, dtype)
            nbytes = members.elements * dtype.itemsize
            found.append(Slot(0, nbytes, members.shapes, members.offsets))
    for bound in bounds.values() if sized else ():
        words = count_of(bound)
        found.append(Slot(0, words * BYTES["int64"], ((words,),), (0,)))
    return found
