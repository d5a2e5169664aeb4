"""Operators with a plan and code in both languages: what executor and targets are tried with."""

from dataclasses import dataclass

import torch
from torch import Tensor

from operator_registry.spec import (
    AttributeSpec,
    InputSpec,
    OperatorSpec,
    RangeAxis,
    SumAxis,
    TensorSpec,
    Workload,
)
from optimizer.plan import Buffer, Launch, LibraryCall, Plan, ReadSize


@dataclass(frozen=True)
class Sample:
    """An operator, and a plan of it in each language; the code is shared by all samples."""

    spec: OperatorSpec
    cpp: Plan
    triton: Plan


def _spec(name: str, **facts: object) -> OperatorSpec:
    workload = Workload(name="w", sizes={}, dtypes={"T": "float32"})
    return OperatorSpec.model_validate(
        {"name": name, "reference": name, "workloads": (workload,), **facts}
    )


T = {"T": ("float32", "bfloat16")}
ROWS_COLS = {"rows": RangeAxis(min=0, max=1 << 40), "cols": RangeAxis(max=1 << 20)}
MATRIX = InputSpec(shape=("rows", "cols"), dtype="T")

ADD = Sample(
    _spec(
        "add",
        axes={"rows": ROWS_COLS["rows"]},
        dtypes=T,
        inputs={n: InputSpec(shape=("rows",), dtype="T") for n in ("x", "y")},
        outputs={"z": TensorSpec(shape=("rows",), dtype="T")},
    ),
    cpp=Plan(language="cpp", steps=(Launch(kernel="add", arguments=("x", "y", "z", "rows")),)),
    triton=Plan(
        language="triton",
        steps=(
            Launch(
                kernel="add",
                grid=("cdiv(rows, BLOCK)",),
                arguments=("x", "y", "z", "rows"),
                constants={"BLOCK": "BLOCK"},
            ),
        ),
    ),
)
"""z = x + y. Triton's tunable: BLOCK."""

RMS = Sample(
    _spec(
        "rms",
        axes=ROWS_COLS,
        dtypes=T,
        inputs={"x": MATRIX, "w": InputSpec(shape=("cols",), dtype="T")},
        attributes={"eps": AttributeSpec(value=1e-6)},
        outputs={"y": TensorSpec(shape=("rows", "cols"), dtype="T")},
    ),
    cpp=Plan(
        language="cpp",
        steps=(Launch(kernel="rms", arguments=("x", "w", "y", "rows", "cols", "eps")),),
    ),
    triton=Plan(
        language="triton",
        let={"wide": "next_power_of_2(cols)"},
        steps=(
            Launch(
                kernel="rms",
                grid=("rows",),
                arguments=("x", "w", "y", "rows", "cols", "eps"),
                constants={"BLOCK": "wide"},
                warps="WARPS",
            ),
        ),
    ),
)
"""y = x / sqrt(mean(x^2) + eps) * w, row by row. Triton's tunable: WARPS."""

_HEADS = ("lengths", "values", "kept_lengths", "kept", "found", "elements")


def _heads(language: str, *sizes: str) -> Plan:
    return Plan.model_validate(
        {
            "language": language,
            "buffers": {"found": Buffer(shape=("features",), dtype="int64", zeroed=True)},
            "steps": (
                Launch(kernel="heads", grid=("features",), arguments=(*_HEADS, *sizes)),
                ReadSize(buffer="found", axis="kept_elements", count="features"),
            ),
        }
    )


HEADS = Sample(
    _spec(
        "heads",
        axes={
            "features": RangeAxis(max=64),
            "rows": RangeAxis(min=0, max=1 << 20),
            "elements": SumAxis(sum_of="lengths"),
            "kept_elements": SumAxis(sum_of="kept_lengths", at_most="elements"),
        },
        inputs={
            "lengths": InputSpec(shape=("rows",), list_over="features", dtype="int64"),
            "values": InputSpec(shape=("elements",), list_over="features", dtype="float32"),
        },
        attributes={"most": AttributeSpec(value=2)},
        outputs={
            "kept_lengths": TensorSpec(shape=("rows",), list_over="features", dtype="int64"),
            "kept": TensorSpec(shape=("kept_elements",), list_over="features", dtype="float32"),
        },
    ),
    cpp=_heads("cpp", "features", "rows", "most"),
    triton=_heads("triton", "rows", "most"),
)
"""The first `most` values of each row of each feature: lists of tensors, sizes from the data."""

POSITIVE = Sample(
    _spec(
        "positive",
        axes={
            "rows": RangeAxis(min=0, max=1 << 20),
            "found": SumAxis(sum_of="count", at_most="rows"),
        },
        inputs={"x": InputSpec(shape=("rows",), dtype="float32")},
        outputs={
            "count": TensorSpec(shape=(), dtype="int64"),
            "kept": TensorSpec(shape=("found",), dtype="float32"),
        },
    ),
    cpp=Plan(
        language="cpp",
        let={"pairs": "cdiv(found, 2)"},
        steps=(
            Launch(kernel="positive", arguments=("x", "kept", "count", "rows")),
            ReadSize(buffer="count", axis="found"),
            Launch(kernel="double_all", arguments=("kept", "found"), when="found > 0"),
        ),
    ),
    triton=Plan(
        language="triton",
        let={"blocks": "cdiv(found, 128)"},
        steps=(
            Launch(kernel="positive", arguments=("x", "kept", "count", "rows")),
            ReadSize(buffer="count", axis="found"),
            Launch(kernel="double_all", grid=("blocks",), arguments=("kept", "found")),
        ),
    ),
)
"""Twice the elements above zero, in order: a launch whose grid and argument the data decide."""

PRODUCT = Sample(
    _spec(
        "product",
        axes={**ROWS_COLS, "inner": RangeAxis(max=1 << 20)},
        inputs={
            "a": InputSpec(shape=("rows", "inner"), dtype="float32"),
            "b": InputSpec(shape=("inner", "cols"), dtype="float32"),
        },
        outputs={"c": TensorSpec(shape=("rows", "cols"), dtype="float32")},
    ),
    *(
        Plan(
            language=language,
            buffers={"raw": Buffer(shape=("rows", "cols"), dtype="float32")},
            steps=(
                LibraryCall(op="aten::mm.out", arguments=("a", "b"), out=("raw",)),
                LibraryCall(op="aten::add.out", arguments=("raw", "raw", "3"), out=("c",)),
            ),
        )
        for language in ("cpp", "triton")
    ),
)
"""4 a b: library functions, one into a buffer."""

CPP = """\
#include <cmath>
#include <algorithm>

extern "C" void KERNEL(add)(const T* x, const T* y, T* z, int64_t rows) {
#pragma omp parallel for simd
  for (int64_t i = 0; i < rows; ++i) z[i] = T(float(x[i]) + float(y[i]));
}

extern "C" void KERNEL(rms)(const T* x, const T* w, T* y, int64_t rows, int64_t cols, double eps) {
#pragma omp parallel for
  for (int64_t r = 0; r < rows; ++r) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t c = 0; c < cols; ++c) sum += float(x[r * cols + c]) * float(x[r * cols + c]);
    const float scale = 1.0f / std::sqrt(sum / float(cols) + float(eps));
    for (int64_t c = 0; c < cols; ++c)
      y[r * cols + c] = T(float(x[r * cols + c]) * scale * float(w[c]));
  }
}
"""

CPP_RAGGED = """\
#include <algorithm>

extern "C" void KERNEL(heads)(const int64_t* const* lengths, const float* const* values,
                              int64_t* const* kept_lengths, float* const* kept, int64_t* found,
                              const int64_t* elements, int64_t features, int64_t rows,
                              int64_t most) {
  for (int64_t f = 0; f < features; ++f) {
    int64_t begin = 0, end = 0;
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t keeps = std::min(lengths[f][r], most);
      for (int64_t i = 0; i < keeps; ++i) kept[f][end + i] = values[f][begin + i];
      kept_lengths[f][r] = keeps;
      begin += lengths[f][r];
      end += keeps;
    }
    found[f] = begin == elements[f] ? end : -1;
  }
}

extern "C" void KERNEL(positive)(const float* x, float* kept, int64_t* count, int64_t rows) {
  *count = 0;
  for (int64_t i = 0; i < rows; ++i)
    if (x[i] > 0) kept[(*count)++] = x[i];
}

extern "C" void KERNEL(double_all)(float* kept, int64_t found) {
  for (int64_t i = 0; i < found; ++i) kept[i] *= 2;
}
"""

TRITON = """\
import triton
import triton.language as tl

TUNABLES = {"BLOCK": (128, 1024), "WARPS": (4, 8)}


@triton.jit
def add(x_ptr, y_ptr, z_ptr, rows, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < rows)
    y = tl.load(y_ptr + at, mask=at < rows)
    tl.store(z_ptr + at, x + y, mask=at < rows)


@triton.jit
def rms(x_ptr, w_ptr, y_ptr, rows, cols, eps, BLOCK: tl.constexpr):
    begin = tl.program_id(0).to(tl.int64) * cols
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + begin + at, mask=at < cols, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + at, mask=at < cols, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / cols + eps)
    tl.store(y_ptr + begin + at, (x * scale * w).to(y_ptr.dtype.element_ty), mask=at < cols)


@triton.jit
def heads(lengths_ptr, values_ptr, kept_lengths_ptr, kept_ptr, found_ptr, elements_ptr, rows, most):
    f = tl.program_id(0)
    lengths = tl.load(lengths_ptr + f).to(tl.pointer_type(tl.int64))
    values = tl.load(values_ptr + f).to(tl.pointer_type(tl.float32))
    kept_lengths = tl.load(kept_lengths_ptr + f).to(tl.pointer_type(tl.int64))
    kept = tl.load(kept_ptr + f).to(tl.pointer_type(tl.float32))
    begin = tl.full((), 0, tl.int64)
    end = tl.full((), 0, tl.int64)
    for row in range(rows):
        length = tl.load(lengths + row)
        keeps = tl.minimum(length, most)
        for i in range(keeps):
            tl.store(kept + end + i, tl.load(values + begin + i))
        tl.store(kept_lengths + row, keeps)
        begin += length
        end += keeps
    tl.store(found_ptr + f, tl.where(begin == tl.load(elements_ptr + f), end, -1))


@triton.jit
def positive(x_ptr, kept_ptr, count_ptr, rows):
    found = tl.full((), 0, tl.int64)
    for row in range(rows):
        x = tl.load(x_ptr + row)
        tl.store(kept_ptr + found, x, mask=x > 0)
        found += (x > 0).to(tl.int64)
    tl.store(count_ptr, found)


@triton.jit
def double_all(kept_ptr, found):
    at = tl.program_id(0) * 128 + tl.arange(0, 128)
    kept = tl.load(kept_ptr + at, mask=at < found)
    tl.store(kept_ptr + at, kept * 2, mask=at < found)
"""


def rms_reference(x: Tensor, w: Tensor, eps: float = 1e-6) -> Tensor:
    wide = x.double()
    return (wide * (wide.square().mean(-1, keepdim=True) + eps).rsqrt() * w.double()).to(x.dtype)


def heads_reference(
    lengths: list[Tensor], values: list[Tensor], most: int
) -> tuple[list[Tensor], list[Tensor]]:
    kept = [
        torch.cat([row[:most] for row in torch.split(v, of.tolist())] or [v])
        for of, v in zip(lengths, values, strict=True)
    ]
    return [of.clamp(max=most) for of in lengths], kept


def make_heads(device: str = "cpu") -> tuple[list[Tensor], list[Tensor]]:
    """Return two features of three rows: 9 values and 5."""
    lengths = [[3, 0, 6], [1, 2, 2]]
    return (
        [torch.tensor(of, device=device) for of in lengths],
        [torch.randn(sum(of), device=device) for of in lengths],
    )
