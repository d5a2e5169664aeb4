"""Which cases are made: at what sizes, from which distributions, under which seeds."""

import random
from math import prod

import pytest

from operator_registry.registry import CATALOG, load_registry
from operator_registry.spec import OperatorSpec
from optimizer.evaluate.draws import (
    count_confirmed,
    distributions_under,
    draw_requests,
    telling_requests,
)
from optimizer.evaluate.guards import ALL_UP, Guard, without

SPECS = [operator.spec for operator in load_registry(CATALOG).operators.values()]
ALL = distributions_under(ALL_UP)
EACH = pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)


def test_a_distribution_is_drawn_only_under_its_guard() -> None:
    assert set(ALL) == {"stated", "flat", "skewed", "hostile"}
    assert "hostile" not in distributions_under(without({Guard.HOSTILE}))
    assert distributions_under(without({Guard.DISTRIBUTIONS})) == ("hostile", "stated")


@EACH
def test_a_confirming_run_draws_twenty_sizes_and_all_distributions(spec: OperatorSpec) -> None:
    count = count_confirmed(spec, 20)

    requests = draw_requests(spec, "cpu", seed=1, count=count, most=1 << 16, distributions=ALL)

    sized = [request for request in requests if prod(request.workload.sizes.values())]
    assert len(requests) >= 20
    assert {request.distribution for request in sized} == set(ALL)
    assert {(r.scale, r.distribution) for r in requests} >= {
        (scale, "stated") for scale in spec.precision.input_scales
    }


@EACH
def test_the_largest_of_four_drawn_sizes_meets_all_unusual_distributions(
    spec: OperatorSpec,
) -> None:
    requests = draw_requests(spec, "cpu", seed=1, count=4, most=1 << 14, distributions=ALL)

    *others, third, second, largest = requests
    assert third.workload == second.workload == largest.workload
    assert [r.distribution for r in (largest, second, third)] == ["hostile", "skewed", "flat"]
    assert [r.distribution for r in reversed(others)] == ["stated", "hostile", "skewed"]


@EACH
def test_each_size_has_more_than_one_draw_of_its_own(spec: OperatorSpec) -> None:
    requests = draw_requests(spec, "cpu", seed=1, count=20, most=1 << 20, distributions=ALL)

    seeds = [seed for request in requests for seed in request.seeds]
    assert all(len(request.seeds) >= 2 for request in requests)
    assert len(set(seeds)) == len(seeds)


@EACH
def test_public_sizes_meet_every_scale_and_every_distribution(spec: OperatorSpec) -> None:
    requests = telling_requests(spec, "cpu", rng=random.Random(1), distributions=ALL)  # noqa: S311

    for workload in spec.workloads_on("cpu"):
        mine = [r for r in requests if r.workload == workload]
        assert {r.distribution for r in mine if r.scale == 1} == set(ALL) - {"stated"}
        assert {r.scale for r in mine} | {1.0} == {1.0, *spec.precision.input_scales}
