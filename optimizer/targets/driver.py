"""The door to the CUDA driver: modules, functions and launches through ctypes."""

import ctypes
from functools import cache
from typing import Any, Final

_LIBRARY: Final = "libcuda.so.1"
_MAX_DYNAMIC_SHARED: Final = 8
_NOT_FOUND: Final = 500
_MAX_SHARED_PER_BLOCK_OPTIN: Final = 97
PLAIN_SHARED_BYTES: Final = 48 * 1024
"""Dynamic shared memory that a kernel may have without asking."""
_POINTER: Final = ctypes.c_void_p
_WORD: Final = ctypes.c_uint64
_SIGNATURES: Final = {
    "cuInit": (ctypes.c_uint,),
    "cuDriverGetVersion": (ctypes.POINTER(ctypes.c_int),),
    "cuDeviceGet": (ctypes.POINTER(ctypes.c_int), ctypes.c_int),
    "cuDeviceGetUuid": (_POINTER, ctypes.c_int),
    "cuDeviceGetAttribute": (ctypes.POINTER(ctypes.c_int), ctypes.c_int, ctypes.c_int),
    "cuDeviceTotalMem_v2": (ctypes.POINTER(ctypes.c_size_t), ctypes.c_int),
    "cuDevicePrimaryCtxRetain": (ctypes.POINTER(_POINTER), ctypes.c_int),
    "cuCtxGetCurrent": (ctypes.POINTER(_POINTER),),
    "cuCtxSetCurrent": (_POINTER,),
    "cuCtxSynchronize": (),
    "cuCtxResetPersistingL2Cache": (),
    # memory that is handed from process to process, by address, size and handle
    "cuMemGetAllocationGranularity": (ctypes.POINTER(ctypes.c_size_t), _POINTER, ctypes.c_int),
    "cuMemCreate": (ctypes.POINTER(_WORD), ctypes.c_size_t, _POINTER, _WORD),
    "cuMemExportToShareableHandle": (_POINTER, _WORD, ctypes.c_int, _WORD),
    "cuMemImportFromShareableHandle": (ctypes.POINTER(_WORD), _POINTER, ctypes.c_int),
    "cuMemAddressReserve": (
        ctypes.POINTER(_WORD),
        ctypes.c_size_t,
        ctypes.c_size_t,
        _WORD,
        _WORD,
    ),
    "cuMemMap": (_WORD, ctypes.c_size_t, ctypes.c_size_t, _WORD, _WORD),
    "cuMemSetAccess": (_WORD, ctypes.c_size_t, _POINTER, ctypes.c_size_t),
    "cuMemUnmap": (_WORD, ctypes.c_size_t),
    "cuMemAddressFree": (_WORD, ctypes.c_size_t),
    "cuMemRelease": (_WORD,),
    "cuMemcpyDtoH_v2": (_POINTER, _WORD, ctypes.c_size_t),
    "cuModuleLoadData": (ctypes.POINTER(_POINTER), ctypes.c_char_p),
    "cuModuleGetFunction": (ctypes.POINTER(_POINTER), _POINTER, ctypes.c_char_p),
    "cuFuncSetAttribute": (_POINTER, ctypes.c_int, ctypes.c_int),
    # function, grid x y z, block x y z, shared bytes, stream, parameters, extra
    "cuLaunchKernel": (_POINTER, *[ctypes.c_uint] * 7, _POINTER, _POINTER, _POINTER),
}


class DriverError(OSError):
    """The CUDA driver refused a call."""

    def __init__(self, call: str, code: int, reason: str) -> None:
        super().__init__(f"{call}: {reason} (CUDA error {code})")
        self.call = call
        self.code = code


class Driver:
    """The driver's functions, each with its return code checked."""

    def __init__(self, library: str = _LIBRARY) -> None:
        """Open the library.

        Raises:
            OSError: There is no NVIDIA driver on this machine, or it has no device.
        """
        try:
            self._library = ctypes.CDLL(library)
        except OSError as error:
            msg = f"there is no NVIDIA driver here ({error})"
            raise OSError(msg) from error
        for name, types in _SIGNATURES.items():
            function = getattr(self._library, name, None)
            if function is None:  # an older driver; whoever calls it is told
                continue
            function.argtypes = types
            function.restype = ctypes.c_int
        self.call("cuInit", 0)
        self.launch_kernel = self._library.cuLaunchKernel

    def call(self, name: str, *arguments: Any) -> None:  # noqa: ANN401 - whatever C takes
        """Call a function of the driver.

        Raises:
            DriverError: It did not return CUDA_SUCCESS.
        """
        function = getattr(self._library, name, None)
        if function is None:
            raise DriverError(name, _NOT_FOUND, "this driver has no such function")
        if code := function(*arguments):
            raise self.error(name, code)

    def allows(self, name: str) -> bool:
        """Return whether a function without arguments succeeds on this device."""
        try:
            self.call(name)
        except DriverError:
            return False
        return True

    def error(self, call: str, code: int) -> DriverError:
        """Return the error for a return code, in the driver's words."""
        words = []
        for name in ("cuGetErrorName", "cuGetErrorString"):
            text = ctypes.c_char_p()
            self._library[name](ctypes.c_int(code), ctypes.byref(text))
            words.append((text.value or b"unknown").decode())
        return DriverError(call, code, ": ".join(words))

    def use_device(self, index: int) -> None:
        """Make the device's primary context, which torch shares, current in this thread."""
        device, context = ctypes.c_int(), _POINTER()
        self.call("cuDeviceGet", ctypes.byref(device), index)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def has_context(self) -> bool:
        """Return whether a context is current in this thread."""
        context = _POINTER()
        self.call("cuCtxGetCurrent", ctypes.byref(context))
        return bool(context.value)

    def load_function(self, cubin: bytes, name: str) -> int:
        """Return a kernel of a cubin; its module stays loaded as long as the process lives."""
        module, function = _POINTER(), _POINTER()
        self.call("cuModuleLoadData", ctypes.byref(module), cubin)
        self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        return int(function.value or 0)

    def allow_shared(self, function: int, size_bytes: int, *, device: int) -> None:
        """Let a kernel have more dynamic shared memory than 48 KB.

        Raises:
            OSError: The device has less.
        """
        most = self.attribute(device, _MAX_SHARED_PER_BLOCK_OPTIN)
        if size_bytes > most:
            msg = f"a kernel wants {size_bytes} bytes of shared memory, the device has {most}"
            raise OSError(msg)
        self.call("cuFuncSetAttribute", function, _MAX_DYNAMIC_SHARED, size_bytes)

    def attribute(self, index: int, which: int) -> int:
        """Return an attribute of a device by its number in ``cuda.h``; it needs no context."""
        found = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(found), which, index)
        return found.value

    def memory_bytes(self, index: int) -> int:
        """Return how much memory a device has; it needs no context."""
        found = ctypes.c_size_t()
        self.call("cuDeviceTotalMem_v2", ctypes.byref(found), index)
        return found.value

    def device_uuid(self, index: int) -> str:
        """Return what tells a device from all others; it needs no context."""
        device, uuid = ctypes.c_int(), (ctypes.c_uint8 * 16)()
        self.call("cuDeviceGet", ctypes.byref(device), index)
        self.call("cuDeviceGetUuid", ctypes.byref(uuid), device)
        return bytes(uuid).hex()

    def version(self) -> str:
        """Return the highest CUDA version that the driver knows, such as ``13.0``."""
        number = ctypes.c_int()
        self.call("cuDriverGetVersion", ctypes.byref(number))
        return f"{number.value // 1000}.{number.value % 1000 // 10}"


@cache
def open_driver() -> Driver:
    """Return the driver of this process.

    Raises:
        OSError: There is no NVIDIA driver on this machine, or it has no device.
    """
    return Driver()
