"""The executor: runs a launch plan, in the judge, in benches and for users alike."""

from collections.abc import Sequence
from typing import Final

import torch

from operator_registry.spec import OperatorSpec, Scalar
from optimizer.binding import Binding
from optimizer.calls import Value, call_key, find_setting, refuse_gradients
from optimizer.candidate import Choice
from optimizer.plan import Plan
from optimizer.prepared import Allocate, Allocators, PreparedCall
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
        allocate_output: Allocate | None = None,
    ) -> None:
        """Take what the plan needs.

        Args:
            spec: The operator.
            plan: The plan.
            chosen: The candidate's tunables.
            kernels: The candidate's compiled kernels, loaded.
            device: Where inputs must lie and outputs are made.
            allocate: Makes scratch memory, like `torch.empty`; at a multiple of 16.
            allocate_output: The same for outputs, one call each in the spec's order; the same one
                where none is given.
        """
        self.spec = spec
        self.plan = plan
        self.chosen = chosen
        self.device = indexed(torch.device(device))
        self._kernels = kernels
        self._allocate = Allocators(allocate, allocate_output or allocate)
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
        key = call_key(inputs, attributes)
        prepared = self._prepared.get(key)
        if prepared is None:
            prepared = self._remember(key, self.prepare(inputs, attributes))
        if torch.is_grad_enabled():
            refuse_gradients(inputs)
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
        setting = find_setting(self.spec, inputs, attributes, device=self.device)
        return PreparedCall(
            Binding(self.spec, self.plan, self.chosen, setting),
            kernels=self._kernels,
            device=self.device,
            allocate=self._allocate,
            tables=self._tables,
        )

    def _remember(self, key: object, prepared: PreparedCall) -> PreparedCall:
        while len(self._prepared) >= _REMEMBERED:
            self._prepared.pop(next(iter(self._prepared)), None)
        self._prepared[key] = prepared
        return prepared


def indexed(device: torch.device) -> torch.device:
    """Return the device with its number: tensors are on ``cuda:0``, never on ``cuda``."""
    if device.type == "cuda" and device.index is None:
        return torch.device("cuda", torch.cuda.current_device())
    return device
