"""What this machine's GPU says of itself, through its driver."""

from collections.abc import Mapping
from typing import Protocol

from daemon.hardware.draft import Draft, Limit, slug
from daemon.host import Gpu

MULTIPROCESSORS, CLOCK_KHZ, MEMORY_CLOCK_KHZ = 16, 13, 36
BUS_BITS, L2_BYTES, THREADS, REGISTERS, SHARED_BYTES = 37, 38, 39, 82, 97
"""Numbers of attributes as ``cuda.h`` has them."""
_WARP = 32
_TRANSFERS = 2
"""In each cycle of the memory's clock, as the driver counts it."""
_FLOAT32_LANES: Mapping[str, int] = {"sm_70": 64, "sm_75": 64, "sm_80": 64}
"""Of a multiprocessor; 128 since then."""
_FLOP = 2


class Asks(Protocol):
    """Answers for one GPU: `optimizer.targets.driver.Driver`."""

    def attribute(self, index: int, which: int) -> int:
        """Return an attribute of a device."""
        ...

    def memory_bytes(self, index: int) -> int:
        """Return how much memory a device has."""
        ...


def draft_gpu(gpu: Gpu, driver: Asks, *, index: int = 0) -> Draft:
    """Return the draft of a GPU.

    Args:
        gpu: As ``nvidia-smi`` names it.
        driver: What is asked for the rest.
        index: The driver's for it.

    Raises:
        OSError: The driver does not tell.
    """

    def ask(which: int) -> int:
        return driver.attribute(index, which)

    read = {
        "last_level_cache_mb": (ask(L2_BYTES) / 1e6, "L2"),
        "multiprocessors": (ask(MULTIPROCESSORS), "multiprocessors"),
        "shared_memory_per_block_bytes": (ask(SHARED_BYTES), "the most that a block may ask for"),
        "registers_per_multiprocessor": (ask(REGISTERS), "of 32 bits"),
        "threads_per_multiprocessor": (ask(THREADS), "resident at once"),
    }
    known = slug(gpu.name)
    return Draft(
        name=known,
        summary=f"{gpu.name}.",
        vendor="nvidia",
        target="cuda",
        arch=gpu.arch,
        language="triton",
        warp_size=_WARP,
        limits={
            "dram_bandwidth_gb_s": _bandwidth(ask(MEMORY_CLOCK_KHZ), ask(BUS_BITS)),
            "dram_gb": Limit(round(driver.memory_bytes(index) / 1e9, 1), "read", "by the driver"),
            **{
                name: Limit(round(value, 2), "read", f"by the driver, {what}")
                for name, (value, what) in read.items()
            },
        },
        peaks={"float32": _float32(gpu.arch, ask(MULTIPROCESSORS), ask(CLOCK_KHZ))},
        labels=("self-hosted", "gpu", known),
    )


def _bandwidth(clock_khz: int, bus_bits: int) -> Limit:
    if clock_khz <= 0 or bus_bits <= 0:  # newer drivers no longer tell
        return Limit(10_000, "stand-in", "the driver does not tell; here more than any GPU has")
    gb_s = clock_khz * 1e3 * _TRANSFERS * bus_bits / 8 / 1e9
    how = f"{clock_khz / 1e3:.0f} MHz x {_TRANSFERS} x {bus_bits} bits"
    return Limit(round(gb_s, 1), "derived", how)


def _float32(arch: str, multiprocessors: int, clock_khz: int) -> Limit:
    lanes = _FLOAT32_LANES.get(arch, 128)
    tflop_s = multiprocessors * lanes * _FLOP * clock_khz * 1e3 / 1e12
    how = (
        f"{multiprocessors} x {lanes} lanes x {_FLOP} x {clock_khz / 1e6:.2f} GHz; outside the "
        "tensor cores, whose figures (float16, bfloat16, int8) the data sheet has"
    )
    return Limit(round(tflop_s, 2), "derived", how)
