"""Any chain of elementwise operations and row reductions: as right as eager, in both languages."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from operator_registry.registry import Operator
from tests.optimizer.propose.references import references
from tests.optimizer.propose.trial import Call, built, drafts_of, interpreted

QUICK = settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large),
)
LONG = settings(QUICK, max_examples=150)
COMPILED = settings(QUICK, max_examples=1, phases=(Phase.generate,))
"""Without shrinking: each attempt costs a run of the compiler."""
SIZES = st.fixed_dictionaries(
    {
        "k": st.integers(1, 3),
        "m": st.integers(1, 4),
        "n": st.sampled_from((1, 2, 7, 16, 33, 100)),
        "one": st.just(1),
    }
)
BINDINGS = st.sampled_from(({"T": "float32"}, {"T": "bfloat16"}))


def check_triton(operator: Operator, sizes: dict[str, int], dtypes: dict[str, str]) -> None:
    call = Call(operator, sizes, dtypes)
    for draft in drafts_of(operator, "triton"):
        call.check(draft, interpreted(draft))


def check_cpp(batch: list[Operator], sizes: dict[str, int], dtypes: dict[str, str]) -> None:
    wanted = [
        (draft, [Call(operator, sizes, dtypes)])
        for operator in batch
        for draft in drafts_of(operator, "cpp")
    ]
    with tempfile.TemporaryDirectory() as folder:
        for (draft, calls), kernels in zip(wanted, built(wanted, Path(folder)), strict=True):
            try:
                calls[0].check(draft, kernels)
            except AssertionError as error:
                error.add_note(calls[0].operator.source)
                raise


@QUICK
@given(references(), SIZES, BINDINGS)
def test_triton_agrees_with_eager(
    operator: Operator, sizes: dict[str, int], dtypes: dict[str, str]
) -> None:
    check_triton(operator, sizes, dtypes)


@COMPILED
@given(st.lists(references(), min_size=5, max_size=5), SIZES, BINDINGS)
def test_cpp_agrees_with_eager(
    batch: list[Operator], sizes: dict[str, int], dtypes: dict[str, str]
) -> None:
    check_cpp(batch, sizes, dtypes)


@pytest.mark.drill
@LONG
@given(references(), SIZES, BINDINGS)
def test_triton_agrees_with_eager_many_times(
    operator: Operator, sizes: dict[str, int], dtypes: dict[str, str]
) -> None:
    check_triton(operator, sizes, dtypes)


@pytest.mark.drill
@settings(COMPILED, max_examples=10)
@given(st.lists(references(), min_size=12, max_size=12), SIZES, BINDINGS)
def test_cpp_agrees_with_eager_many_times(
    batch: list[Operator], sizes: dict[str, int], dtypes: dict[str, str]
) -> None:
    check_cpp(batch, sizes, dtypes)
