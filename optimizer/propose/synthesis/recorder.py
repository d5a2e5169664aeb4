"""A traced module, run once to note each operation with the shapes and dtypes that it gives."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor, fx

from optimizer.errors import CaptureError
from optimizer.propose.synthesis.graph import Argument, Kind, Node, Ref


class Recorder(fx.Interpreter):
    """Runs a traced module and notes each operation with the shapes and dtypes that it gives."""

    def __init__(self, module: fx.GraphModule, inputs: Sequence[str]) -> None:
        super().__init__(module)
        self.nodes: list[Node] = []
        self.result: Any = None
        self._refs: dict[str, Ref] = {}
        self._inputs = iter(inputs)

    def run_node(self, n: fx.Node) -> Any:  # noqa: ANN401 - the base class's
        """Run one operation and note it."""
        value = super().run_node(n)
        if n.op == "placeholder":
            self._refs[n.name] = Ref(node=next(self._inputs))
        elif n.op == "call_function":
            self._note(n, value)
        elif n.op == "output":
            self.result = self._argument(n.args[0])
        else:
            self._refs[n.name] = Ref(node=self._constant(n, value))
        return value

    def _note(self, n: fx.Node, value: Any) -> None:  # noqa: ANN401
        name = str(n.target)
        if "getitem" in name:
            tensor, place = n.args
            parent = self._argument(tensor)
            assert isinstance(parent, Ref)  # noqa: S101 - fx picks results of nodes only
            self._refs[n.name] = Ref(node=parent.node, result=int(str(place)))
            return
        results = value if isinstance(value, tuple | list) else (value,)
        self._refs[n.name] = Ref(node=n.name)
        self.nodes.append(
            Node(
                name=n.name,
                op=name,
                args=tuple(self._argument(a) for a in n.args),
                kwargs={k: self._argument(a) for k, a in n.kwargs.items() if k not in _IGNORED},
                results=tuple(kind_of(r) for r in results if isinstance(r, Tensor)),
            )
        )

    def _constant(self, n: fx.Node, value: Any) -> str:  # noqa: ANN401
        """Note a tensor that the reference makes of numbers, where it is a single number."""
        if not isinstance(value, Tensor) or value.numel() != 1:
            msg = f"a tensor that the reference holds itself ({n.name}) can't be captured"
            raise CaptureError(msg)
        number = value.item()
        shape = tuple(str(size) for size in value.shape)
        node = Node(
            name=n.name, op="aten.full.default", args=(shape, number), results=(kind_of(value),)
        )
        self.nodes.append(node)
        return n.name

    def _argument(self, argument: Any) -> Argument:  # noqa: ANN401 - fx's arguments
        if isinstance(argument, fx.Node):
            return self._refs[argument.name]
        if isinstance(argument, list | tuple):
            return tuple(self._argument(part) for part in argument)
        if argument is None or isinstance(argument, bool | int | float | str):
            return argument
        return str(argument).removeprefix("torch.")


_IGNORED = frozenset({"layout", "device", "pin_memory", "memory_format", "non_blocking"})


def kind_of(tensor: Tensor) -> Kind:
    """Return a tensor's shape and dtype."""
    return Kind(
        shape=tuple(str(size) for size in tensor.shape),
        dtype=str(tensor.dtype).removeprefix("torch."),
    )
