"""How many process pairs get ready side by side."""

from dataclasses import replace
from pathlib import Path

import pytest

from operator_registry.hardware import HardwareSpec
from optimizer.evaluate.abreast import count_abreast
from optimizer.evaluate.process import Place

DEVICE = Place(device="cuda", threads=16, cache_bytes=1, folder=Path("none"))


@pytest.mark.parametrize(
    ("threads", "input_bytes", "pairs"),
    [(16, 1 << 20, 5), (128, 1 << 20, 6), (2, 1 << 20, 1), (16, 1 << 30, 3), (16, 1 << 34, 1)],
)
def test_pairs_get_ready_side_by_side_as_cores_and_memory_allow(
    h200: HardwareSpec, threads: int, input_bytes: int, pairs: int
) -> None:
    assert count_abreast(replace(DEVICE, threads=threads), h200, input_bytes) == pairs


def test_on_a_processor_pairs_come_one_by_one(host: HardwareSpec) -> None:
    assert count_abreast(replace(DEVICE, device="cpu"), host, 1) == 1
