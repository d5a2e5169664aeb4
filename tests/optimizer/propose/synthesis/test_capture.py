"""What is captured of a reference, and what is refused."""

import pytest

from operator_registry.registry import Operator
from operator_registry.spec import AttributeSpec, InputSpec, RangeAxis
from optimizer.errors import CaptureError
from optimizer.propose.synthesis.capture import capture
from optimizer.propose.synthesis.graph import Expr, Graph
from optimizer.propose.synthesis.make import capture_forms, make_proposers
from tests.optimizer.propose.trial import catalogue, floats, hardware, make_case, result


def one_input(source: str, **attributes: AttributeSpec) -> Operator:
    return make_case(
        source,
        {"x": floats("m", "n", dtype="T")},
        {"y": result("m", "n", dtype="T")},
        attributes=attributes,
        dtypes={"T": ("float32", "bfloat16")},
    )


def test_sizes_become_expressions_over_axes() -> None:
    graph = capture(
        one_input("def reference(x): return (x.flatten() + x.shape[1]).view_as(x)"), "reference"
    )

    flat = graph.nodes[0]
    assert flat.kind.shape == ("m * n",)
    assert graph.nodes[1].args[1] == Expr(text="n")


def test_attributes_are_kept_by_name() -> None:
    graph = capture(
        one_input("def reference(x, eps): return x + eps", eps=AttributeSpec(value=1e-5)),
        "reference",
    )

    assert graph.nodes[0].args[1] == Expr(text="eps", real=True)


def test_casts_of_a_half_type_are_seen_though_public_sizes_are_float32() -> None:
    graph = capture(one_input("def reference(x): return (x.float() * 2).to(x.dtype)"), "reference")

    assert [node.kind.dtype for node in graph.nodes] == ["float32", "float32", "T"]


def test_a_list_of_tensors_is_shown_by_one_member() -> None:
    operator = catalogue()["batch_event_truncate"]

    graph = capture(operator, operator.spec.reference)

    assert graph.inputs["values"].list_over == "features"
    assert sum(node.family == "aten.index" for node in graph.nodes) == 2


def test_a_graph_survives_json() -> None:
    graph = capture(catalogue()["map_id"], "map_id")

    assert Graph.from_json(graph.to_json()) == graph


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("def reference(x): return x if x.sum() > 0 else -x", "data-dependent control flow"),
        (
            "def reference(x):\n    for i in range(x.shape[0]): x = x + i\n    return x",
            "over a size",
        ),
        ("def reference(x): return x.float()", "returns y as float32 of 2 axes; the spec says T"),
        ("def reference(x): raise RuntimeError('no such luck')", "RuntimeError: no such luck"),
        ("def reference(x): return x * x.shape[0] ** 5", "fit no expression over m, n"),
    ],
)
def test_what_can_not_be_captured_is_refused_with_a_reason(source: str, why: str) -> None:
    with pytest.raises(CaptureError, match=why):
        capture(one_input(source), "reference")


def test_a_dtype_variable_that_mixes_float64_is_refused() -> None:
    operator = make_case(
        "def reference(x): return x",
        {"x": floats("m", dtype="T")},
        {"y": result("m", dtype="T")},
        dtypes={"T": ("float32", "float64")},
    )

    with pytest.raises(CaptureError, match="make two operators"):
        capture(operator, "reference")


def test_axes_whose_range_is_narrow_or_in_steps_are_traced_within_it() -> None:
    operator = make_case(
        "def reference(x): return x * 2",
        {"x": floats("m", "n")},
        {"y": result("m", "n")},
        axes={"m": RangeAxis(min=64, max=64), "n": RangeAxis(min=128, max=4096, multiple_of=128)},
    )

    graph = capture(operator, "reference")

    assert graph.nodes[0].kind.shape == ("64", "n")


def test_forms_are_captured_in_a_child_and_what_fails_says_why() -> None:
    graphs, reasons = capture_forms(catalogue()["batch_event_truncate"])

    assert [graph.form for graph in graphs] == ["batch_event_truncate"]
    assert len(reasons) == 2
    assert all("can't be captured" in reason for reason in reasons)


@pytest.mark.parametrize(
    "source",
    [
        "import os\ndef reference(x): os._exit(3)",
        "def reference(x): return torch.linalg.inv(x @ x.t()) @ x",
    ],
)
def test_an_operator_that_nothing_can_be_made_of_says_so(source: str) -> None:
    with pytest.raises(CaptureError, match="case can't be synthesised for"):
        make_proposers(one_input(source), hardware("cpp"))


def test_whole_numbers_with_a_negative_index_count_from_the_end() -> None:
    operator = make_case(
        "def reference(x, i): return x[i]",
        {
            "x": floats("m"),
            "i": InputSpec.model_validate(
                {"shape": ("n",), "dtype": "int64", "values": {"kind": "uniform", "high": 3}}
            ),
        },
        {"y": result("n")},
    )

    graph = capture(operator, "reference")

    assert graph.nodes[-1].op == "aten.index.Tensor"
