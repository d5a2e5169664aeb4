"""Small operators for cheats to attack: cheap to check, each with the default plan of a kernel."""

from collections.abc import Mapping
from typing import Final, Literal

from operator_registry.registry import Operator
from operator_registry.spec import (
    AttributeSpec,
    Axis,
    Domain,
    InputSpec,
    OperatorSpec,
    PrecisionPolicy,
    RangeAxis,
    TensorSpec,
    Workload,
)
from optimizer.plan import Launch, LibraryCall, Plan

BLOCK: Final = 1024
"""Elements of a program of the Triton kernels here; rows of more columns do not fit in one."""
_VIEWS: Final = ("aten::to", "aten::detach", "aten::resolve_conj", "aten::resolve_neg")
"""What `Tensor.numpy` calls, to no effect here."""
_VECTOR: Final = ("rows",)
_MATRIX: Final = ("rows", "cols")
_LINE: Final = RangeAxis(min=1, max=1 << 24)
_SIDES: Final[dict[str, Axis]] = {
    "rows": RangeAxis(min=1, max=1 << 16),
    "cols": RangeAxis(min=1, max=BLOCK),
}

_SCALE: Final = Operator(
    spec=OperatorSpec(
        name="scale",
        summary="y = factor * x",
        axes={"rows": _LINE},
        inputs={"x": InputSpec(shape=_VECTOR, dtype="float32")},
        attributes={"factor": AttributeSpec(value=1.7, min=0.5, max=4.0)},
        outputs={"y": TensorSpec(shape=_VECTOR, dtype="float32")},
        reference="scale",
        workloads=(
            Workload(name="small", sizes={"rows": 4096}, targets=("cpu",)),
            Workload(name="large", sizes={"rows": 1 << 20}, targets=("cuda",)),
        ),
    ),
    source="def scale(x, factor):\n    return x * factor\n",
)
_STREAM: Final = Operator(
    spec=_SCALE.spec.model_copy(
        update={
            "name": "stream",
            "reference": "stream",
            "workloads": (
                Workload(name="w", sizes={"rows": 1 << 18}, targets=("cpu",)),
                Workload(name="v", sizes={"rows": 1 << 22}, targets=("cuda",)),
            ),
        }
    ),
    source="def stream(x, factor):\n    return x * factor\n",
)
"""The same on more data: it is as fast as memory."""
_HEAVY: Final = Operator(
    spec=OperatorSpec(
        name="heavy",
        summary="z_0 = x, z_(i+1) = z_i / 2 + x / (2 + 2 x^2), y = z_steps: arithmetic alone",
        # Few steps where the oracle draws held-out sizes: there they are as good as many.,
        axes={"rows": RangeAxis(min=1, max=1 << 24)},
        inputs={"x": InputSpec(shape=_VECTOR, dtype="float32")},
        attributes={"steps": AttributeSpec(value=4)},
        outputs={"y": TensorSpec(shape=_VECTOR, dtype="float32")},
        reference="heavy",
        # The leave is for what a cheat may keep of its last call.
        precision=PrecisionPolicy(c=4.0, k=16.0, memory=2.0),
        workloads=(
            Workload(name="w", sizes={"rows": 1 << 16}, attributes={"steps": 64}, targets=("cpu",)),
            Workload(
                name="v", sizes={"rows": 1 << 20}, attributes={"steps": 2048}, targets=("cuda",)
            ),
        ),
    ),
    source=(
        "def heavy(x, steps):\n"
        "    half = x / (2 + 2 * x * x)\n"
        "    z = x.clone()\n"
        "    for _ in range(steps):\n"
        "        z.mul_(0.5).add_(half)\n"
        "    return z\n"
    ),
)
_SOFTMAX: Final = Operator(
    spec=OperatorSpec(
        name="softmax",
        summary="y = exp(x - max x) / sum exp(x - max x), row by row",
        axes=_SIDES,
        inputs={"x": InputSpec(shape=_MATRIX, dtype="float32")},
        outputs={"y": TensorSpec(shape=_MATRIX, dtype="float32")},
        reference="softmax",
        precision=PrecisionPolicy(c=8.0, k=64.0, row_axes=("rows",), domain=Domain(greatest=200)),
        workloads=(
            Workload(name="w", sizes={"rows": 64, "cols": 256}, targets=("cpu",)),
            Workload(name="v", sizes={"rows": 4096, "cols": 1024}, targets=("cuda",)),
        ),
    ),
    source="import torch\n\n\ndef softmax(x):\n    return torch.softmax(x, -1)\n",
)
_TOTAL: Final = Operator(
    spec=OperatorSpec(
        name="total",
        summary="y = sum of x, row by row",
        axes=_SIDES,
        inputs={"x": InputSpec(shape=_MATRIX, dtype="float32")},
        outputs={"y": TensorSpec(shape=_VECTOR, dtype="float32")},
        reference="total",
        workloads=(
            Workload(name="w", sizes={"rows": 64, "cols": 256}, targets=("cpu",)),
            Workload(name="v", sizes={"rows": 4096, "cols": 1024}, targets=("cuda",)),
        ),
    ),
    source="def total(x):\n    return x.sum(-1)\n",
)
OPERATORS: Final[Mapping[str, Operator]] = {
    operator.name: operator for operator in (_SCALE, _STREAM, _HEAVY, _SOFTMAX, _TOTAL)
}


def declared_plan(operator: str, target: str) -> Plan:
    """Return the plan of a host side in Python: on a processor it launches nothing but itself."""
    if target == "cuda":
        return Plan(language="python", steps=(Launch(kernel=operator, arguments=()),))
    views = (LibraryCall(op=op, arguments=(), out=()) for op in _VIEWS)
    return Plan(language="python", steps=(Launch(kernel="run", arguments=()), *views))


def default_plan(operator: str, language: Literal["cpp", "triton"]) -> Plan:
    """Return the plan of one kernel that is named as the operator.

    It takes inputs, outputs, sizes and attributes in the spec's order.
    """
    spec = OPERATORS[operator].spec
    arguments = (*spec.inputs, *spec.outputs, *spec.axes, *spec.attributes)
    if language == "cpp":
        step = Launch(kernel=operator, arguments=arguments)
    else:
        by_row = "cols" in spec.axes
        step = Launch(
            kernel=operator,
            arguments=arguments,
            grid=("rows",) if by_row else (f"cdiv(rows, {BLOCK})",),
            constants={"BLOCK": str(BLOCK)},
        )
    return Plan(language=language, steps=(step,))
