"""Whether a model's uses agree with the operators and the hardware of the registry."""

from collections.abc import Collection, Iterator, Mapping

from operator_registry.checks.hardware import check_devices, check_stem
from operator_registry.fault import Finding, name_one_of
from operator_registry.hardware import HardwareSpec
from operator_registry.model import ModelSpec, Use
from operator_registry.spec import OperatorSpec, TargetName

ROUNDING = 1e-9


def check_model(
    model: ModelSpec,
    stem: str,
    *,
    operators: Mapping[str, OperatorSpec | None],
    hardware: Mapping[str, HardwareSpec | None],
) -> Iterator[Finding]:
    """Yield what disagrees between a model and the rest; None stands for what can't be read."""
    yield from check_stem(model.name, stem)
    yield from check_devices(model.hardware, hardware)
    devices = [device for name in model.hardware if (device := hardware.get(name))]
    targets: set[TargetName] = {device.target for device in devices}
    for place, use in enumerate(model.uses):
        where = ("uses", place, "operator")
        if use.operator not in operators:
            message = f"{model.name} uses the unknown operator {use.operator!r}"
            yield Finding(where, message, name_one_of(use.operator, operators))
        elif operator := operators[use.operator]:
            yield from _check_use(place, use, operator, targets)
    total = sum(use.share_of_time for use in model.uses)
    if total > 1 + ROUNDING:
        message = f"the shares of time add up to {total:.4g}, more than 1"
        yield Finding(("uses",), message, "a share is a part of the model's whole time")


def _check_use(
    place: int, use: Use, operator: OperatorSpec, targets: Collection[TargetName]
) -> Iterator[Finding]:
    known = {w.name: w for w in operator.workloads}
    measured = {w.name for target in targets for w in operator.workloads_on(target)}
    for at, name in enumerate(use.workloads):
        where = ("uses", place, "workloads", at)
        if name not in known:
            message = f"{use.operator} has no workload {name!r}"
            yield Finding(where, message, name_one_of(name, known))
        elif targets and name not in measured:
            message = f"workload {name} of {use.operator} is measured on none of these devices"
            yield Finding(where, message, f"name another, or widen its targets in {use.operator}")
