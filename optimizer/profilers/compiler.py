"""What the compiler reports of a kernel, and the occupancy that follows from it (pure)."""

import math

from knowledge.evidence import KernelResources
from operator_registry.hardware import HardwareSpec
from optimizer.targets.target import Artefact, Compiled

_REGISTER_UNIT = 256
"""A warp's registers are given out in such portions."""
_RESERVED_SHARED_BYTES = 1024
"""The system's own share of a block's shared memory."""
_MOST_BLOCKS = 32
"""On a multiprocessor, however small they are."""


def resources(artefact: Artefact, hardware: HardwareSpec) -> tuple[KernelResources, ...]:
    """Return what each compiled kernel needs of the hardware."""
    return tuple(
        KernelResources(
            kernel=compiled.kernel,
            artefact_sha256=compiled.sha256,
            registers=compiled.registers,
            spill_bytes=compiled.spill_bytes,
            shared_bytes=compiled.shared_bytes,
            occupancy=occupancy(compiled, hardware),
        )
        for compiled in artefact.compiled
    )


def occupancy(compiled: Compiled, hardware: HardwareSpec) -> float | None:
    """Return the share of a multiprocessor's threads that can be resident at once.

    None where the compiler or the data sheet does not say enough, as on a processor.
    """
    limits = hardware.limits
    threads = limits.threads_per_multiprocessor
    if compiled.warps is None or compiled.registers is None or threads is None:
        return None
    block_threads = compiled.warps * hardware.compile.warp_size
    blocks = [_MOST_BLOCKS, threads // block_threads]
    if limits.registers_per_multiprocessor is not None:
        warp = _rounded_up(compiled.registers * hardware.compile.warp_size, _REGISTER_UNIT)
        blocks.append(limits.registers_per_multiprocessor // (warp * compiled.warps or 1))
    if limits.shared_memory_per_block_bytes is not None:
        # A multiprocessor has as much as its largest block may take, system's share included.
        have = limits.shared_memory_per_block_bytes + _RESERVED_SHARED_BYTES
        blocks.append(have // ((compiled.shared_bytes or 0) + _RESERVED_SHARED_BYTES))
    return min(1.0, min(blocks) * block_threads / threads)


def _rounded_up(count: int, unit: int) -> int:
    return math.ceil(count / unit) * unit
