"""The peers of a candidate: every form of the operator under every way that PyTorch runs it.

A peer is named ``form/mode``: the form is ``reference`` or an equivalent's name. This module runs
the operator's own code: only in a worker process.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from operator_registry.inputs import load_reference
from operator_registry.registry import Operator
from operator_registry.spec import OperatorSpec, Scalar, SumAxis
from optimizer.evaluate.dispatch import CallLog
from optimizer.evaluate.memory import Value
from optimizer.evaluate.timing import Call

REFERENCE = "reference"
EAGER = "reference/eager"
HOST_MODES = ("eager", "compile-default", "compile-max-autotune")
DEVICE_MODES = (
    "eager", "compile-default", "compile-max-autotune",
    "eager-graph", "compile-default-graph", "compile-max-autotune-graph",
)  # fmt: skip
_COMPILE_MODES: Mapping[str, str | None] = {
    "compile-default": None,
    "compile-max-autotune": "max-autotune-no-cudagraphs",
}
_GRAPH = "-graph"
_PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "conv", "attention", "linear", "matmul")
_WARM_UPS = 3
Form = Callable[..., Any]


class PeerAbsentError(Exception):
    """The peer can't run here, or would be the same code as another; the message says why."""


def peer_names(operator: Operator, device: str) -> tuple[str, ...]:
    """Return the names of all peers on a kind of device, eager ones first."""
    modes = DEVICE_MODES if device == "cuda" else HOST_MODES
    forms = (REFERENCE, *operator.spec.equivalents)
    return tuple(f"{form}/{mode}" for mode in modes for form in forms)


def needs_graph(peer: str) -> bool:
    """Return whether the peer runs under a CUDA graph."""
    return peer.endswith(_GRAPH)


def is_tuned(peer: str) -> bool:
    """Return whether compiling the peer takes times of its own on the device."""
    return "max-autotune" in peer


def uncaptured(peer: str) -> str:
    """Return the same peer without a CUDA graph around it."""
    return peer.removesuffix(_GRAPH)


class Peers:
    """The forms of an operator, ready to be called in every mode."""

    def __init__(self, operator: Operator, device: str) -> None:
        """Import the operator's code: foreign, so this belongs in a worker."""
        module = load_reference(operator)
        names = {REFERENCE: operator.spec.reference, **{e: e for e in operator.spec.equivalents}}
        self._forms: dict[str, Form] = {form: getattr(module, n) for form, n in names.items()}
        self._device = device
        # Code for the very sizes is the strongest peer. Where the data decide sizes, each call
        # brings new ones, and PyTorch is left to its own rule.
        self._dynamic = None if _data_decide_sizes(operator.spec) else False
        self._compiled: dict[str, Form] = {}

    def bind(self, peer: str, inputs: Sequence[Value], attributes: Mapping[str, Scalar]) -> Call:
        """Return a call of the peer on these inputs, compiled, captured and warmed up.

        Raises:
            PeerAbsentError: It can't run, or is another peer under a second name.
        """
        form, _, mode = peer.partition("/")
        plain = mode.removesuffix(_GRAPH)
        self._refuse_double(form, plain, inputs, attributes)
        function = self._function(form, plain)
        if mode.endswith(_GRAPH):
            return _capture(function, inputs, attributes)
        call = _call(function, inputs, attributes)
        for _ in range(_WARM_UPS):
            call()
        return call

    def _function(self, form: str, mode: str) -> Form:
        if mode == "eager":
            return self._forms[form]
        key = f"{form}/{mode}"
        if key not in self._compiled:
            # One code object serves all sizes; past the limit dynamo would quietly run eagerly.
            torch._dynamo.config.recompile_limit = 256  # noqa: SLF001 - where torch keeps it
            torch._dynamo.config.accumulated_recompile_limit = 1 << 16  # noqa: SLF001
            self._compiled[key] = torch.compile(
                self._forms[form], mode=_COMPILE_MODES[mode], dynamic=self._dynamic
            )
        return self._compiled[key]

    def _refuse_double(
        self, form: str, mode: str, inputs: Sequence[Value], attributes: Mapping[str, Scalar]
    ) -> None:
        """On a processor, max-autotune changes matrix products only."""
        if self._device == "cuda" or mode != "compile-max-autotune":
            return
        with CallLog() as calls:
            self._forms[form](*inputs, **attributes)
        if not any(product in name for name in calls.names for product in _PRODUCTS):
            msg = "compiles to the same code as compile-default: no matrix product to tune"
            raise PeerAbsentError(msg)


def _refuse_waiting(call: Call) -> None:
    """A call that waits for the device can't be captured, and a failed capture leaves a mess."""
    torch.cuda.set_sync_debug_mode("error")
    try:
        call()
    except RuntimeError as error:
        msg = f"can't be captured in a CUDA graph: {str(error).splitlines()[0]}"
        raise PeerAbsentError(msg) from error
    finally:
        torch.cuda.set_sync_debug_mode("default")


def _data_decide_sizes(spec: OperatorSpec) -> bool:
    axes = (axis for tensor in spec.inputs.values() for axis in tensor.shape)
    return any(isinstance(spec.axes[axis], SumAxis) for axis in axes)


def outputs_of(returned: Any) -> tuple[Value, ...]:  # noqa: ANN401 - whatever foreign code returns
    """Return what a form returned as a tuple of outputs."""
    return tuple(returned) if isinstance(returned, tuple) else (returned,)


def _call(function: Form, inputs: Sequence[Value], attributes: Mapping[str, Scalar]) -> Call:
    def call() -> tuple[Value, ...]:
        return outputs_of(function(*inputs, **attributes))

    return call


@dataclass(frozen=True)
class _Replay:
    """A captured call."""

    graph: torch.cuda.CUDAGraph
    buffers: list[Value]
    """Kept, because the graph reads them at their addresses and knows nothing of their lives."""
    outputs: tuple[Value, ...]

    def __call__(self) -> tuple[Value, ...]:
        self.graph.replay()
        return self.outputs


def _capture(function: Form, inputs: Sequence[Value], attributes: Mapping[str, Scalar]) -> Call:
    """Return a replay of the function captured on buffers of its own.

    The buffers hold these inputs: bringing fresh values there is not part of a replay.
    """
    plain = _call(function, inputs, attributes)
    plain()  # compiles, which may wait
    _refuse_waiting(plain)
    buffers = [x.clone() if isinstance(x, Tensor) else [m.clone() for m in x] for x in inputs]
    call = _call(function, buffers, attributes)
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call] # torch's
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(_WARM_UPS):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            outputs = call()
    except RuntimeError as error:
        torch.cuda.synchronize()
        msg = f"can't be captured in a CUDA graph: {str(error).splitlines()[0]}"
        raise PeerAbsentError(msg) from error

    replay = _Replay(graph, buffers, outputs)
    for _ in range(_WARM_UPS):
        replay()
    return replay
