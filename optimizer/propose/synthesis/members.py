"""Lists of tensors in a trace: the operations on each member, shown once for all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from optimizer.errors import CaptureError
from optimizer.propose.synthesis.graph import (
    Argument,
    Graph,
    GraphOutput,
    Kind,
    Node,
    Ref,
    arguments_of,
)

Members = Mapping[str, Sequence[Ref]]
"""For each list output of a trace, the value of each member."""


def member_name(name: str, member: int) -> str:
    """Return how a trace calls a member of a list input."""
    return f"{name}@{member}"


def collapse(trace: Graph, members: Members, sizes: Sequence[Mapping[str, int]]) -> Graph:
    """Return the trace with the first member of each list standing for all of them.

    Args:
        trace: Its list inputs appear member by member, as `member_name` calls them.
        members: The values of list outputs.
        sizes: For each member, its own size along the axes that have one size a member.

    Raises:
        CaptureError: Members are not computed alike, or one member's value needs another's.
    """
    folding = _Folding(trace, sizes)
    outputs = dict(trace.outputs)
    for name, refs in members.items():
        for member, ref in enumerate(refs):
            if not folding.alike(refs[0], ref, member):
                msg = f"{trace.form} computes member {member} of {name} otherwise than the first"
                raise CaptureError(msg)
        outputs[name] = GraphOutput(ref=refs[0], list_over=outputs[name].list_over)
    return _pruned(trace.model_copy(update={"outputs": outputs}))


@dataclass
class _Folding:
    trace: Graph
    sizes: Sequence[Mapping[str, int]]
    _nodes: dict[str, Node] = field(init=False)
    _known: dict[tuple[Ref, Ref, int], bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._nodes = {node.name: node for node in self.trace.nodes}

    def alike(self, first: Ref, other: Ref, member: int) -> bool:
        """Return whether `other` is to `member` what `first` is to the first member."""
        key = (first, other, member)
        if key not in self._known:
            self._known[key] = self._alike(first, other, member)
        return self._known[key]

    def _alike(self, first: Ref, other: Ref, member: int) -> bool:
        if first.node in self.trace.inputs or other.node in self.trace.inputs:
            stem, _, number = first.node.partition("@")
            wanted = member_name(stem, member) if number else stem
            return other.node == wanted and number in {"", "0"}
        one, two = self._nodes[first.node], self._nodes[other.node]
        return (
            one.op == two.op
            and first.result == other.result
            and one.kwargs.keys() == two.kwargs.keys()
            and self._same(one.args, two.args, member)
            and all(self._same(one.kwargs[k], two.kwargs[k], member) for k in one.kwargs)
            and all(
                self._same_kind(a, b, member) for a, b in zip(one.results, two.results, strict=True)
            )
        )

    def _same(self, one: Argument, two: Argument, member: int) -> bool:
        if isinstance(one, Ref) and isinstance(two, Ref):
            return self.alike(one, two, member)
        if isinstance(one, tuple) and isinstance(two, tuple):
            pairs = zip(one, two, strict=False)
            return len(one) == len(two) and all(self._same(a, b, member) for a, b in pairs)
        return one == two or self._same_size(one, two, member)

    def _same_kind(self, one: Kind, two: Kind, member: int) -> bool:
        pairs = zip(one.shape, two.shape, strict=False)
        same = all(a == b or self._same_size(int(a), int(b), member) for a, b in pairs)
        return one.dtype == two.dtype and len(one.shape) == len(two.shape) and same

    def _same_size(self, one: Argument, two: Argument, member: int) -> bool:
        return any(
            one == self.sizes[0][axis] and two == self.sizes[member][axis] for axis in self.sizes[0]
        )


def _pruned(graph: Graph) -> Graph:
    """Return the graph without nodes that no output needs, list inputs under their own names."""
    wanted = {output.ref.node for output in graph.outputs.values()}
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if node.name in wanted:
            kept.append(_renamed(node))
            wanted |= {ref.node for ref in arguments_of(node)}
    stray = sorted(name for name in wanted if "@" in name and not name.endswith("@0"))
    if stray:
        msg = (
            f"{graph.form} needs members {', '.join(stray)} for what is no list, or one list's all"
        )
        raise CaptureError(msg)
    inputs = {
        name.removesuffix("@0"): kind
        for name, kind in graph.inputs.items()
        if "@" not in name or name.endswith("@0")
    }
    outputs = {
        name: output.model_copy(update={"ref": _plain(output.ref)})
        for name, output in graph.outputs.items()
    }
    return graph.model_copy(
        update={"nodes": tuple(reversed(kept)), "inputs": inputs, "outputs": outputs}
    )


def _renamed(node: Node) -> Node:
    kwargs = {key: _plain_argument(value) for key, value in node.kwargs.items()}
    return node.model_copy(update={"args": _plain_argument(node.args), "kwargs": kwargs})


def _plain_argument(argument: Argument) -> Argument:
    if isinstance(argument, Ref):
        return _plain(argument)
    if isinstance(argument, tuple):
        return tuple(_plain_argument(part) for part in argument)
    return argument


def _plain(ref: Ref) -> Ref:
    return ref.model_copy(update={"node": ref.node.removesuffix("@0")})
