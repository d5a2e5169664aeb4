"""A candidate's own host side in Python: ``run(*inputs, *outputs, *sizes, **named)``.

The caller makes the outputs, at their upper bound where the data decide a size; `run` fills them,
launches on the current stream, returns nothing and keeps nothing between two calls. `sizes` are
int64 tensors on the device, one for each axis that the data decide, in the spec's order (one
element, or one for each member of a list): `run` leaves the true sizes there. `named` are the
operator's attributes and the chosen tunables. Loading and calling it runs foreign code.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

import torch
from torch import Tensor

from operator_registry.spec import OperatorSpec, Scalar, SumAxis
from optimizer.binding import upper_bound
from optimizer.calls import (
    Value,
    call_key,
    check_size,
    find_setting,
    output_maker,
    refuse_gradients,
)
from optimizer.candidate import RUN, Choice
from optimizer.errors import PlanError
from optimizer.executor import indexed
from optimizer.expression import Size
from optimizer.list_output import ListOutput
from optimizer.prepared import Allocate
from optimizer.shapes import Setting
from optimizer.source_module import import_source
from optimizer.steps import narrow
from optimizer.targets.device_memory import read_words

Run = Callable[..., object]
_REMEMBERED: Final = 512


def load_run(code: str, name: str) -> Run:
    """Return the code's `run`; its module level is run.

    Args:
        code: The source.
        name: The file that tracebacks tell; it need not exist.

    Raises:
        PlanError: The code defines no such function.
    """
    return find_run(vars(import_source(code, name)))


def find_run(names: Mapping[str, object]) -> Run:
    """Return the function `run` among a module's names.

    Raises:
        PlanError: There is none.
    """
    run = names.get(RUN)
    if not callable(run):
        msg = f"the code defines no function {RUN}"
        raise PlanError(msg)
    return run


class HostPython:
    """Calls one candidate's `run` on one device, as `Executor` runs a plan."""

    def __init__(
        self,
        spec: OperatorSpec,
        chosen: Choice,
        run: Run,
        *,
        device: str | torch.device,
        allocate: Allocate = torch.empty,
    ) -> None:
        """Take what a call needs.

        Args:
            spec: The operator.
            chosen: The candidate's tunables.
            run: Its function.
            device: Where inputs must lie and outputs are made.
            allocate: Makes outputs, like `torch.empty`.
        """
        self.spec = spec
        self.chosen = chosen
        self.device = indexed(torch.device(device))
        self._run = run
        self._allocate = allocate
        self._prepared: dict[object, PreparedRun] = {}

    def __call__(self, *inputs: Value, **attributes: Scalar) -> tuple[Value, ...]:
        """Return the outputs in the spec's order: a tensor, or a list of tensors, each.

        Raises:
            CallError: The arguments are not what the operator takes.
            PlanError: A size that the data decide is out of its range, or has no bound.
        """
        key = call_key(inputs, attributes)
        prepared = self._prepared.get(key)
        if prepared is None:
            if len(self._prepared) >= _REMEMBERED:
                self._prepared.clear()
            setting = find_setting(self.spec, inputs, attributes, device=self.device)
            prepared = self._prepared[key] = self._prepare(setting)
        if torch.is_grad_enabled():
            refuse_gradients(inputs)
        return prepared(inputs)

    def _prepare(self, setting: Setting) -> "PreparedRun":
        make = partial(self._allocate, device=self.device)
        named = {**setting.attributes, **self.chosen}
        return PreparedRun(self.spec, setting, partial(self._run, **named), make=make)


class PreparedRun:
    """A call with all worked out that its sizes decide."""

    def __init__(
        self, spec: OperatorSpec, setting: Setting, run: Run, *, make: Callable[..., Tensor]
    ) -> None:
        self._spec = spec
        self._run = run
        self._bounds = bounds_of(spec, setting.sizes)
        sizes = {**setting.sizes, **self._bounds}
        self._makers = [
            output_maker(
                spec,
                name,
                sizes=sizes,
                dtype=getattr(torch, setting.dtypes.get(tensor.dtype, tensor.dtype)),
                make=make,
            )
            for name, tensor in spec.outputs.items()
        ]
        self._size_makers = [
            partial(make, (count_of(bound),), dtype=torch.int64) for bound in self._bounds.values()
        ]

    def __call__(self, inputs: Sequence[Value]) -> tuple[Value, ...]:
        """Run it and return the outputs, cut to their true sizes.

        Raises:
            PlanError: A size that it left is out of its range.
        """
        outputs = [make() for make in self._makers]
        sizes = [make() for make in self._size_makers]
        self._run(*map(_contiguous, inputs), *map(_given, outputs), *sizes)
        for (axis, bound), left in zip(self._bounds.items(), sizes, strict=True):
            size = _size(left, bound)
            check_size(axis, size, bound, where=RUN)
            narrow(outputs, self._spec, axis, size)
        return tuple(map(_given, outputs))


def bounds_of(spec: OperatorSpec, sizes: Mapping[str, Size]) -> dict[str, Size]:
    """Return the upper bound of each output axis that the data decide, in the spec's order.

    Raises:
        PlanError: The spec states no bound.
    """
    shapes = {axis for output in spec.outputs.values() for axis in output.shape}
    decided = [a for a in spec.axes if a in shapes and a not in sizes and _is_decided(spec, a)]
    return {axis: upper_bound(spec, axis, sizes) for axis in decided}


def count_of(bound: Size) -> int:
    """Return how many sizes an axis has: one, or one for each member of a list."""
    return 1 if isinstance(bound, int) else len(bound)


def _is_decided(spec: OperatorSpec, axis: str) -> bool:
    return isinstance(spec.axes[axis], SumAxis)


def _size(left: Tensor, bound: Size) -> Size:
    words = tuple(read_words(left))
    return words[0] if isinstance(bound, int) else words


def _given(output: Value | ListOutput) -> Value:
    return output.members() if isinstance(output, ListOutput) else output


def _contiguous(value: Value) -> Value:
    if isinstance(value, Tensor):
        return value.contiguous()
    return [member.contiguous() for member in value]
