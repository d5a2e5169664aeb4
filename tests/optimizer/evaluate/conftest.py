"""One machine and one judge for all tests of the judge."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from operator_registry.hardware import HardwareSpec
from operator_registry.registry import CATALOG, load_registry
from optimizer.evaluate.evaluator import Effort, Evaluator
from optimizer.targets import host_cpu_arch
from tests.makers import OPERATOR

EFFORT = Effort(run_s=2.0, measure_s=0.05, pairs=2, pair_s=0.1, confirmed_elements=1 << 12)
"""As little as the facts need."""


@pytest.fixture(scope="session")
def host() -> HardwareSpec:
    """The processor that the tests run on."""
    return load_registry(CATALOG).hardware[f"cpu-{host_cpu_arch()}"]


@pytest.fixture(scope="session")
def h200() -> HardwareSpec:
    """A device that is not here."""
    return load_registry(CATALOG).hardware["h200"]


@pytest.fixture(scope="module")
def evaluator(state: Path, host: HardwareSpec) -> Iterator[Evaluator]:
    """The judge of the operator of `tests.makers`."""
    with Evaluator(OPERATOR, host, folder=state, effort=EFFORT) as evaluator:
        yield evaluator
