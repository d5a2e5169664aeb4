"""The error rule: what it admits and what it rejects."""

import re
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from operator_registry.spec import PrecisionPolicy
from optimizer.evaluate.checking import Agreement, Mismatch, check, is_moved, make_standard

POLICY = PrecisionPolicy()
NARROWER = {
    torch.float64: torch.float32,
    torch.float32: torch.bfloat16,
    torch.float16: torch.float8_e4m3fn,
}
DTYPES = (torch.float32, torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class Expected:
    reference: tuple[Tensor, ...]
    oracle: tuple[Tensor, ...]
    row_dims: tuple[int, ...] = ()
    exact: bool = False


def softmax(dtype: torch.dtype, *, seed: int, shape: tuple[int, int] = (7, 300)) -> Expected:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)
    oracle = torch.softmax(x.double(), -1)
    return Expected((torch.softmax(x, -1),), (oracle,), row_dims=(0,))


def of(*members: Tensor) -> Expected:
    """Values that are the same in float64: whatever was moved, or integers."""
    return Expected(members, tuple(m.double() if m.is_floating_point() else m for m in members))


def verdict(got: Tensor | list[Tensor], expected: Expected) -> Agreement | Mismatch:
    standard = make_standard(
        expected.reference,
        expected.oracle,
        POLICY,
        row_dims=expected.row_dims,
        exact=expected.exact,
    )
    return check(got if isinstance(got, list) else [got], standard)


def moved(expected: Expected) -> bool:
    return is_moved(expected.reference, expected.oracle)


@pytest.mark.parametrize("dtype", DTYPES)
@given(seed=st.integers(0, 2**40))
@settings(max_examples=25, deadline=None)
def test_the_reference_itself_agrees(dtype: torch.dtype, seed: int) -> None:
    expected = softmax(dtype, seed=seed)

    assert isinstance(verdict(expected.reference[0], expected), Agreement)


@pytest.mark.parametrize("dtype", DTYPES)
@given(seed=st.integers(0, 2**40))
@settings(max_examples=25, deadline=None)
def test_the_best_rounding_of_the_oracle_agrees(dtype: torch.dtype, seed: int) -> None:
    expected = softmax(dtype, seed=seed)

    assert isinstance(verdict(expected.oracle[0].to(dtype), expected), Agreement)


@pytest.mark.parametrize("dtype", DTYPES)
@given(seed=st.integers(0, 2**40))
@settings(max_examples=25, deadline=None)
def test_zeros_a_constant_and_another_seed_are_rejected(dtype: torch.dtype, seed: int) -> None:
    expected = softmax(dtype, seed=seed)
    wanted = expected.reference[0]

    for probe in (
        torch.zeros_like(wanted),
        torch.full_like(wanted, float(wanted.mean())),
        softmax(dtype, seed=seed + 1).reference[0],
    ):
        assert isinstance(verdict(probe, expected), Mismatch)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@given(seed=st.integers(0, 2**40))
@settings(max_examples=25, deadline=None)
def test_a_narrower_format_is_rejected(dtype: torch.dtype, seed: int) -> None:
    expected = softmax(dtype, seed=seed)
    narrow = expected.oracle[0].to(NARROWER[dtype]).to(dtype)

    assert isinstance(verdict(narrow, expected), Mismatch)


def test_one_wrong_element_is_named() -> None:
    expected = softmax(torch.float32, seed=1)
    got = expected.reference[0].clone()
    got[3, 17] += 0.01

    found = verdict(got, expected)

    assert isinstance(found, Mismatch)
    assert found.index == (3, 17)
    assert float(found.got) == pytest.approx(float(found.wanted) + 0.01, abs=1e-6)


def test_a_small_row_is_not_hidden_behind_a_great_one() -> None:
    x = torch.tensor([[1e6, 1e6], [1e-6, 1e-6]])
    whole = Expected((x,), (x.double() * (1 + 1e-12),))
    rows = Expected((x,), (x.double() * (1 + 1e-12),), row_dims=(0,))
    got = x.clone()
    got[1] = 0

    assert isinstance(verdict(got, whole), Agreement)
    assert isinstance(verdict(got, rows), Mismatch)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_what_is_not_finite_is_rejected(bad: float) -> None:
    expected = softmax(torch.float32, seed=1)
    got = expected.reference[0].clone()
    got[2, 5] = bad

    found = verdict(got, expected)

    assert isinstance(found, Mismatch)
    assert found.index == (2, 5)


def test_an_infinity_that_is_wanted_must_come() -> None:
    expected = of(torch.tensor([1.0, float("inf"), float("nan")]))

    assert isinstance(verdict(torch.tensor([1.0, float("inf"), float("nan")]), expected), Agreement)
    assert isinstance(verdict(torch.tensor([1.0, -float("inf"), float("nan")]), expected), Mismatch)
    assert isinstance(verdict(torch.tensor([1.0, float("inf"), 0.0]), expected), Mismatch)


def test_nobody_must_overflow_where_the_reference_does() -> None:
    reference = torch.tensor([1.0, float("inf")], dtype=torch.float16)
    expected = Expected((reference,), (torch.tensor([1.0, 70000.0], dtype=torch.float64),))

    assert isinstance(verdict(reference, expected), Agreement)
    assert isinstance(verdict(torch.tensor([1.0, 65504.0]).half(), expected), Agreement)


def test_integers_must_be_exact() -> None:
    wanted = torch.arange(10)
    got = wanted.clone()
    got[7] += 1

    found = verdict(got, of(wanted))

    assert isinstance(found, Mismatch)
    assert (found.index, found.got, found.wanted) == ((7,), "8", "7")


def test_what_is_only_moved_must_be_exact() -> None:
    x = torch.randn(2000)
    carried = Expected((x,), (x.double(),), exact=True)

    assert isinstance(verdict(x * (1 + 1e-7), carried), Mismatch)
    assert isinstance(verdict(x, carried), Agreement)


def test_movement_is_told_from_arithmetic() -> None:
    assert moved(of(torch.randn(2000)))
    assert not moved(softmax(torch.float32, seed=1))
    assert not moved(of(torch.randn(10)))  # too few to tell


def test_shape_dtype_and_members_are_looked_at_first() -> None:
    wanted = of(torch.zeros(3, 4), torch.zeros(2))

    for got, reason in (
        ([torch.zeros(3, 4)], "has 1 members, wanted 2"),
        ([torch.zeros(3, 4), torch.zeros(3)], r"member 1 has the shape \(3,\), wanted \(2,\)"),
        ([torch.zeros(3, 4).double(), torch.zeros(2)], "member 0 has the dtype float64"),
    ):
        found = verdict(got, wanted)
        assert isinstance(found, Mismatch)
        assert re.search(reason, found.reason)


def test_the_wrong_member_of_a_list_is_named() -> None:
    wanted = of(torch.zeros(3, dtype=torch.int64), torch.ones(2, dtype=torch.int64))

    found = verdict([torch.zeros(3).long(), torch.tensor([1, 5])], wanted)

    assert isinstance(found, Mismatch)
    assert (found.member, found.index) == (1, (1,))


@pytest.mark.parametrize("shape", [(0,), (0, 5), ()])
def test_empty_and_scalar_outputs_agree_with_themselves(shape: tuple[int, ...]) -> None:
    value = torch.ones(shape)

    assert isinstance(verdict(value, of(value)), Agreement)


def test_zeros_are_wanted_where_the_oracle_is_zero() -> None:
    expected = of(torch.zeros(5))

    assert isinstance(verdict(torch.zeros(5), expected), Agreement)
    assert isinstance(verdict(torch.full((5,), 1e-30), expected), Mismatch)


def test_small_draws_are_judged_together() -> None:
    """An element alone has no scale: after a cancellation its reference error may be zero."""
    reference = (torch.tensor([1e-4]), torch.tensor([1.0]))
    oracle = (reference[0].double(), reference[1].double())
    got = [torch.tensor([1e-4 + 1e-7]), torch.tensor([1.0])]

    alone = verdict(got[:1], Expected(reference[:1], oracle[:1]))
    together = verdict(got, Expected(reference, oracle))

    assert isinstance(alone, Mismatch)
    assert isinstance(together, Agreement)


def test_an_agreement_tells_both_errors_relative_to_the_scale() -> None:
    oracle = torch.tensor([4.0, 1.0], dtype=torch.float64)
    expected = Expected((torch.tensor([4.0, 1.0 + 2**-22]),), (oracle,))

    found = verdict(torch.tensor([4.0 + 2**-20, 1.0]), expected)

    assert found == Agreement(error=2**-22, reference_error=2**-24)
