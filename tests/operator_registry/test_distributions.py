"""Distributions: each stays inside the domain, and differs from what the spec describes."""

from typing import get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from operator_registry.distributions import DISTRIBUTIONS, Source
from operator_registry.inputs import make_inputs
from operator_registry.registry import CATALOG, Operator, load_registry, parse_registry
from operator_registry.spec import Distribution, Domain, Lengths, Normal, SortedUniqueIds, Uniform
from tests.operator_registry.small import FILES

OPERATORS = [
    *load_registry(CATALOG).operators.values(),
    parse_registry(FILES).operators["cut"],
]
EACH = st.sampled_from(DISTRIBUTIONS)
SEEDS = st.integers(0, 2**48)
FLOATS = st.sampled_from([torch.float32, torch.bfloat16, torch.float16, torch.float64])


def source(
    distribution: Distribution, seed: int = 1, *, domain: Domain | None = None, scale: float = 1.0
) -> Source:
    generator = torch.Generator().manual_seed(seed)
    return Source(generator, distribution, domain or Domain(), scale)


@given(EACH, SEEDS, st.integers(0, 70), st.integers(0, 9), FLOATS)
@settings(deadline=None)
def test_uniform_values_stay_below_their_end(
    distribution: Distribution, seed: int, cols: int, rows: int, dtype: torch.dtype
) -> None:
    drawn = source(distribution, seed).uniform(Uniform(low=-1, high=3), (rows, cols), dtype)

    assert drawn.shape == (rows, cols)
    assert bool(((drawn >= -1) & (drawn <= 3)).all())


@given(EACH, SEEDS, st.integers(0, 300))
@settings(deadline=None)
def test_lengths_and_ids_stay_in_their_ranges(
    distribution: Distribution, seed: int, count: int
) -> None:
    drawn = source(distribution, seed)

    lengths = drawn.lengths(Lengths(low=2, high=7), (count,))
    ids = drawn.sorted_ids(SortedUniqueIds(below=310), count)
    order = drawn.permutation(count)

    assert bool(((lengths >= 2) & (lengths <= 7)).all())
    assert bool((ids.diff() > 0).all())
    assert not count or (int(ids[0]) >= 0 and int(ids[-1]) < 310)
    assert torch.equal(order.sort().values, torch.arange(count))


@given(SEEDS, FLOATS)
@settings(deadline=None)
def test_hostile_values_go_to_the_domains_end_and_no_further(seed: int, dtype: torch.dtype) -> None:
    domain = Domain(greatest=1000.0)

    drawn = source("hostile", seed, domain=domain).normal(Normal(), (60, 40), dtype)

    assert float(drawn.abs().max()) == 1000
    assert bool(drawn.isfinite().all())


def test_where_no_end_is_stated_it_lies_where_the_largest_scale_ends() -> None:
    drawn = source("hostile", scale=10.0).normal(Normal(mean=1, std=2), (60, 40), torch.float32)

    assert float(drawn.abs().max()) == 90


@pytest.mark.parametrize("special", ["infinite", "nan"])
def test_special_values_come_only_where_the_domain_admits_them(special: str) -> None:
    admitted = Domain.model_validate({special: "as_reference"})

    drawn = [
        source("hostile", seed, domain=admitted).normal(Normal(), (60, 40), torch.float32)
        for seed in range(4)
    ]

    found = torch.stack(drawn)
    assert bool(found.isinf().any()) == (special == "infinite")
    assert bool(found.isnan().any()) == (special == "nan")


@pytest.mark.parametrize("distribution", DISTRIBUTIONS[1:])
@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_an_operator_draws_other_values_by_each_distribution(
    operator: Operator, distribution: Distribution
) -> None:
    workload = operator.spec.workloads_on("cpu")[0]

    usual = make_inputs(operator, workload, seed=1)
    other = make_inputs(operator, workload, seed=1, distribution=distribution)

    def flat(inputs: tuple[torch.Tensor | list[torch.Tensor], ...]) -> list[torch.Tensor]:
        return [t for v in inputs for t in ([v] if isinstance(v, torch.Tensor) else v)]

    pairs = list(zip(flat(usual), flat(other), strict=True))
    assert all(a.dtype == b.dtype for a, b in pairs)
    assert any(a.shape != b.shape or not torch.equal(a, b) for a, b in pairs)


def test_at_least_three_are_drawn_beside_the_hostile_one() -> None:
    assert set(get_args(Distribution)) == {"stated", "flat", "skewed", "hostile"}
