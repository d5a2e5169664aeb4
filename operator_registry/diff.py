"""Two revisions of a registry -> the goals that the change makes (pure, no torch)."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from operator_registry.hardware import HardwareSpec
from operator_registry.model import ModelSpec
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
_UsesByPair = Mapping[tuple[str, str], _UsesByModel]
"""By operator and hardware."""


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
    old_uses, new_uses = _changed_uses(before, after)
    shares = _shares(after)
    devices = [(device, tuple(_hardware_reasons(before, device))) for device in _searched(after)]
    found = []
    for name in sorted(after.operators):
        old, new = old_operators.get(name), after.operators[name]
        is_same = old is not None and _is_same(old, new)
        of_operator = () if is_same else tuple(_operator_reasons(old, new))
        for device, of_device in devices:
            was_used = old_uses.get((name, device.name), {})
            uses = new_uses.get((name, device.name), {})
            if is_same and not of_device and was_used == uses:
                continue  # as most pairs of a large registry are
            if not new.spec.workloads_on(device.target):
                continue
            reasons = (
                *of_operator,
                *(() if is_same else _workload_reasons(old, new, device.target)),
                *of_device,
                *_use_reasons(was_used, uses),
            )
            if reasons:
                found.append(
                    Goal(
                        operator=name,
                        hardware=device.name,
                        reasons=reasons,
                        share_of_time=_share(shares.get(name, {}), after, device.name),
                    )
                )
    return tuple(found)


def _shares(registry: Registry) -> Mapping[str, Mapping[str, float]]:
    """Return, for each operator, by model which share of its time the operator takes."""
    found: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for name, model in registry.models.items():
        for use in model.uses:
            found[use.operator][name] += use.share_of_time
    return found


def _share(shares: Mapping[str, float], registry: Registry, device: str) -> float:
    """Return the greatest share that an operator has of the time of a model on a device."""
    here = (share for model, share in shares.items() if device in registry.models[model].hardware)
    return max(here, default=0.0)


def _searched(registry: Registry | None) -> tuple[HardwareSpec, ...]:
    """Return the devices that kernels are searched for."""
    if registry is None:
        return ()
    return tuple(registry.hardware[name] for name in sorted(set(registry.config.hardware)))


def _operator_reasons(old: Operator | None, new: Operator) -> Iterator[str]:
    if old is None:
        yield "operator added"
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
    if old is None:
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
    # Most are equal as they stand, and a digest parses the source.
    return old is new or old == new or old.digest == new.digest


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


def _changed_uses(before: Registry | None, after: Registry) -> tuple[_UsesByPair, _UsesByPair]:
    """Return the uses before and after by models that are not the same; the others tell nothing."""
    old, new = before.models if before else {}, after.models
    changed = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
    was = _uses_by_pair({name: old[name] for name in changed if name in old})
    return was, _uses_by_pair({name: new[name] for name in changed if name in new})


def _uses_by_pair(models: Mapping[str, ModelSpec]) -> _UsesByPair:
    """Return, for each operator and hardware, the uses by the model's name."""
    found: dict[tuple[str, str], dict[str, _Uses]] = defaultdict(dict)
    for name, model in models.items():
        uses: dict[str, list[tuple[tuple[str, ...], float]]] = defaultdict(list)
        for use in model.uses:
            workloads = tuple(sorted(set(use.workloads)))
            uses[use.operator].append((workloads, use.share_of_time))
        by_operator = {operator: tuple(sorted(each)) for operator, each in uses.items()}
        for device in model.hardware:
            for operator, of_operator in by_operator.items():
                found[operator, device][name] = of_operator
    return found
