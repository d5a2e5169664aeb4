"""Probes: what nobody computed must not pass an operator's checks."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from knowledge.admission import Admission
from operator_registry.hardware import HardwareSpec
from operator_registry.registry import CATALOG, Operator, load_registry
from operator_registry.spec import (
    InputSpec,
    OperatorSpec,
    PrecisionPolicy,
    RangeAxis,
    TensorSpec,
    Uniform,
    Workload,
)
from optimizer.evaluate.admission import DegenerateOperatorError, admit, narrowed
from optimizer.evaluate.cases import CaseMaker
from optimizer.evaluate.evaluator import Evaluator
from optimizer.evaluate.memory import SharedFolder
from optimizer.evaluate.process import ORACLE, Place, Process
from tests.makers import OPERATOR
from tests.optimizer.evaluate.bad import GOOD

CATALOGUE = load_registry(CATALOG).operators


def operator(
    source: str, *, outputs: int = 1, precision: PrecisionPolicy | None = None
) -> Operator:
    spec = OperatorSpec(
        name="probed",
        axes={"rows": RangeAxis(min=0, max=4096)},
        inputs={
            "x": InputSpec(shape=("rows",), dtype="float32"),
            "ids": InputSpec(shape=("rows",), dtype="int64", values=Uniform(high=100)),
        },
        outputs={f"y{i}": TensorSpec(shape=("rows",), dtype="float32") for i in range(outputs)},
        reference="f",
        precision=precision or PrecisionPolicy(),
        workloads=(Workload(name="w", sizes={"rows": 2000}),),
    )
    return Operator(spec=spec, source=f"import torch\ndef f(x, ids):\n    return {source}\n")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    shared = SharedFolder()
    folder = tmp_path_factory.mktemp("admission")
    yield Place(device="cpu", threads=1, cache_bytes=0, folder=folder, shared=shared.path)
    shared.close()


@pytest.fixture(scope="module")
def oracle(place: Place) -> Iterator[Process]:
    """One oracle's process for all operators: it takes whichever it is asked for."""
    process = Process(place, function=ORACLE)
    process.greet(timed=False)
    yield process
    process.kill()


def probe(asked: Operator, place: Place, oracle: Process) -> Admission:
    shared = SharedFolder()
    shared.path.rmdir()
    assert place.shared is not None
    shared.path = place.shared
    return admit(CaseMaker(asked, place, shared, oracle), "cpu", seed=3)


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_catalogues_operators_are_admitted(name: str, place: Place, oracle: Process) -> None:
    admission = probe(CATALOGUE[name], place, oracle)

    assert admission.admitted
    assert not any(admission.fooled.values())


@pytest.mark.parametrize(
    ("source", "passing"),
    [
        ("x * 0", "zeros"),
        ("torch.ones_like(x)", "ones"),
        ("torch.arange(x.shape[0]).to(x.dtype)", "the outputs of an earlier seed"),
        ("torch.full_like(x, 0.125)", "the mean of an earlier seed's outputs"),
        ("x.clone()", "the input x"),
    ],
)
def test_a_degenerate_operator_is_told_with_the_probe_that_passed(
    source: str, passing: str, place: Place, oracle: Process
) -> None:
    admission = probe(operator(source), place, oracle)

    assert not admission.admitted
    assert passing in admission.fooled["y0"]
    assert "y0 passes as " in admission.reason


def test_a_tolerance_that_lets_a_narrower_format_pass_is_degenerate(
    place: Place, oracle: Process
) -> None:
    loose = PrecisionPolicy(k=float(1 << 14))

    admission = probe(operator("x * 3.1", precision=loose), place, oracle)

    assert admission.fooled["y0"] == ("the oracle in the next narrower format",)
    assert probe(operator("x * 3.1"), place, oracle).admitted


def test_one_output_that_must_be_computed_is_enough(place: Place, oracle: Process) -> None:
    admission = probe(operator("(x.clone(), x * 3.1)", outputs=2), place, oracle)

    assert admission.admitted
    assert admission.fooled == {"y0": ("the input x",), "y1": ()}


@given(st.floats(-1e30, 1e30), st.integers(2, 24))
def test_a_narrowed_value_is_the_nearest_with_so_many_bits(value: float, bits: int) -> None:
    exact = torch.tensor([value], dtype=torch.float64)

    short = narrowed(exact, bits)

    assert torch.equal(narrowed(short, bits), short)
    assert float((short - exact).abs()) <= abs(value) * 2.0**-bits


def test_eleven_bits_are_those_of_half_precision() -> None:
    values = torch.linspace(1, 2, 1001, dtype=torch.float64)

    assert torch.equal(narrowed(values, 11), values.half().double())


def test_nothing_of_a_degenerate_operator_is_confirmed(state: Path, host: HardwareSpec) -> None:
    spec = OPERATOR.spec
    zeros = Operator(spec=spec, source="def scale(x, factor):\n    return x * factor * 0\n")

    with (
        Evaluator(zeros, host, folder=state) as judge,
        pytest.raises(DegenerateOperatorError, match="y passes as zeros"),
    ):
        judge.confirm(GOOD, deadline_s=60, alpha=0.01, handed_back=())
