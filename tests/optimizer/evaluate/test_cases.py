"""Cases, and what is said of outputs that were left in the judge's files."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import torch

from knowledge.outcome import Incorrect
from operator_registry.hardware import HardwareSpec
from operator_registry.registry import CATALOG, Operator, load_registry
from operator_registry.spec import Workload
from optimizer.evaluate.cases import CheckedCase, Request
from optimizer.evaluate.checking import Agreement
from optimizer.evaluate.evaluator import Effort
from optimizer.evaluate.memory import map_file, members_of, read_value
from optimizer.evaluate.outputs import judge_outputs
from optimizer.evaluate.protocol import Form
from optimizer.evaluate.shelf import take_files
from optimizer.evaluate.tray import Forms, Taken
from optimizer.evaluate.workbench import Workbench, fresh_seed
from tests.makers import OPERATOR

JAGGED = load_registry(CATALOG).operators["batch_event_truncate"]


@pytest.fixture(scope="module")
def bench(state: Path, host: HardwareSpec) -> Iterator[Workbench]:
    bench = Workbench(OPERATOR, host, folder=state, effort=Effort())
    yield bench
    bench.close()


@pytest.fixture(scope="module")
def jagged(state: Path, host: HardwareSpec) -> Iterator[CheckedCase]:
    bench = Workbench(JAGGED, host, folder=state, effort=Effort())
    workload = Workload(
        name="w",
        sizes={"features": 2, "users": 3},
        dtypes={"T": "float32"},
        attributes={"max_events": 300},
    )
    yield bench.maker.make([Request(workload, (5,))])[0]
    bench.close()


def left(case: CheckedCase, forms: Mapping[int, Forms]) -> dict[int, Taken]:
    """What lies in the files, as outputs that are told to be of these forms."""
    return {number: take_files(case.outputs[number], told) for number, told in forms.items()}


def answer(operator: Operator, case: CheckedCase) -> dict[int, Forms]:
    """Write the reference's outputs, computed here, into the files, and return their forms."""
    module: dict[str, object] = {}
    exec(operator.source, module)  # noqa: S102 - our own source
    reference = module[operator.spec.reference]
    forms: dict[int, Forms] = {}
    for number, values in enumerate(case.case.sets):
        outputs = reference(*map(read_value, values), **case.case.attributes)  # type: ignore[operator] # ours
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        for output, stored in zip(outputs, case.outputs[number], strict=True):
            mine = output if isinstance(output, list) else [output]
            for tensor, file in zip(mine, members_of(stored), strict=True):
                map_file(file).copy_(tensor)
        forms[number] = tuple(
            form if isinstance(stored, tuple) else form[0]
            for stored in case.outputs[number]
            for form in [tuple(Form(shape=f.shape, dtype=f.dtype) for f in members_of(stored))]
        )
    return forms


def make(bench: Workbench, *, rows: int, sets: int = 2) -> CheckedCase:
    workload = Workload(name="w", sizes={"rows": rows}, dtypes={"T": "float32"})
    return bench.maker.make([Request(workload, tuple(range(sets)))])[0]


def test_the_references_own_outputs_agree(bench: Workbench) -> None:
    case = make(bench, rows=100)

    assert isinstance(judge_outputs(OPERATOR, case, left(case, answer(OPERATOR, case))), Agreement)


def test_a_case_tells_a_candidate_neither_seed_nor_expectation(bench: Workbench) -> None:
    case = make(bench, rows=100)

    assert set(type(case.case).model_fields) == {"key", "attributes", "sets"}
    assert not list(bench.shared.folder("expected").iterdir())


def test_draws_of_a_small_size_are_judged_together(bench: Workbench) -> None:
    assert len(make(bench, rows=10, sets=3).expectations) == 1
    assert len(make(bench, rows=5000, sets=3).expectations) == 3


def test_a_wrong_element_is_found_in_its_own_draw(bench: Workbench) -> None:
    case = make(bench, rows=10, sets=3)
    forms = answer(OPERATOR, case)
    (file,) = members_of(case.outputs[1][0])
    map_file(file)[4] += 1

    found = judge_outputs(OPERATOR, case, left(case, forms))

    assert isinstance(found, Incorrect)
    assert found.counterexample is not None
    assert found.counterexample.index == (4,)
    assert found.counterexample.seed == case.seeds[1]


@pytest.mark.parametrize(
    ("form", "reason"),
    [
        (Form(shape=(99,), dtype="float32"), "has the shape (99,), wanted (100,)"),
        (Form(shape=(100,), dtype="float64"), "has the dtype float64, wanted float32"),
    ],
)
def test_a_wrong_form_is_told_without_reading_values(
    bench: Workbench, form: Form, reason: str
) -> None:
    case = make(bench, rows=100)
    forms = answer(OPERATOR, case) | {0: (form,)}

    found = judge_outputs(OPERATOR, case, left(case, forms))

    assert isinstance(found, Incorrect)
    assert found.reason == f"y {reason}"
    assert found.counterexample is None


def test_an_absurd_shape_takes_no_memory(bench: Workbench) -> None:
    case = make(bench, rows=100)
    forms = answer(OPERATOR, case) | {0: (Form(shape=(1 << 50,), dtype="float32"),)}

    assert isinstance(judge_outputs(OPERATOR, case, left(case, forms)), Incorrect)


def test_an_output_that_is_missing_is_incorrect(bench: Workbench) -> None:
    case = make(bench, rows=100)

    assert isinstance(judge_outputs(OPERATOR, case, left(case, {0: (), 1: ()})), Incorrect)


def test_lists_of_tensors_are_compared_member_by_member(jagged: CheckedCase) -> None:
    forms = answer(JAGGED, jagged)
    assert isinstance(judge_outputs(JAGGED, jagged, left(jagged, forms)), Agreement)
    member = members_of(jagged.outputs[0][2])[1]
    map_file(member)[7] += 1

    found = judge_outputs(JAGGED, jagged, left(jagged, forms))

    assert isinstance(found, Incorrect)
    assert found.counterexample is not None
    assert (found.counterexample.output, found.counterexample.index) == ("kept_values", (1, 7))


def test_seeds_are_never_the_same() -> None:
    assert len({fresh_seed() for _ in range(100)}) == 100


def test_drawn_sizes_are_other_ones_with_another_seed(bench: Workbench) -> None:
    first = bench.drawn_cases(4, seed=1, most=1 << 10)
    again = bench.drawn_cases(4, seed=1, most=1 << 10)
    other = bench.drawn_cases(4, seed=2, most=1 << 10)

    assert [c.workload for c in first] == [c.workload for c in again]
    assert [c.workload for c in first] != [c.workload for c in other]


def test_a_discarded_case_leaves_no_file(bench: Workbench) -> None:
    case = make(bench, rows=100)
    (file,) = members_of(case.outputs[0][0])
    assert Path(file.path).exists()

    case.discard()

    assert not Path(file.path).exists()
    assert torch.Size(file.shape).numel() == 100
