"""Names of a spec that would hide what kernels call their own, changed for the emitters' sake.

Emitters work on a spec and a graph with safe names. A plan's texts are expressions, so they get the
spec's own names back.
"""

import ast
import keyword
from collections.abc import Mapping
from typing import Any, TypeVar

from operator_registry.spec import OperatorSpec
from optimizer.plan import Plan
from optimizer.propose.synthesis.graph import (
    Argument,
    Expr,
    Graph,
    GraphInput,
    GraphOutput,
    Kind,
    Node,
    Ref,
)

Renaming = Mapping[str, str]
AnyKind = TypeVar("AnyKind", bound=Kind)
_LOCALS = frozenset({
    "row", "col", "i", "first", "last", "block", "blocks", "lane", "start", "mask", "element",
    "elements", "segment", "member", "run", "runs", "event", "kept", "low", "high", "length",
    "read", "written", "done", "count", "place", "places", "part", "source", "target", "inside",
    "begin", "end", "at", "sizes", "starts", "total", "greatest", "least", "product", "lengths",
    "run_start", "run_length", "run_place", "run_end", "skipped", "before", "taken", "ahead",
    "tl", "triton", "load", "keep", "exp", "tanh", "expm1", "log1p", "maximum", "minimum", "range",
    "float", "int", "double", "bool", "auto", "char", "short", "long", "const", "static", "struct",
    "template", "typename", "class", "void", "signed", "unsigned", "switch", "case", "default",
    "do", "goto", "enum", "union", "using", "namespace", "new", "delete", "this", "operator",
    "private", "public", "protected", "virtual", "inline", "extern", "register", "volatile",
    "sizeof", "typedef", "true", "false", "bf16", "fp16", "stream", "sum_of", "count_before",
    "count_in_bucket", "bucket_shift",
    "xor", "bitand", "bitor", "compl", "catch", "throw", "std", "omp",
})  # fmt: skip


def safe_names(spec: OperatorSpec) -> dict[str, str]:
    """Return a new name for each name of a spec that emitted code can't use."""
    names = [*spec.axes, *spec.inputs, *spec.outputs, *spec.attributes]
    renaming: dict[str, str] = {}
    for name in names:
        if name in _LOCALS or keyword.iskeyword(name):
            fresh = f"{name}_"
            while fresh in names:
                fresh += "_"
            renaming[name] = fresh
    return renaming


def rename_spec(spec: OperatorSpec, renaming: Renaming) -> OperatorSpec:
    """Return the spec with other names for axes, tensors and attributes."""
    if not renaming:
        return spec
    fields = spec.model_dump(mode="json")
    for table in ("axes", "inputs", "outputs", "attributes"):
        fields[table] = {
            renaming.get(k, k): _renamed(v, renaming) for k, v in fields[table].items()
        }
    for workload in fields["workloads"]:
        for table in ("sizes", "attributes"):
            workload[table] = {renaming.get(k, k): v for k, v in workload[table].items()}
    fields["precision"]["row_axes"] = _renamed(fields["precision"]["row_axes"], renaming)
    # Built without validation: the names are not for users, who could not have written some.
    return OperatorSpec.model_validate(fields)


def rename_graph(graph: Graph, renaming: Renaming) -> Graph:
    """Return the graph with other names for inputs, outputs and what sizes depend on."""
    if not renaming:
        return graph
    inputs = {
        renaming.get(name, name): _kind(kind, renaming) for name, kind in graph.inputs.items()
    }
    nodes = tuple(_node(node, renaming) for node in graph.nodes)
    outputs = {
        renaming.get(name, name): GraphOutput(
            ref=_ref(output.ref, renaming),
            list_over=_renamed(output.list_over, renaming),
        )
        for name, output in graph.outputs.items()
    }
    return graph.model_copy(update={"inputs": inputs, "nodes": nodes, "outputs": outputs})


def rename_plan(plan: Plan, renaming: Renaming) -> Plan:
    """Return the plan with other names in its expressions."""
    if not renaming:
        return plan
    fields = plan.model_dump(mode="json")
    fields["let"] = {k: rename_expression(v, renaming) for k, v in fields["let"].items()}
    for buffer in fields["buffers"].values():
        buffer["shape"] = [rename_expression(size, renaming) for size in buffer["shape"]]
    for step in fields["steps"]:
        for key in ("grid", "arguments"):
            if key in step:
                step[key] = [rename_expression(text, renaming) for text in step[key]]
        for key in ("warps", "stages", "when", "index", "count", "axis"):
            if step.get(key) is not None:
                step[key] = rename_expression(step[key], renaming)
        if "constants" in step:
            step["constants"] = {
                k: rename_expression(v, renaming) for k, v in step["constants"].items()
            }
    return Plan.model_validate(fields)


def rename_expression(text: str, renaming: Renaming) -> str:
    """Return an expression with other names for its variables; functions keep theirs."""
    tree = ast.parse(text, mode="eval")
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    found = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and id(n) not in called]
    for node in sorted(found, key=lambda n: -n.col_offset):
        new = renaming.get(node.id, node.id)
        text = text[: node.col_offset] + new + text[node.col_offset + len(node.id) :]
    return text


def _node(node: Node, renaming: Renaming) -> Node:
    return node.model_copy(
        update={
            "args": _argument(node.args, renaming),
            "kwargs": {key: _argument(value, renaming) for key, value in node.kwargs.items()},
            "results": tuple(_kind(kind, renaming) for kind in node.results),
        }
    )


def _kind(kind: AnyKind, renaming: Renaming) -> AnyKind:
    shape = tuple(rename_expression(size, renaming) for size in kind.shape)
    update: dict[str, object] = {"shape": shape}
    if isinstance(kind, GraphInput):
        update["list_over"] = _renamed(kind.list_over, renaming)
    return kind.model_copy(update=update)


def _ref(ref: Ref, renaming: Renaming) -> Ref:
    return ref.model_copy(update={"node": renaming.get(ref.node, ref.node)})


def _argument(argument: Argument, renaming: Renaming) -> Argument:
    if isinstance(argument, Ref):
        return _ref(argument, renaming)
    if isinstance(argument, Expr):
        return argument.model_copy(update={"text": rename_expression(argument.text, renaming)})
    if isinstance(argument, tuple):
        return tuple(_argument(part, renaming) for part in argument)
    return argument


def _renamed(value: Any, renaming: Renaming) -> Any:  # noqa: ANN401 - JSON of a spec
    """Return JSON with names replaced wherever a text is one of them."""
    if isinstance(value, str):
        return renaming.get(value, value)
    if isinstance(value, list):
        return [_renamed(part, renaming) for part in value]
    if isinstance(value, dict):
        return {k: part if k == "kind" else _renamed(part, renaming) for k, part in value.items()}
    return value
