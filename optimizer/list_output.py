"""A list of tensors that a call returns: cut out of one allocation once their sizes are known."""

from collections.abc import Sequence
from math import prod
from typing import Final

import torch
from torch import Tensor

from optimizer.expression import Size

_ALIGNMENT: Final = 16
"""Bytes at whose multiples each member begins, as compiled kernels assume."""


class MemberLayout:
    """Where the members of a list lie; worked out once for all calls of the same sizes."""

    def __init__(self, shapes: Sequence[tuple[int, ...]], dtype: torch.dtype) -> None:
        """Lay members of these shapes (upper bounds) one after another."""
        step = max(1, _ALIGNMENT // dtype.itemsize)
        self.shapes = tuple(shapes)
        self.spans = tuple(-(-prod(shape) // step) * step for shape in shapes)
        self.flat = all(len(shape) == 1 for shape in shapes)
        starts = [sum(self.spans[:place]) for place in range(len(shapes))]
        self.offsets = tuple(start * dtype.itemsize for start in starts)
        self.elements = sum(self.spans)


class ListOutput:
    """The members of one call."""

    def __init__(self, layout: MemberLayout, memory: Tensor) -> None:
        """Take the memory of all members, of shape [layout.elements]."""
        self.memory = memory
        self._layout = layout
        self._cuts: dict[int, Size] = {}

    def addresses(self) -> list[int]:
        """Return where each member begins."""
        base = self.memory.data_ptr()
        return [base + offset for offset in self._layout.offsets]

    def narrow(self, dimension: int, size: Size) -> None:
        """Cut each member to a size along a dimension."""
        self._cuts[dimension] = size

    def members(self) -> list[Tensor]:
        """Return the members as tensors, cut to their sizes."""
        layout = self._layout
        if layout.flat:
            return self._flat_members()
        found = []
        parts = self.memory.split_with_sizes(list(layout.spans))
        for place, (part, shape) in enumerate(zip(parts, layout.shapes, strict=True)):
            member = part[: prod(shape)].view(shape)
            for dimension, size in self._cuts.items():
                member = member.narrow(dimension, 0, _of_member(size, place))
            found.append(member)
        return found

    def _flat_members(self) -> list[Tensor]:
        """Return members of one dimension: true part and rest in turn, by one call."""
        layout, cut = self._layout, self._cuts.get(0)
        cuts: list[int] = []
        for place, (span, shape) in enumerate(zip(layout.spans, layout.shapes, strict=True)):
            length = shape[0] if cut is None else _of_member(cut, place)
            cuts += (length, span - length)
        return list(self.memory.split_with_sizes(cuts)[::2])


def _of_member(size: Size, member: int) -> int:
    return size[member] if isinstance(size, tuple) else size
