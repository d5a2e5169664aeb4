"""Device memory that several processes share: made, handed over as a file, and mapped.

Handed over as a file descriptor, not by the driver's older inter-process handles: those need both
processes in the same namespace of processes, which a sandbox takes away.
"""

import ctypes
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor

from optimizer.expression import cdiv
from optimizer.targets.driver import Driver, open_driver

_PINNED: Final = 1
_ON_DEVICE: Final = 1
_AS_FILE: Final = 1
_READ_AND_WRITE: Final = 3


class _Location(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int), ("device", ctypes.c_int))


class _Wanted(ctypes.Structure):
    """`CUmemAllocationProp`."""

    _fields_ = (
        ("kind", ctypes.c_int),
        ("handles", ctypes.c_int),
        ("location", _Location),
        ("windows_only", ctypes.c_void_p),
        ("flags", ctypes.c_uint8 * 8),
    )


class _Access(ctypes.Structure):
    _fields_ = (("location", _Location), ("may", ctypes.c_int))


@dataclass(frozen=True)
class DeviceMemory:
    """Memory of a device, mapped into this process for as long as it lives."""

    handle: int
    address: int
    nbytes: int

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Return how torch finds the memory."""
        return {
            "shape": (self.nbytes,),
            "typestr": "|u1",
            "data": (self.address, False),
            "version": 3,
            "strides": None,
        }

    def as_bytes(self) -> Tensor:
        """Return the memory as a tensor; it is not copied.

        Raises:
            OSError: torch can't take it as it is.
        """
        tensor = torch.as_tensor(self, device="cuda")
        if tensor.data_ptr() != self.address:
            msg = "torch made a copy of memory that others share"
            raise OSError(msg)
        return tensor


def make_device_memory(nbytes: int, *, device: int = 0) -> DeviceMemory:
    """Return new memory of at least so many bytes, which can be handed over.

    Raises:
        OSError: The device has no room, or can't hand memory over.
    """
    driver = open_driver()
    wanted = _Wanted(_PINNED, _AS_FILE, _Location(_ON_DEVICE, device))
    grain = ctypes.c_size_t()
    driver.call("cuMemGetAllocationGranularity", ctypes.byref(grain), ctypes.byref(wanted), 0)
    size = cdiv(max(nbytes, 1), grain.value) * grain.value
    handle = ctypes.c_uint64()
    driver.call("cuMemCreate", ctypes.byref(handle), size, ctypes.byref(wanted), 0)
    return _map(driver, handle.value, size, device)


def hand_over(memory: DeviceMemory) -> int:
    """Return a file descriptor by which another process can map the memory.

    Raises:
        OSError: The driver refuses.
    """
    file = ctypes.c_int()
    open_driver().call(
        "cuMemExportToShareableHandle", ctypes.byref(file), memory.handle, _AS_FILE, 0
    )
    return file.value


def map_handed(file: int, nbytes: int, *, device: int = 0) -> DeviceMemory:
    """Return another process's memory, of a size that it told; a context must be current.

    Raises:
        OSError: The driver refuses.
    """
    driver = open_driver()
    handle = ctypes.c_uint64()
    driver.call(
        "cuMemImportFromShareableHandle", ctypes.byref(handle), ctypes.c_void_p(file), _AS_FILE
    )
    return _map(driver, handle.value, nbytes, device)


def free(memory: DeviceMemory) -> None:
    """Unmap memory; it is gone once nobody has it mapped.

    Raises:
        OSError: The driver refuses.
    """
    driver = open_driver()
    driver.call("cuMemUnmap", memory.address, memory.nbytes)
    driver.call("cuMemAddressFree", memory.address, memory.nbytes)
    driver.call("cuMemRelease", memory.handle)


def read_words(tensor: Tensor) -> list[int]:
    """Return the int64 words of a small contiguous tensor, once the current stream is idle.

    Not by torch's own functions: a profiler would take those for steps of whoever wrote the words.

    Raises:
        OSError: The device is out of order.
    """
    words = ctypes.c_int64 * tensor.numel()
    if not tensor.is_cuda:
        return list(words.from_address(tensor.data_ptr())) if tensor.numel() else []
    copied = words()
    torch.cuda.current_stream(tensor.device).synchronize()
    size = ctypes.sizeof(copied)
    open_driver().call("cuMemcpyDtoH_v2", copied, tensor.data_ptr(), size)
    return list(copied)


def _map(driver: Driver, handle: int, nbytes: int, device: int) -> DeviceMemory:
    address = ctypes.c_uint64()
    driver.call("cuMemAddressReserve", ctypes.byref(address), nbytes, 0, 0, 0)
    driver.call("cuMemMap", address.value, nbytes, 0, handle, 0)
    access = _Access(_Location(_ON_DEVICE, device), _READ_AND_WRITE)
    driver.call("cuMemSetAccess", address.value, nbytes, ctypes.byref(access), 1)
    return DeviceMemory(handle, address.value, nbytes)
