"""Smaller counterexamples: sizes that are tried, and that the smallest wrong one is told."""

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.outcome import Counterexample, Incorrect
from operator_registry.registry import CATALOG, load_registry
from operator_registry.spec import OperatorSpec, RangeAxis
from optimizer.evaluate.evaluator import Evaluator
from optimizer.evaluate.shrinking import smaller_workloads
from tests.optimizer.evaluate.bad import LOOP, RIGHT, make

pytestmark = pytest.mark.alone

SPECS = [operator.spec for operator in load_registry(CATALOG).operators.values()]


def example(dtypes: dict[str, str], **sizes: int) -> Counterexample:
    return Counterexample(
        output="y", index=(0,), got="1", wanted="2", sizes=sizes, dtypes=dtypes, seed=3
    )


@given(st.sampled_from(SPECS), st.data())
def test_smaller_sizes_are_inside_the_ranges_and_come_in_order(
    spec: OperatorSpec, data: st.DataObject
) -> None:
    sizes = {
        name: data.draw(st.integers(axis.min, min(axis.max, 5000)))
        for name, axis in spec.axes.items()
        if isinstance(axis, RangeAxis)
    }
    found = smaller_workloads(spec, example(dict(spec.workloads[0].dtypes), **sizes))

    for workload in found:
        for name, size in workload.sizes.items():
            axis = spec.axes[name]
            assert isinstance(axis, RangeAxis)
            assert axis.min <= size <= axis.max
            assert size % axis.multiple_of == 0
        assert workload.sizes != sizes
    assert len({tuple(w.sizes.values()) for w in found}) == len(found) <= 10


def test_an_axis_alone_is_brought_down_too() -> None:
    spec = next(spec for spec in SPECS if spec.name == "softmax")

    found = smaller_workloads(spec, example({"T": "float32"}, rows=64, cols=64))

    tried = [(w.sizes["rows"], w.sizes["cols"]) for w in found]
    assert tried[0] == (1, 1)
    assert (64, 1) in tried
    assert prod(tried[-1]) < 64 * 64


@pytest.mark.parametrize("wrong_from", [1, 30])
def test_the_judge_tells_a_small_counterexample(evaluator: Evaluator, wrong_from: int) -> None:
    wrong = make(LOOP + RIGHT + f" if (rows >= {wrong_from}) y[rows - 1] += 1;")

    (evaluation,) = evaluator.evaluate([wrong])

    outcome = evaluation.outcome
    assert isinstance(outcome, Incorrect), outcome
    assert outcome.counterexample is not None
    assert wrong_from <= outcome.counterexample.sizes["rows"] <= 4 * wrong_from
