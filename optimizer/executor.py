"""The executor: runs a launch plan, in the judge, in benches and for users alike."""

from collections.abc import Sequence
from typing import Final

import torch
from torch import Tensor

from operator_registry.inputs import resolve_sizes
from operator_registry.spec import OperatorSpec, Scalar
from optimizer.binding import Binding
from optimizer.candidate import Choice
from optimizer.errors import CallError
from optimizer.plan import Plan
from optimizer.prepared import Allocate, PreparedCall
from optimizer.shapes import Setting, attributes_of, dtypes_of
from optimizer.steps import Value
from optimizer.tables import make_tables
from optimizer.targets.target import KernelTable

_REMEMBERED: Final = 512
"""Settings whose preparation is kept; data that decide their own sizes bring ever new ones."""


class Executor:
    """Runs one plan on one device, and remembers what it worked out for a call's sizes.

    Kernels are launched on the current stream and nothing waits for them but a plan's own
    `ReadSize`. Inputs that are not contiguous, or begin at an odd address, are copied first.
    """

    def __init__(  # noqa: PLR0913 - a plan needs all of these, and they come from three places
        self,
        spec: OperatorSpec,
        plan: Plan,
        chosen: Choice,
        *,
        kernels: KernelTable,
        device: str | torch.device,
        allocate: Allocate = torch.empty,
    ) -> None:
        """Take what the plan needs.

        Args:
            spec: The operator.
            plan: The plan.
            chosen: The candidate's tunables.
            kernels: The candidate's compiled kernels, loaded.
            device: Where inputs must lie and outputs are made.
            allocate: Makes outputs and scratch memory, like `torch.empty`; at a multiple of 16.
        """
        self.spec = spec
        self.plan = plan
        self.chosen = chosen
        self.device = _indexed(torch.device(device))
        self._kernels = kernels
        self._allocate = allocate
        self._tables = make_tables(self.device)
        self._prepared: dict[object, PreparedCall] = {}
        self._guarded = self.device.type == "cuda" and torch.cuda.device_count() > 1

    def __call__(self, *inputs: Value, **attributes: Scalar) -> tuple[Value, ...]:
        """Return the outputs in the spec's order: a tensor, or a list of tensors, each.

        Raises:
            CallError: The arguments are not what the operator takes.
            PlanError: The plan can't be run at these sizes.
            KeyError: The plan needs a kernel that was not built.
        """
        key = _key(inputs, attributes)
        prepared = self._prepared.get(key)
        if prepared is None:
            prepared = self._remember(key, self.prepare(inputs, attributes))
        if torch.is_grad_enabled():
            _refuse_gradients(inputs)
        if self._guarded and torch.cuda.current_device() != self.device.index:
            with torch.cuda.device(self.device):
                return prepared(inputs)
        return prepared(inputs)

    def prepare(self, inputs: Sequence[Value], attributes: dict[str, Scalar]) -> PreparedCall:
        """Return the call with all worked out that sizes, dtypes and attributes decide.

        Raises:
            CallError: The arguments are not what the operator takes.
            PlanError: The plan can't be run at these sizes.
            KeyError: The plan needs a kernel that was not built.
        """
        filled = attributes_of(self.spec, attributes)
        try:
            sizes = resolve_sizes(self.spec, inputs, filled)
        except ValueError as error:
            raise CallError(*error.args) from error
        self._check_devices(inputs)
        setting = Setting(sizes, dtypes_of(self.spec, [_dtypes(x) for x in inputs]), filled)
        return PreparedCall(
            Binding(self.spec, self.plan, self.chosen, setting),
            kernels=self._kernels,
            device=self.device,
            allocate=self._allocate,
            tables=self._tables,
        )

    def _check_devices(self, inputs: Sequence[Value]) -> None:
        for name, value in zip(self.spec.inputs, inputs, strict=True):
            for tensor in (value,) if isinstance(value, Tensor) else value:
                if tensor.device != self.device:
                    msg = f"{name} is on {tensor.device}; this kernel runs on {self.device}"
                    raise CallError(msg)

    def _remember(self, key: object, prepared: PreparedCall) -> PreparedCall:
        while len(self._prepared) >= _REMEMBERED:
            self._prepared.pop(next(iter(self._prepared)), None)
        self._prepared[key] = prepared
        return prepared


def _key(inputs: Sequence[Value], attributes: dict[str, Scalar]) -> object:
    """Return what decides the preparation of a call; made at each call, so kept short."""
    parts: list[object] = []
    try:
        for value in inputs:
            if isinstance(value, Tensor):
                parts += (value.shape, value.dtype, value.get_device())
            else:
                parts.append(tuple((m.shape, m.dtype, m.get_device()) for m in value))
    except (AttributeError, TypeError) as error:
        msg = f"inputs are tensors or lists of tensors, not {type(value).__name__}"
        raise CallError(msg) from error
    if attributes:
        parts.append(tuple(attributes.items()))
    return tuple(parts)


def _refuse_gradients(inputs: Sequence[Value]) -> None:
    for value in inputs:
        for tensor in (value,) if isinstance(value, Tensor) else value:
            if tensor.requires_grad:
                msg = "the kernel has no backward pass; call it under torch.no_grad(), or detach()"
                raise CallError(msg)


def _dtypes(value: Value) -> str | list[str]:
    if isinstance(value, Tensor):
        return str(value.dtype).removeprefix("torch.")
    return [str(member.dtype).removeprefix("torch.") for member in value]


def _indexed(device: torch.device) -> torch.device:
    """Return the device with its number: tensors are on ``cuda:0``, never on ``cuda``."""
    if device.type == "cuda" and device.index is None:
        return torch.device("cuda", torch.cuda.current_device())
    return device
