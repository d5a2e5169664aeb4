"""The operators that ship: equivalents agree, examples of the literature hold, all is traceable."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from operator_registry.inputs import load_reference, make_inputs, resolve_sizes
from operator_registry.registry import CATALOG, Operator, load_registry
from operator_registry.spec import Workload
from operator_registry.workloads import draw_workloads

OPERATORS = load_registry(CATALOG).operators
EQUIVALENTS = [(op, name) for op in OPERATORS.values() for name in op.spec.equivalents]


def function(operator: Operator, name: str | None = None) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(load_reference(operator), name or operator.spec.reference)
    return found


def flat(value: Any) -> list[Tensor]:  # noqa: ANN401 - a tensor, or lists of them
    return [value] if isinstance(value, Tensor) else [t for each in value for t in flat(each)]


def attributes(operator: Operator, workload: Workload) -> dict[str, Any]:
    return {k: workload.attributes.get(k, a.value) for k, a in operator.spec.attributes.items()}


def drawn(operator: Operator) -> list[Workload]:
    """Drawn sizes, each with every dtype that a public workload has."""
    sizes = draw_workloads(operator.spec, "cpu", seed=1, count=8, max_elements=30_000)
    dtypes = {tuple(w.dtypes.items()) for w in operator.spec.workloads}
    return [w.model_copy(update={"dtypes": dict(d)}) for w in sizes for d in sorted(dtypes)]


@pytest.mark.parametrize(("operator", "name"), EQUIVALENTS, ids=lambda x: getattr(x, "name", x))
def test_equivalents_agree_with_their_reference(operator: Operator, name: str) -> None:
    for workload in drawn(operator):
        inputs = make_inputs(operator, workload, seed=2)
        given = attributes(operator, workload)

        wanted = flat(function(operator)(*inputs, **given))
        got = flat(function(operator, name)(*inputs, **given))

        torch.testing.assert_close(got, wanted, rtol=2e-2, atol=1e-2)
        if all(dtype == "float32" for dtype in workload.dtypes.values()):
            torch.testing.assert_close(got, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)
def test_outputs_have_the_shapes_and_dtypes_of_the_spec(operator: Operator) -> None:
    for workload in drawn(operator):
        inputs = make_inputs(operator, workload, seed=2)
        outputs = function(operator)(*inputs, **attributes(operator, workload))
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        sizes = resolve_sizes(operator.spec, inputs)

        for (name, spec), value in zip(operator.spec.outputs.items(), outputs, strict=True):
            assert (spec.list_over is None) == isinstance(value, Tensor), name
            for tensor in flat(value):
                assert tensor.dtype == getattr(torch, workload.dtypes.get(spec.dtype, spec.dtype))
                known = [sizes.get(axis) for axis in spec.shape]
                assert all(k in {None, n} for k, n in zip(known, tensor.shape, strict=True))


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)
def test_references_can_be_traced(operator: Operator) -> None:
    workload = drawn(operator)[-1]
    inputs = make_inputs(operator, workload, seed=2)
    given = attributes(operator, workload)

    graph = make_fx(lambda *args: function(operator)(*args, **given), tracing_mode="real")(*inputs)

    wanted = flat(function(operator)(*inputs, **given))
    torch.testing.assert_close(flat(graph(*inputs)), wanted)


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)
def test_references_are_exact_in_double_precision(operator: Operator) -> None:
    """The judge's oracle is the reference in float64, so no reference may narrow its inputs."""
    if "T" not in operator.spec.dtypes or "float32" not in operator.spec.dtypes["T"]:
        pytest.skip("no floating variable")
    drawn = draw_workloads(operator.spec, "cpu", seed=1, count=20, max_elements=30_000)
    workload = next(workload for workload in drawn if min(workload.sizes.values()) > 1)
    workload = workload.model_copy(update={"dtypes": {"T": "float64"}})
    inputs = make_inputs(operator, workload, seed=2)

    outputs = flat(function(operator)(*inputs, **attributes(operator, workload)))

    narrow = [t for t in outputs if t.is_floating_point() and torch.equal(t, t.float().double())]
    assert not [t for t in narrow if t.numel() > 1]


def test_map_id_gives_the_published_example() -> None:
    ids = torch.tensor([100, 300, 500, 200, 999])
    table = torch.tensor([100, 200, 300, 400, 500])

    assert function(OPERATORS["map_id"])(ids, table).tolist() == [1, 3, 5, 2, 0]


@pytest.mark.parametrize(
    "name", ["batch_event_truncate", *OPERATORS["batch_event_truncate"].spec.equivalents]
)
def test_batch_event_truncate_gives_the_published_example(name: str) -> None:
    outer = torch.tensor([3, 4, 1])
    inner = [torch.tensor([1, 0, 2, 0, 3, 1, 1, 1]), torch.ones(8, dtype=torch.int64)]
    values = [torch.arange(1, 10), torch.arange(1, 9)]

    outputs = function(OPERATORS["batch_event_truncate"], name)(outer, inner, values, max_events=2)

    assert [t.tolist() for t in flat(outputs)] == [
        [2, 2, 1],
        [1, 0, 0, 3, 1],
        [1, 1, 1, 1, 1],
        [1, 4, 5, 6, 9],
        [1, 2, 4, 5, 8],
    ]
