"""Two revisions of a registry -> the goals that the change makes (pure, no torch)."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from operator_registry.hardware import HardwareSpec
from operator_registry.record import Record
from operator_registry.registry import Operator, Registry
from operator_registry.source import syntax_digest
from operator_registry.spec import OperatorSpec, TargetName, Workload

_OF_SPEC = ("axes", "dtypes", "inputs", "attributes", "outputs", "precision")
_OF_HARDWARE = ("target", "compile", "languages", "limits")
_OF_ENVIRONMENT = ("image", "torch", "triton", "driver")

_Uses = tuple[tuple[tuple[str, ...], float], ...]
"""How a model uses an operator: names of workloads and the share of time, use by use."""
_UsesByModel = Mapping[str, _Uses]


class Goal(Record):
    """An operator on a hardware, and why it could be faster now."""

    operator: str
    hardware: str
    reasons: tuple[str, ...]
    share_of_time: float
    """The greatest share that the operator has of a model's time on this hardware; 0 if none."""


def goals(before: Registry | None, after: Registry) -> tuple[Goal, ...]:
    """Return the goals that a change makes, ordered by operator and hardware.

    Prose makes none: summaries, owners, comments, docstrings, the order of workloads, the labels of
    runners. Nor does what is gone: a removed operator, device or use has nothing to search for.

    Args:
        before: The revision whose goals were made last; None for none, so that everything is new.
        after: The revision to look at.
    """
    old_operators = before.operators if before else {}
    old_uses, new_uses = _uses_by_pair(before), _uses_by_pair(after)
    devices = [(device, tuple(_hardware_reasons(before, device))) for device in _searched(after)]
    found = []
    for name in sorted(after.operators):
        old, new = old_operators.get(name), after.operators[name]
        of_operator = tuple(_operator_reasons(old, new))
        for device, of_device in devices:
            if not new.spec.workloads_on(device.target):
                continue
            uses = new_uses.get((name, device.name), {})
            reasons = (
                *of_operator,
                *_workload_reasons(old, new, device.target),
                *of_device,
                *_use_reasons(old_uses.get((name, device.name), {}), uses),
            )
            if reasons:
                found.append(_goal(name, device.name, reasons, uses))
    return tuple(found)


def _goal(operator: str, hardware: str, reasons: tuple[str, ...], uses: _UsesByModel) -> Goal:
    shares = (sum(share for _, share in each) for each in uses.values())
    return Goal(
        operator=operator,
        hardware=hardware,
        reasons=reasons,
        share_of_time=max(shares, default=0.0),
    )


def _searched(registry: Registry | None) -> tuple[HardwareSpec, ...]:
    """Return the devices that kernels are searched for."""
    if registry is None:
        return ()
    return tuple(registry.hardware[name] for name in sorted(set(registry.config.hardware)))


def _operator_reasons(old: Operator | None, new: Operator) -> Iterator[str]:
    if old is None:
        yield "operator added"
        return
    if _is_same(old, new):
        return
    if syntax_digest(old.source) != syntax_digest(new.source):
        yield "reference changed"
    if old.spec.reference != new.spec.reference:
        yield f"reference is now {new.spec.reference}"
    if set(old.spec.equivalents) != set(new.spec.equivalents):
        yield "equivalents changed"
    for name in _OF_SPEC:
        if _part(old.spec, name) != _part(new.spec, name):
            yield f"{name} changed"


def _part(spec: OperatorSpec, name: str) -> object:
    """Return a part of the spec; tensors with their order, which is that of the arguments."""
    part = getattr(spec, name)
    return tuple(part.items()) if name in {"inputs", "outputs"} else part


def _workload_reasons(old: Operator | None, new: Operator, target: TargetName) -> Iterator[str]:
    if old is None or _is_same(old, new):
        return
    was, now = _workloads(old, target), _workloads(new, target)
    for name in now:
        if name not in was:
            yield f"workload {name} added"
        elif was[name] != now[name]:
            yield f"workload {name} changed"
    for name in was:
        if name not in now:
            yield f"workload {name} removed"


def _workloads(operator: Operator, target: TargetName) -> dict[str, Workload]:
    on_target = operator.spec.workloads_on(target)
    return {w.name: w.model_copy(update={"targets": ()}) for w in on_target}


def _is_same(old: Operator, new: Operator) -> bool:
    return old is new or old.digest == new.digest


def _hardware_reasons(before: Registry | None, device: HardwareSpec) -> Iterator[str]:
    if before is None:
        return  # Every operator is new already.
    old = {searched.name: searched for searched in _searched(before)}.get(device.name)
    if old is None:
        yield "hardware added"
        return
    for name in _OF_ENVIRONMENT:
        was, now = getattr(old.environment, name), getattr(device.environment, name)
        if was != now:
            yield f"environment moved: {name} {was or 'any'} -> {now or 'any'}"
    for name in _OF_HARDWARE:
        if getattr(old, name) != getattr(device, name):
            yield f"hardware's {name} changed"


def _use_reasons(was: _UsesByModel, now: _UsesByModel) -> Iterator[str]:
    for model, uses in now.items():
        if model not in was:
            yield f"model {model} uses it"
        elif was[model] != uses:
            yield f"use by model {model} changed"


def _uses_by_pair(registry: Registry | None) -> dict[tuple[str, str], dict[str, _Uses]]:
    """Return, for each operator and hardware, the uses by the model's name."""
    found: dict[tuple[str, str], dict[str, _Uses]] = defaultdict(dict)
    models = registry.models if registry else {}
    for name, model in sorted(models.items()):
        for device in model.hardware:
            for operator in {use.operator for use in model.uses}:
                uses = (
                    (tuple(sorted(set(use.workloads))), use.share_of_time)
                    for use in model.uses
                    if use.operator == operator
                )
                found[operator, device][name] = tuple(sorted(uses))
    return found
