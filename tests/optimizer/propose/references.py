"""Random small references: chains of elementwise operations, reductions of rows, what uses them."""

from hypothesis import strategies as st

from operator_registry.registry import Operator
from operator_registry.spec import RangeAxis
from tests.optimizer.propose.trial import floats, make_case, result

ONE = (
    "torch.exp({0})", "torch.tanh({0})", "torch.sigmoid({0})", "F.silu({0})", "F.gelu({0})",
    "F.gelu({0}, approximate='tanh')", "torch.relu({0})", "{0}.abs()", "-{0}", "{0}.square()",
    "torch.sqrt({0}.abs() + 0.1)", "torch.rsqrt({0} * {0} + 0.5)", "torch.erf({0})",
    "torch.log({0}.abs() + 0.2)", "{0}.clamp(-1.0, 1.5)", "F.leaky_relu({0}, 0.1)", "F.elu({0})",
    "F.softplus({0})", "torch.log1p({0}.abs())", "torch.expm1({0} * 0.5)", "{0} ** 3",
    "torch.sin({0})", "1 / ({0}.abs() + 1)", "torch.where({0} > 0, {0} * 2, {0})",
)  # fmt: skip
TWO = (
    "{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} / ({1}.abs() + 1.0)", "torch.maximum({0}, {1})",
    "torch.minimum({0}, {1})", "torch.lerp({0}, {1}, 0.3)", "torch.add({0}, {1}, alpha=0.25)",
)  # fmt: skip
ROWS = (
    "{0}.sum(-1, keepdim=True)", "{0}.mean(-1, keepdim=True)", "{0}.amax(-1, keepdim=True)",
    "{0}.amin(-1, keepdim=True)", "{0}.var(-1, keepdim=True, correction=0)",
    "{0}.logsumexp(-1, keepdim=True)", "{0}.norm(dim=-1, keepdim=True)",
)  # fmt: skip
WHOLE = (
    "torch.softmax({0}, -1)", "torch.log_softmax({0}, -1)", "F.layer_norm({0}, {0}.shape[-1:])",
    "F.rms_norm({0}, {0}.shape[-1:], None, 1e-5)",
)  # fmt: skip
ENDS = ("return ({0} + x * 0).to(x.dtype)", "return ({0} + x * 0).sum(-1).to(x.dtype)")


@st.composite
def references(draw: st.DrawFn) -> Operator:
    """Draw an operator on (k, m, n), a tensor of the same shape, one of rows and one of columns."""
    lines: list[str] = []
    values = ["x", "other"]
    operands = ["x", "other", "row", "col"]
    for number in range(draw(st.integers(1, 5))):
        form = draw(st.sampled_from((*ONE, *TWO, *ROWS, *WHOLE)))
        first, second = draw(st.sampled_from(values)), draw(st.sampled_from(operands))
        lines.append(f"t{number} = {form.format(first, second)}")
        values.append(f"t{number}")
        operands.append(f"t{number}")
    end = draw(st.sampled_from(ENDS))
    lines.append(end.format(values[-1]))
    whole = "sum" not in end
    return make_case(
        "def reference(x, other, row, col):\n    " + "\n    ".join(lines) + "\n",
        {
            "x": floats("k", "m", "n", dtype="T"),
            "other": floats("k", "m", "n", dtype="T"),
            "row": floats("m", "one", dtype="T"),
            "col": floats("n", dtype="T"),
        },
        {"y": result(*(("k", "m", "n") if whole else ("k", "m")), dtype="T")},
        axes={"one": RangeAxis(min=1, max=1)},
        dtypes={"T": ("float32", "bfloat16")},
    )
