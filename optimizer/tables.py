"""Small int64 arrays that kernels read addresses and sizes from."""

from array import array
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final, Protocol

import torch
from torch import Tensor

WORD_BYTES: Final = 8
_KEPT: Final = 128


class Tables(Protocol):
    """Brings an array of integers to where kernels can read it."""

    def place(self, words: Sequence[int]) -> tuple[int, object]:
        """Return the array's address, and what must live until the kernels are launched."""
        ...


class HostTables:
    """Arrays in the host's own memory."""

    def place(self, words: Sequence[int]) -> tuple[int, object]:
        """See `Tables.place`."""
        memory = array("q", words)
        return memory.buffer_info()[0], memory


class DeviceTables:
    """Arrays on a CUDA device, copied on the current stream.

    A stream's latest arrays are kept: with the same tensors as before, nothing is copied. An array
    is never written again, so a kernel that is still queued reads what it was given; the memory of
    one that is dropped returns to its own stream's pool, behind that kernel.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._kept: OrderedDict[object, Tensor] = OrderedDict()

    def place(self, words: Sequence[int]) -> tuple[int, object]:
        """See `Tables.place`."""
        key = (torch.cuda.current_stream(self._device).cuda_stream, tuple(words))
        table = self._kept.get(key)
        if table is None:
            table = torch.tensor(words, dtype=torch.int64).to(self._device, non_blocking=True)
            self._kept[key] = table
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return table.data_ptr(), table


def make_tables(device: torch.device) -> Tables:
    """Return the way to bring arrays to a device."""
    return DeviceTables(device) if device.type == "cuda" else HostTables()
