"""How long planning takes for 10,000 operators on 10 devices. The margins are wide."""

import time

import pytest

from operator_registry.diff import goals
from operator_registry.model import ModelSpec, Use
from operator_registry.registry import CATALOG, Operator, Registry, load_registry

pytestmark = pytest.mark.drill
OPERATORS, DEVICES = 10_000, 10
CHANGED = 5_000


def make_registry(known: Registry, *, changed: bool) -> Registry:
    """Return a registry that shares no value with another one, as two revisions do."""
    softmax = known.operators["softmax"]
    device = known.hardware["h200"]
    hardware = {
        f"device{i}": device.model_copy(update={"name": f"device{i}"}) for i in range(DEVICES)
    }
    operators = {}
    for number in range(OPERATORS):
        name = f"operator{number}"
        spec = type(softmax.spec).from_json(softmax.spec.to_json())
        edit = "X = 1\n" if changed and number == CHANGED else ""
        operators[name] = Operator(
            spec=spec.model_copy(update={"name": name}), source=softmax.source + edit
        )
    workloads = tuple(w.name for w in softmax.spec.workloads)
    uses = tuple(Use(operator=o, workloads=workloads, share_of_time=1e-5) for o in operators)
    model = ModelSpec(name="model", hardware=tuple(hardware), uses=uses)
    config = known.config.model_copy(update={"hardware": tuple(hardware)})
    return Registry(config, operators, hardware, {"model": model})


def test_a_change_of_one_file_is_planned_at_once() -> None:
    known = load_registry(CATALOG)
    before, after = make_registry(known, changed=False), make_registry(known, changed=True)
    began = time.perf_counter()

    found = goals(before, after)

    took_s = time.perf_counter() - began
    print(f"planned in {took_s * 1e3:.0f} ms")  # noqa: T201 - shown by `pytest -s`
    assert [goal.operator for goal in found] == [f"operator{CHANGED}"] * DEVICES
    assert {goal.reasons for goal in found} == {("reference changed",)}
    assert took_s < 10
