"""Traces of a reference at a few sizes, made into a graph. Runs foreign code: only in a child."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, fx
from torch._decomp import core_aten_decompositions
from torch.func import functionalize
from torch.fx.experimental.proxy_tensor import make_fx

from operator_registry.inputs import Size, Value, load_reference, make_inputs, resolve_sizes
from operator_registry.registry import Operator
from operator_registry.spec import Workload
from optimizer.errors import CaptureError
from optimizer.propose.synthesis.graph import (
    CaptureReply,
    CaptureRequest,
    Graph,
    GraphInput,
    GraphOutput,
    Ref,
)
from optimizer.propose.synthesis.members import collapse, member_name
from optimizer.propose.synthesis.probes import make_probes, narrowest
from optimizer.propose.synthesis.recorder import Recorder, kind_of
from optimizer.propose.synthesis.unify import Trace, unify

_KEPT_WHOLE = (
    torch.ops.aten.silu, torch.ops.aten.square, torch.ops.aten.addcmul, torch.ops.aten.addcdiv,
    torch.ops.aten.softplus, torch.ops.aten.var, torch.ops.aten.var_mean, torch.ops.aten.std,
)  # fmt: skip
"""Operations of the core set's decompositions that have a rule of their own here."""
_SEEDS = range(64)


def answer(request: str) -> str:
    """Return a `CaptureReply` to a `CaptureRequest`, both as JSON; a child's function."""
    asked = CaptureRequest.from_json(request)
    try:
        return CaptureReply(graph=capture(asked.operator, asked.form)).to_json()
    except CaptureError as error:
        return CaptureReply(reason=str(error)).to_json()


def capture(operator: Operator, form: str) -> Graph:
    """Return the graph of one form of an operator's reference.

    Raises:
        CaptureError: The form raises, or does what no graph shows; says which and where.
    """
    function = getattr(load_reference(operator), form)
    dtypes = narrowest(operator.spec)
    traces = [
        _trace(operator, form, function, probe) for probe in make_probes(operator.spec, dtypes)
    ]
    graph = _with_variables(unify(traces), {bound: name for name, bound in dtypes.items()})
    _check_outputs(operator, graph)
    return graph


def _check_outputs(operator: Operator, graph: Graph) -> None:
    for name, spec in operator.spec.outputs.items():
        kind = graph.kind_of(graph.outputs[name].ref)
        wanted = (str(spec.dtype), len(spec.shape))
        if (kind.dtype, len(kind.shape)) != wanted:
            msg = (
                f"{graph.form} returns {name} as {kind.dtype} of {len(kind.shape)} axes; "
                f"the spec says {spec.dtype} of {len(spec.shape)}"
            )
            raise CaptureError(msg)


def _trace(operator: Operator, form: str, function: Callable[..., Any], probe: Workload) -> Trace:
    inputs, sizes = _draw(operator, probe)
    attributes = {
        name: probe.attributes.get(name, a.value) for name, a in operator.spec.attributes.items()
    }
    names, flat = _flattened(operator, inputs)
    module = _traced(form, lambda *tensors: function(*_nested(inputs, tensors), **attributes), flat)
    recorder = Recorder(module, names)
    recorder.run(*flat)
    graph = Graph(
        operator=operator.name,
        form=form,
        inputs={
            name: GraphInput(
                **kind_of(tensor).model_dump(),
                list_over=operator.spec.inputs[name.partition("@")[0]].list_over,
            )
            for name, tensor in zip(names, flat, strict=True)
        },
        nodes=tuple(recorder.nodes),
        outputs={},
    )
    single, listed = _outputs(operator, form, recorder.result)
    sizes = _with_output_sizes(
        operator, graph, sizes, {n: o.ref for n, o in single.items()}, listed
    )
    members = [{a: s[m] for a, s in sizes.items() if isinstance(s, tuple)} for m in _count(sizes)]
    collapsed = collapse(graph.model_copy(update={"outputs": single}), listed, members)
    first = {axis: s if isinstance(s, int) else s[0] for axis, s in sizes.items()}
    return Trace(collapsed, {**first, **attributes})


def _with_output_sizes(
    operator: Operator,
    graph: Graph,
    sizes: Mapping[str, Size],
    single: Mapping[str, Ref],
    listed: Mapping[str, Sequence[Ref]],
) -> dict[str, Size]:
    """Return the sizes with those of axes that only outputs have."""
    known = dict(sizes)
    for name, ref in single.items():
        several = [graph.kind_of(member).shape for member in listed.get(name, (ref,))]
        for place, axis in enumerate(operator.spec.outputs[name].shape):
            if axis not in sizes:
                each = tuple(int(shape[place]) for shape in several)
                known[axis] = each if operator.spec.has_member_sizes(axis) else each[0]
    return known


def _traced(form: str, function: Callable[..., Any], flat: Sequence[Tensor]) -> fx.GraphModule:
    table: dict[Any, Callable[..., Any]] = dict(core_aten_decompositions())
    for packet in _KEPT_WHOLE:
        for overload in packet.overloads():  # type: ignore[no-untyped-call]
            table.pop(getattr(packet, overload), None)
    pure = functionalize(function, remove="mutations")
    try:
        with torch.no_grad():
            return make_fx(_taking_any(pure), table, tracing_mode="real")(*flat)
    except Exception as error:  # whatever foreign code raises is the reason that we report
        what = str(error).strip().splitlines()
        msg = f"{form} can't be captured: {type(error).__name__}: {what[0] if what else ''}"
        raise CaptureError(msg) from error


def _taking_any(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with a star signature: make_fx counts the parameters of what it gets."""

    def call(*tensors: Tensor) -> Any:  # noqa: ANN401 - whatever the form returns
        return function(*tensors)

    return call


def _draw(operator: Operator, probe: Workload) -> tuple[tuple[Value, ...], Mapping[str, Size]]:
    """Return inputs with their sizes; the sizes that the data decide differ from all others."""
    for seed in _SEEDS:
        inputs = make_inputs(operator, probe, seed=seed)
        sizes = resolve_sizes(operator.spec, inputs, probe.attributes)
        decided = [s for axis, s in sizes.items() if axis not in probe.sizes]
        each = [n for s in decided for n in (s if isinstance(s, tuple) else (s,))]
        if (
            len({*each, *probe.sizes.values(), 0, 1})
            == len(each) + len({*probe.sizes.values()}) + 2
        ):
            return inputs, sizes
    return inputs, sizes


def _count(sizes: Mapping[str, Size]) -> range:
    """Return the members of the lists whose sizes differ; one where there are none."""
    return range(max((len(s) for s in sizes.values() if isinstance(s, tuple)), default=1))


def _flattened(operator: Operator, inputs: Sequence[Value]) -> tuple[list[str], list[Tensor]]:
    names: list[str] = []
    flat: list[Tensor] = []
    for name, value in zip(operator.spec.inputs, inputs, strict=True):
        if isinstance(value, Tensor):
            names.append(name)
            flat.append(value)
            continue
        names += [member_name(name, member) for member in range(len(value))]
        flat += value
    return names, flat


def _nested(inputs: Sequence[Value], tensors: Sequence[Tensor]) -> list[Value]:
    """Return the tensors in lists as the inputs are."""
    left = iter(tensors)
    return [
        next(left) if isinstance(value, Tensor) else [next(left) for _ in value] for value in inputs
    ]


def _outputs(
    operator: Operator,
    form: str,
    result: Any,  # noqa: ANN401 - whatever the form returns
) -> tuple[dict[str, GraphOutput], dict[str, list[Ref]]]:
    """Return single outputs and, for lists, the value of each member."""
    several = result if isinstance(result, tuple | list) else (result,)
    if len(operator.spec.outputs) == 1 and next(iter(operator.spec.outputs.values())).list_over:
        several = (result,)
    if len(several) != len(operator.spec.outputs):
        msg = f"{form} returns {len(several)} outputs, the spec has {len(operator.spec.outputs)}"
        raise CaptureError(msg)
    single: dict[str, GraphOutput] = {}
    listed: dict[str, list[Ref]] = {}
    for (name, spec), value in zip(operator.spec.outputs.items(), several, strict=True):
        if spec.list_over:
            listed[name] = list(value)
            single[name] = GraphOutput(ref=listed[name][0], list_over=spec.list_over)
        elif isinstance(value, Ref):
            single[name] = GraphOutput(ref=value)
        else:
            msg = f"{form} returns {value!r} for {name}, which no operation computed"
            raise CaptureError(msg)
    return single, listed


def _with_variables(graph: Graph, names: Mapping[str, str]) -> Graph:
    """Return the graph with the dtypes that variables were bound to by the variables' names."""

    def renamed(kind: Any) -> Any:  # noqa: ANN401 - a Kind or a GraphInput
        return kind.model_copy(update={"dtype": names.get(kind.dtype, kind.dtype)})

    nodes = tuple(
        node.model_copy(update={"results": tuple(renamed(kind) for kind in node.results)})
        for node in graph.nodes
    )
    inputs = {name: renamed(kind) for name, kind in graph.inputs.items()}
    return graph.model_copy(update={"nodes": nodes, "inputs": inputs})
