"""An operator of which a model may know what the synthesiser does not."""

from operator_registry.registry import Operator
from operator_registry.spec import InputSpec, OperatorSpec, RangeAxis, TensorSpec, Workload

PAIRS = Operator(
    spec=OperatorSpec(
        name="pair_products",
        summary="The sum of the products of all pairs of a row.",
        axes={"rows": RangeAxis(min=1, max=64), "cols": RangeAxis(min=1, max=512)},
        dtypes={"T": ("float32",)},
        inputs={"x": InputSpec(shape=("rows", "cols"), dtype="T")},
        outputs={"y": TensorSpec(shape=("rows",), dtype="T")},
        reference="pair_products",
        workloads=(
            Workload(name="w0", sizes={"rows": 48, "cols": 384}, dtypes={"T": "float32"}),
            Workload(name="w1", sizes={"rows": 64, "cols": 512}, dtypes={"T": "float32"}),
        ),
    ),
    source='''"""The sum of the products of all pairs: ``y[r] = sum of x[r, i] * x[r, j]``."""

from torch import Tensor


def pair_products(x: Tensor) -> Tensor:
    """Return it by its definition."""
    return (x.unsqueeze(2) * x.unsqueeze(1)).sum(dim=(1, 2))
''',
)
SQUARED = """\
#include <cstdint>
// The sum over all pairs is the square of the sum.
extern "C" void KERNEL(squared)(const T* x, T* y, int64_t rows, int64_t cols) {
  for (int64_t row = 0; row < rows; ++row) {
    double total = 0;
    #pragma omp simd reduction(+ : total)
    for (int64_t col = 0; col < cols; ++col) total += x[row * cols + col];
    y[row] = T(total * total);
  }
}
"""
PLAN = """\
{"plan": {"language": "cpp", "steps": [
  {"kind": "launch", "kernel": "squared", "arguments": ["x", "y", "rows", "cols"]}]}}"""
