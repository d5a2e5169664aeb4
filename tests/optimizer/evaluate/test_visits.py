"""Where a case's inputs lie run by run, and whether two runs gave the same."""

import random

import pytest
import torch
from torch import Tensor

from knowledge.outcome import Incorrect
from operator_registry.registry import Operator
from operator_registry.spec import PrecisionPolicy
from optimizer.evaluate.cases import CheckedCase, Expectation
from optimizer.evaluate.checking import make_standard
from optimizer.evaluate.guards import ALL_UP, Guard, Guards, without
from optimizer.evaluate.protocol import Case
from optimizer.evaluate.repeat import find_difference
from optimizer.evaluate.tray import Taken
from optimizer.evaluate.visits import Visits, plan_visits
from tests.makers import OPERATOR


def visits(guards: Guards = ALL_UP, *, sets: int = 3, strides: tuple[str, ...] = ()) -> Visits:
    precision = PrecisionPolicy(strides=strides)
    spec = OPERATOR.spec.model_copy(update={"precision": precision})
    return plan_visits(spec, sets, guards, random.Random(1))  # noqa: S311


def test_all_sets_come_to_the_same_place_and_the_first_one_again_to_another() -> None:
    planned = visits()

    assert [visit.number for visit in planned.first] == [0, 1, 2]
    assert len({visit.seat for visit in planned.first}) == 1
    assert [visit.number for visit in planned.again] == [0, 0]
    for visit in planned.again:
        assert visit.seat not in {first.seat for first in planned.first}
        assert visit.seat.shift % 64 == 0


def test_one_set_alone_is_run_again_at_another_address() -> None:
    planned = visits(sets=1)

    assert all(visit.seat.shift != planned.first[0].seat.shift for visit in planned.again)


def test_without_its_guard_each_set_keeps_its_place() -> None:
    planned = visits(without({Guard.FRESH}))

    assert [visit.seat.slot for visit in planned.first] == [0, 1, 2]
    assert set(planned.again) == {planned.first[0]}


def test_the_last_set_comes_misaligned_and_strided_where_that_is_admitted() -> None:
    planned, admitted = visits(), visits(strides=("x",))

    assert planned.aside is not None
    assert planned.aside.seat.shift % 2 == 1
    assert planned.aside.seat.strided == ()
    assert admitted.aside is not None
    assert admitted.aside.seat.strided == (0,)


@pytest.mark.parametrize(("guard", "name"), [(Guard.REPEAT, "again"), (Guard.STRIDES, "aside")])
def test_a_guard_that_is_down_saves_its_run(guard: Guard, name: str) -> None:
    assert not getattr(visits(without({guard})), name)


def difference(first: Tensor, second: Tensor, *, atomics: float = 0.0) -> Incorrect | None:
    policy = PrecisionPolicy(atomics=atomics)
    spec = OPERATOR.spec.model_copy(update={"precision": policy})
    standard = make_standard([first], [first.double()], policy)
    case = CheckedCase(
        case=Case(key="k", attributes={}, sets=((),)),
        workload=spec.workloads[0],
        seeds=(1,),
        scale=1.0,
        distribution="stated",
        sizes=({},),
        output_sizes=({},),
        expectations=(Expectation((0,), (standard,)),),
        outputs=((),),
    )
    taken = [Taken((), ((tensor,),)) for tensor in (first, second)]
    return find_difference(Operator(spec=spec, source=""), case, 0, *taken)


def test_two_runs_must_agree_to_the_last_bit() -> None:
    value = torch.tensor([1.0, float("nan")])
    other = torch.nextafter(value, torch.tensor(2.0))

    assert difference(value, value.clone()) is None
    assert difference(value, other) == Incorrect(
        reason="y differs between two runs on the same inputs"
    )


def test_where_atomics_are_admitted_the_last_bits_may_differ() -> None:
    value = torch.tensor([1.0, 4.0])
    near = value + torch.tensor([0.0, 4e-7])
    far = value + torch.tensor([1e-3, 0.0])

    assert difference(value, near, atomics=4) is None
    assert difference(value, far, atomics=4) is not None
