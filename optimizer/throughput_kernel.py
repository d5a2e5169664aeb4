"""A small operator with a kernel of many tunables, all of them right: what a sweep is made of."""

import random
from collections.abc import Iterator
from itertools import product
from typing import Final

from operator_registry.registry import Operator
from operator_registry.spec import DType, InputSpec, OperatorSpec, RangeAxis, TensorSpec, Workload
from optimizer.candidate import Candidate, load_tunables
from optimizer.plan import Launch, Plan

_SIZES: Final[dict[str, tuple[int, int, DType]]] = {
    "cpu": (512, 1024, "float32"),
    "cuda": (8192, 6144, "bfloat16"),
}
"""On an H200 the kernel moves 201 MB, which takes about 50 us."""
_SOURCE = '''\
"""``y = hardswish(x) + bias``."""

from torch.nn import functional


def hardswish_bias(x, bias):
    return functional.hardswish(x) + bias
'''
_CPP = """\
// TUNABLES = {"BLOCK": (16, 32, 64, 128, 256, 512, 1024, 2048), \
"LANES": (2, 4, 8, 16, 32, 64), "GRAIN": (1, 2, 3, 4, 6, 8, 16, 32)}
extern "C" void KERNEL(hardswish_bias)(const T* __restrict x, const T* __restrict bias,
    T* __restrict y, int64_t rows, int64_t cols) {
  #pragma omp parallel for schedule(static, GRAIN) if (rows * cols > 65536)
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t first = 0; first < cols; first += BLOCK) {
      const int64_t last = first + BLOCK < cols ? first + BLOCK : cols;
      #pragma omp simd simdlen(LANES)
      for (int64_t col = first; col < last; ++col) {
        const float value = float(x[row * cols + col]);
        const float gate = value < -3 ? 0.f : value > 3 ? 6.f : value + 3;
        y[row * cols + col] = T(value * gate / 6 + float(bias[col]));
      }
    }
  }
}
"""
_TRITON = '''\
"""``y = hardswish(x) + bias``, a part of a row to a program."""

import triton
import triton.language as tl

TUNABLES = {
    "BLOCK": (256, 512, 1024, 2048, 4096),
    "TILES": (1, 2, 3, 4),
    "WARPS": (1, 2, 4, 8),
    "STAGES": (1, 2, 3, 4),
}


@triton.jit
def hardswish_bias(x, bias, y, cols, BLOCK: tl.constexpr, TILES: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * cols
    first = tl.program_id(1) * (BLOCK * TILES)
    for tile in range(TILES):
        col = first + tile * BLOCK + tl.arange(0, BLOCK)
        value = tl.load(x + row + col, mask=col < cols, other=0.0).to(tl.float32)
        gate = tl.minimum(tl.maximum(value + 3.0, 0.0), 6.0)
        shift = tl.load(bias + col, mask=col < cols, other=0.0).to(tl.float32)
        tl.store(y + row + col, value * gate / 6.0 + shift, mask=col < cols)
'''


def operator_of(target: str) -> Operator:
    """Return the operator, with its only workload on a kind of device."""
    rows, cols, dtype = _SIZES[target]
    matrix = ("rows", "cols")
    spec = OperatorSpec(
        name="hardswish_bias",
        summary="y = hardswish(x) + bias",
        axes={"rows": RangeAxis(min=0, max=1 << 20), "cols": RangeAxis(max=1 << 16)},
        dtypes={"T": ("float32", "bfloat16")},
        inputs={
            "x": InputSpec(shape=matrix, dtype="T"),
            "bias": InputSpec(shape=("cols",), dtype="T"),
        },
        outputs={"y": TensorSpec(shape=matrix, dtype="T")},
        reference="hardswish_bias",
        workloads=(
            Workload(
                name=f"r{rows}-c{cols}", sizes={"rows": rows, "cols": cols}, dtypes={"T": dtype}
            ),
        ),
    )
    return Operator(spec=spec, source=_SOURCE)


def sweep(target: str, *, salt: str) -> Iterator[Candidate]:
    """Yield candidates of one source, all different, in an order that is always the same.

    Args:
        target: The kind of device.
        salt: Goes into the code, so that what an earlier run built is built again.
    """
    if target == "cuda":
        code, plan = f"# {salt}\n{_TRITON}", _triton_plan()
    else:
        code, plan = f"// {salt}\n{_CPP}", _cpp_plan()
    tunables = load_tunables(code, language=plan.language)
    choices = [dict(zip(tunables, chosen, strict=True)) for chosen in product(*tunables.values())]
    random.Random(0).shuffle(choices)  # noqa: S311 - an order, no secret
    for chosen in choices:
        yield Candidate(code=code, plan=plan, chosen=chosen, origin="bench")


def _cpp_plan() -> Plan:
    names = ("BLOCK", "LANES", "GRAIN")
    step = Launch(
        kernel="hardswish_bias",
        arguments=("x", "bias", "y", "rows", "cols"),
        constants={name: name for name in names},
    )
    return Plan(language="cpp", steps=(step,))


def _triton_plan() -> Plan:
    step = Launch(
        kernel="hardswish_bias",
        grid=("rows", "cdiv(cols, BLOCK * TILES)"),
        arguments=("x", "bias", "y", "cols"),
        constants={"BLOCK": "BLOCK", "TILES": "TILES"},
        warps="WARPS",
        stages="STAGES",
        when="rows > 0",
    )
    return Plan(language="triton", steps=(step,))
