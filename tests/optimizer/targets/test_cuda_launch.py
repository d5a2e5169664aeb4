"""What reaches the CUDA driver at a launch, seen by a library that stands in its place."""

import ctypes
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from optimizer.targets.cubin import CubinFacts
from optimizer.targets.cuda_launch import CudaKernels, Function
from optimizer.targets.driver import Driver, DriverError
from optimizer.targets.target import Instance, Launcher

STAND_IN = """\
#include <cstdint>
#include <cstring>
struct Seen { uint64_t function, stream; uint32_t grid[3], block[3], shared, launches, contexts; };
static Seen seen;
static uint8_t parameters[48];
static int code, contexts;
extern "C" {
int cuInit(unsigned) { return 0; }
int cuDriverGetVersion(int* version) { *version = 13010; return 0; }
int cuDeviceGet(int* device, int index) { *device = index; return 0; }
int cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 97 ? 232448 : -1;
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int) { *context = &contexts; return 0; }
int cuCtxGetCurrent(void** context) { *context = contexts ? &contexts : nullptr; return 0; }
int cuCtxSetCurrent(void* context) { contexts += context == &contexts; return 0; }
int cuModuleLoadData(void** module, const void* image) {
  *module = const_cast<void*>(image);
  return std::memcmp(image, "\\x7f" "ELF\\0", 5) ? 200 : 0;
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  *function = reinterpret_cast<void*>(0xF00);
  return std::strcmp(name, "add") ? 500 : 0;
}
int cuFuncSetAttribute(void*, int attribute, int value) { return attribute == 8 ? 0 : value; }
int cuGetErrorName(int, const char** name) { *name = "CUDA_ERROR_OF_A_KIND"; return 0; }
int cuGetErrorString(int, const char** text) { *text = "of a kind"; return 0; }
int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void* stream, void** given, void** extra) {
  seen.launches++;
  if (!contexts) return 201;
  if (extra || code) return code ? code : 1;
  seen = {reinterpret_cast<uint64_t>(function), reinterpret_cast<uint64_t>(stream),
          {gx, gy, gz}, {bx, by, bz}, shared, seen.launches, uint32_t(contexts)};
  const int sizes[] = {8, 4, 8, 4, 8, 8};
  for (int i = 0, at = 0; i < 6; at += sizes[i++]) std::memcpy(parameters + at, given[i], sizes[i]);
  return 0;
}
void set_code(int next) { code = next; }
Seen* look() { return &seen; }
uint8_t* look_at_parameters() { return parameters; }
}
"""
FORM = Instance(kernel="add", types=("*fp32", "i32", "i64", "fp32"))


class Seen(ctypes.Structure):
    _fields_ = (
        ("function", ctypes.c_uint64), ("stream", ctypes.c_uint64), ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3), ("shared", ctypes.c_uint32),
        ("launches", ctypes.c_uint32), ("contexts", ctypes.c_uint32),
    )  # fmt: skip


@dataclass
class StandIn:
    """The library, and what it was given."""

    library: ctypes.CDLL
    driver: Driver

    @property
    def seen(self) -> Seen:
        self.library.look.restype = ctypes.POINTER(Seen)
        found: Seen = self.library.look().contents
        return found

    @property
    def parameters(self) -> bytes:
        self.library.look_at_parameters.restype = ctypes.c_void_p
        return ctypes.string_at(self.library.look_at_parameters(), 40)

    def launcher(self, *, shared_bytes: int = 64) -> Launcher:
        facts = CubinFacts(name="add", warps=8, shared_bytes=shared_bytes, scratch_bytes=0)
        functions = {FORM.symbol: Function(0xF00, facts)}
        return CudaKernels(self.driver, 0, functions, lambda device: 0xBEEF + device).launcher(FORM)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("driver")
    (folder / "cuda.cpp").write_text(STAND_IN)
    command = ("g++", "-shared", "-fPIC", "-o", "libcuda.so.1", "cuda.cpp")
    subprocess.run(command, cwd=folder, check=True)
    return folder / "libcuda.so.1"


@pytest.fixture
def stand_in(library: Path, tmp_path: Path) -> StandIn:
    fresh = tmp_path / library.name  # a library's static memory is one for each file
    fresh.write_bytes(library.read_bytes())
    return StandIn(ctypes.CDLL(str(fresh)), Driver(str(fresh)))


def test_grid_block_shared_memory_and_current_stream_reach_the_driver(stand_in: StandIn) -> None:
    stand_in.launcher()((5, 6), (0, 0, 0, 0.0))

    seen = stand_in.seen
    assert (seen.function, seen.stream, seen.shared) == (0xF00, 0xBEEF, 64)
    assert (list(seen.grid), list(seen.block)) == ([5, 6, 1], [256, 1, 1])


def test_each_argument_reaches_the_driver_in_its_own_width(stand_in: StandIn) -> None:
    stand_in.launcher()((1,), (0x7F00_1234_5678, -7, 2**40, 0.5))

    given = stand_in.parameters
    assert ctypes.c_uint64.from_buffer_copy(given, 0).value == 0x7F00_1234_5678
    assert ctypes.c_int32.from_buffer_copy(given, 8).value == -7
    assert ctypes.c_int64.from_buffer_copy(given, 12).value == 2**40
    assert ctypes.c_float.from_buffer_copy(given, 20).value == 0.5


def test_both_scratch_pointers_are_null(stand_in: StandIn) -> None:
    stand_in.launcher()((1,), (1, 1, 1, 1.0))

    assert stand_in.parameters[24:] == bytes(16)


def test_a_later_launch_has_its_own_arguments(stand_in: StandIn) -> None:
    launch = stand_in.launcher()
    launch((1,), (1, 2, 3, 4.0))

    launch((1,), (5, 6, 7, 8.0))

    assert ctypes.c_int32.from_buffer_copy(stand_in.parameters, 8).value == 6


def test_a_thread_without_a_context_gets_torchs_and_launches_again(stand_in: StandIn) -> None:
    launch = stand_in.launcher()

    launch((1,), (1, 2, 3, 4.0))
    launch((1,), (1, 2, 3, 4.0))

    assert (stand_in.seen.launches, stand_in.seen.contexts) == (3, 1)


def test_a_refused_launch_tells_the_drivers_words(stand_in: StandIn) -> None:
    stand_in.library.set_code(700)

    with pytest.raises(DriverError, match=r"launch of add with grid \(9,\): CUDA_ERROR_OF_A_KIND"):
        stand_in.launcher()((9,), (1, 2, 3, 4.0))


def test_a_size_that_does_not_fit_its_parameter_is_no_launch(stand_in: StandIn) -> None:
    with pytest.raises(Exception, match="format requires"):
        stand_in.launcher()((1,), (1, 2**31, 3, 4.0))

    assert stand_in.seen.launches == 0


def test_a_cubin_is_handed_over_whole_and_its_function_found_by_name(stand_in: StandIn) -> None:
    assert stand_in.driver.load_function(b"\x7fELF\0rest", "add") == 0xF00


@pytest.mark.parametrize(("image", "name"), [(b"none", "add"), (b"\x7fELF\0", "other")])
def test_a_cubin_that_can_not_be_loaded_raises(stand_in: StandIn, image: bytes, name: str) -> None:
    with pytest.raises(DriverError):
        stand_in.driver.load_function(image, name)


def test_shared_memory_is_asked_for_up_to_what_the_device_has(stand_in: StandIn) -> None:
    stand_in.driver.allow_shared(0xF00, 232448, device=0)

    with pytest.raises(OSError, match="wants 232449 bytes"):
        stand_in.driver.allow_shared(0xF00, 232449, device=0)


def test_the_drivers_cuda_version_is_told(stand_in: StandIn) -> None:
    assert stand_in.driver.version() == "13.1"


def test_a_machine_without_a_driver_says_so() -> None:
    with pytest.raises(OSError, match="there is no NVIDIA driver here"):
        Driver("libno_such_driver.so.1")
