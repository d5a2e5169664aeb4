"""Occupancy from the compiler's report, by hand for an H200."""

import pytest

from operator_registry.hardware import HardwareSpec
from operator_registry.registry import CATALOG, load_registry
from optimizer.profilers.compiler import occupancy
from optimizer.targets.target import Compiled
from tests.makers import HARDWARE


@pytest.fixture(scope="module")
def h200() -> HardwareSpec:
    return load_registry(CATALOG).hardware["h200"]


def compiled(*, registers: int | None, shared: int = 0, warps: int = 4) -> Compiled:
    return Compiled(
        kernel="k", symbol="k_1", file="k.cubin", sha256="0", registers=registers,
        shared_bytes=shared, warps=warps,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("registers", "shared", "warps", "wanted"),
    [
        (32, 0, 4, 1.0),  # 16 blocks of 128 threads
        (128, 0, 4, 0.25),  # 4 blocks of 16384 registers
        (33, 0, 4, 0.75),  # 12 blocks: registers come by 8 a thread
        (32, 100 * 1024, 4, 0.125),  # 2 blocks of 101 KB
        (32, 232448, 8, 0.125),  # the largest block is alone
        (16, 0, 1, 0.5),  # no more than 32 blocks of 32 threads
        (255, 0, 32, 0.0),  # can't be launched
    ],
)
def test_the_scarcest_of_threads_registers_and_shared_memory_decides(
    h200: HardwareSpec, registers: int, shared: int, warps: int, wanted: float
) -> None:
    found = occupancy(compiled(registers=registers, shared=shared, warps=warps), h200)

    assert found == pytest.approx(wanted)


def test_a_processor_has_none(h200: HardwareSpec) -> None:
    assert occupancy(compiled(registers=32), HARDWARE) is None
    assert occupancy(compiled(registers=None), h200) is None
