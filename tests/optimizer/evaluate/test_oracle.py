"""The oracle: what is expected, and in which precision; in this process, since it is all ours."""

from pathlib import Path

import torch

from operator_registry.registry import CATALOG, Operator, load_registry
from operator_registry.spec import InputSpec, OperatorSpec, RangeAxis, TensorSpec, Workload
from optimizer.evaluate.dispatch import CallLog, Widened
from optimizer.evaluate.memory import map_file
from optimizer.evaluate.oracle import Oracle
from optimizer.evaluate.protocol import MadeCase, MakeCase

CASTING = Operator(
    spec=OperatorSpec(
        name="cast",
        axes={"n": RangeAxis(max=4096)},
        inputs={"x": InputSpec(shape=("n",), dtype="float32")},
        outputs={"y": TensorSpec(shape=("n",), dtype="float32")},
        reference="cast",
        workloads=(Workload(name="w", sizes={"n": 1000}),),
    ),
    source="def cast(x):\n    y = x.float().exp()\n    x.zero_()\n    return y.to(x.dtype)\n",
)


def make(operator: Operator, folder: Path, workload: Workload, *seeds: int) -> MadeCase:
    return Oracle().make(
        MakeCase(
            operator=operator,
            workload=workload,
            device="cpu",
            key="k",
            seeds=seeds,
            scales=(1.0,) * len(seeds),
            inputs_folder=str(folder),
            expected_folder=str(folder),
        )
    )


def test_casts_inside_the_reference_do_not_narrow_the_oracle(tmp_path: Path) -> None:
    made = make(CASTING, tmp_path, CASTING.spec.workloads[0], 1)
    (expected,) = made.expected[0]
    x = map_file(made.case.sets[0][0])  # type: ignore[arg-type] # a tensor, not a list

    assert torch.equal(map_file(expected.oracle[0]), x.double().exp())
    assert map_file(expected.reference[0]).dtype == torch.float32


def test_a_reference_that_writes_into_its_input_does_not_spoil_it(tmp_path: Path) -> None:
    made = make(CASTING, tmp_path, CASTING.spec.workloads[0], 1)

    assert map_file(made.case.sets[0][0]).abs().sum() > 0  # type: ignore[arg-type] # a tensor


def test_sets_differ_by_their_seeds(tmp_path: Path) -> None:
    made = make(CASTING, tmp_path, CASTING.spec.workloads[0], 1, 2)
    first, second = (map_file(one[0]) for one in made.case.sets)  # type: ignore[arg-type] # tensors

    assert not torch.equal(first, second)


def test_sizes_that_the_data_decide_are_told(tmp_path: Path) -> None:
    operator = load_registry(CATALOG).operators["batch_event_truncate"]
    workload = Workload(
        name="w",
        sizes={"features": 2, "users": 5},
        dtypes={"T": "float32"},
        attributes={"max_events": 3},
    )

    made = make(operator, tmp_path, workload, 1)

    sizes, outputs = made.sizes[0], made.output_sizes[0]
    assert isinstance(sizes["elements"], tuple)
    assert len(sizes["elements"]) == 2
    assert set(outputs) == {"kept_events", "kept_elements"}


def test_only_floating_outputs_have_an_oracle(tmp_path: Path) -> None:
    operator = load_registry(CATALOG).operators["map_id"]
    workload = Workload(name="w", sizes={"entries": 10, "batch": 7})

    made = make(operator, tmp_path, workload, 1)

    assert made.expected[0][0].oracle == ()


def test_the_dispatcher_is_bent_inside_only() -> None:
    x = torch.ones(2, dtype=torch.float64)

    with Widened():
        assert x.float().dtype == torch.float64

    assert x.float().dtype == torch.float32


def test_calls_are_logged_by_name() -> None:
    with CallLog() as log:
        torch.ones(2, 2) @ torch.ones(2, 2)

    assert any("mm" in name for name in log.names)
