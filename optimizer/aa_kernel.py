"""A kernel whose time is proportional to a number that it is told: true gains can be made with it.

Nobody's candidate and no operator of a registry: the bench of the judge's own statistics uses it.
"""

from typing import Final

from operator_registry.registry import Operator
from operator_registry.spec import AttributeSpec, InputSpec, OperatorSpec, RangeAxis, TensorSpec
from operator_registry.spec import Workload as SpecWorkload
from optimizer.candidate import Candidate
from optimizer.plan import Launch, Plan

STEP: Final = 16
"""Amounts of work are multiples of it: Triton compiles other code for other numbers."""
_ELEMENTS: Final = {"cpu": 4096, "cuda": 67584}
_WORK: Final = {"cpu": 8000, "cuda": 24000}
_SOURCE = '''\
"""``y = x``, after ``work`` times ``y * 0.999 + 0.001 * x``: a value that stays where it is."""


def spin(x, work):
    return x.clone()
'''
_CPP = """\
// y = x, after `work` times y * 0.999 + 0.001 * x: the time is proportional to `work`.
extern "C" void KERNEL(spin)(const float* __restrict x, float* __restrict y, int64_t n,
    int64_t work) {
  for (int64_t first = 0; first < n; first += 64) {
    float value[64];
    for (int lane = 0; lane < 64; ++lane) value[lane] = x[first + lane];
    for (int64_t round = 0; round < work; ++round) {
      #pragma omp simd
      for (int lane = 0; lane < 64; ++lane)
        value[lane] = value[lane] * 0.999f + 0.001f * x[first + lane];
    }
    for (int lane = 0; lane < 64; ++lane) y[first + lane] = value[lane];
  }
}
"""
_TRITON = '''\
"""``y = x``, after ``work`` times ``y * 0.999 + 0.001 * x``: time is proportional to ``work``."""

import triton
import triton.language as tl


@triton.jit
def spin(x, y, n, work, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    given = tl.load(x + at, mask=at < n)
    value = given
    for _ in range(work):
        value = value * 0.999 + given * 0.001
    tl.store(y + at, value, mask=at < n)
'''


def operator_of(target: str) -> Operator:
    """Return the operator, with its only workload on a kind of device."""
    elements = _ELEMENTS[target]
    spec = OperatorSpec(
        name="spin",
        summary="y = x, after an amount of work",
        axes={"n": RangeAxis(max=1 << 20, multiple_of=64)},
        inputs={"x": InputSpec(shape=("n",), dtype="float32")},
        attributes={"work": AttributeSpec(value=_WORK[target])},
        outputs={"y": TensorSpec(shape=("n",), dtype="float32")},
        reference="spin",
        workloads=(SpecWorkload(name=f"n{elements}", sizes={"n": elements}),),
    )
    return Operator(spec=spec, source=_SOURCE)


def candidate_of(target: str) -> Candidate:
    """Return the kernel."""
    arguments = ("x", "y", "n", "work")
    if target == "cuda":
        step = Launch(
            kernel="spin", grid=("cdiv(n, 128)",), arguments=arguments, constants={"BLOCK": "128"}
        )
        plan = Plan(language="triton", steps=(step,))
    else:
        plan = Plan(language="cpp", steps=(Launch(kernel="spin", arguments=arguments),))
    code = _TRITON if target == "cuda" else _CPP
    return Candidate(code=code, plan=plan, origin="bench", note="an amount of work")


def work_of(target: str) -> int:
    """Return the work of the faster side."""
    return _WORK[target]


def slower_work(work: int, gain: float, *, fixed: float) -> int:
    """Return the work of a side that is so many times slower.

    Args:
        work: That of the faster side.
        gain: How many times.
        fixed: What a call costs beside its work, in units of work.
    """
    return STEP * round((gain * (work + fixed) - fixed) / STEP)
