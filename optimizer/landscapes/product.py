"""A tiled matrix product, in Triton for devices and in C++ for processors, with its spaces.

Nothing here is in the catalogue: a library's product is hard to beat. As a landscape it is the one
that is best known, with cliffs of shared memory and registers.
"""

from typing import Final

from operator_registry.registry import Operator
from operator_registry.spec import (
    DType,
    InputSpec,
    OperatorSpec,
    RangeAxis,
    TensorSpec,
    Workload,
)
from optimizer.landscapes.space import Structure, precision_of_sums
from optimizer.plan import Buffer, Launch, Plan

DEPTH_UNIT: Final = 128
"""What the depth is a multiple of, so that no kernel has to mask along it."""
_UNIT: Final = 16
"""What rows and columns are a multiple of: one compiled form serves all sizes."""
_REFERENCE = '''\
"""``c = a @ b``."""


def product(a, b):
    return a @ b
'''

TRITON = '''\
"""``c = a @ b``, a tile to a program; programs go down a band of tiles before they go across."""

import triton
import triton.language as tl

TUNABLES = {
    "BLOCK_M": (32, 64, 128, 256),
    "BLOCK_N": (32, 64, 128, 256),
    "BLOCK_K": (32, 64, 128),
    "BAND": (1, 8),
    "WARPS": (4, 8),
    "STAGES": (2, 3, 4),
}


@triton.jit
def product(a, b, c, rows, cols, depth, band, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr):
    down = tl.cdiv(rows, BLOCK_M)
    across = tl.cdiv(cols, BLOCK_N)
    program = tl.program_id(0)
    first = program // (band * across) * band
    height = tl.minimum(down - first, band)
    inside = program % (band * across)
    row = (first + inside % height) * BLOCK_M + tl.arange(0, BLOCK_M)
    col = inside // height * BLOCK_N + tl.arange(0, BLOCK_N)
    step = tl.arange(0, BLOCK_K)
    left = a + row.to(tl.int64)[:, None] * depth + step[None, :]
    right = b + step.to(tl.int64)[:, None] * cols + col[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for _ in range(0, depth, BLOCK_K):
        x = tl.load(left, mask=row[:, None] < rows, other=0.0)
        y = tl.load(right, mask=col[None, :] < cols, other=0.0)
        total = tl.dot(x, y, total)
        left += BLOCK_K
        right += BLOCK_K * cols
    place = c + row.to(tl.int64)[:, None] * cols + col[None, :]
    inside_c = (row[:, None] < rows) & (col[None, :] < cols)
    tl.store(place, total.to(c.dtype.element_ty), mask=inside_c)
'''

TRITON_SPLIT = '''\
"""``c = a @ b``, each tile's depth split among programs, whose parts are added up afterwards."""

import triton
import triton.language as tl

TUNABLES = {
    "BLOCK_M": (32, 64, 128),
    "BLOCK_N": (32, 64, 128),
    "BLOCK_K": (64, 128),
    "SPLIT": (2, 4, 8),
    "WARPS": (4, 8),
    "STAGES": (2, 4),
}


@triton.jit
def product_parts(a, b, parts, rows, cols, depth, split, BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    across = tl.cdiv(cols, BLOCK_N)
    row = tl.program_id(0) // across * BLOCK_M + tl.arange(0, BLOCK_M)
    col = tl.program_id(0) % across * BLOCK_N + tl.arange(0, BLOCK_N)
    part = tl.program_id(1)
    each = tl.cdiv(tl.cdiv(depth, BLOCK_K), split) * BLOCK_K
    begin = part * each
    end = tl.minimum(begin + each, depth)
    step = tl.arange(0, BLOCK_K)
    left = a + row.to(tl.int64)[:, None] * depth + begin + step[None, :]
    right = b + (begin + step).to(tl.int64)[:, None] * cols + col[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for _ in range(begin, end, BLOCK_K):
        x = tl.load(left, mask=row[:, None] < rows, other=0.0)
        y = tl.load(right, mask=col[None, :] < cols, other=0.0)
        total = tl.dot(x, y, total)
        left += BLOCK_K
        right += BLOCK_K * cols
    place = parts + (part.to(tl.int64) * rows + row[:, None]) * cols + col[None, :]
    tl.store(place, total, mask=(row[:, None] < rows) & (col[None, :] < cols))


@triton.jit
def add_parts(parts, c, elements, split, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    whole = place.to(tl.int64)
    for _ in range(split):
        total += tl.load(parts + whole, mask=place < elements, other=0.0)
        whole += elements
    tl.store(c + place, total.to(c.dtype.element_ty), mask=place < elements)
'''

CPP = """\
// c = a @ b: a tile of MR rows and NR columns is held in registers while the depth passes by.
// TUNABLES = {"MR": (1, 2, 4, 6, 8), "NR": (8, 16, 32, 64), "BLOCK_K": (32, 128, 512), \
"BLOCK_N": (64, 256, 1024), "PACKED": (0, 1), "COLUMNS_OUTER": (0, 1)}
#include <cstdint>
#include <vector>

template <int ROWS>
static inline void tile(const T* __restrict a, const T* __restrict b, T* __restrict c,
    int64_t depth, int64_t lda, int64_t ldb, int64_t ldc, int64_t width, bool first) {
  float sum[ROWS][NR];
  for (int r = 0; r < ROWS; ++r)
    for (int j = 0; j < NR; ++j) sum[r][j] = first || j >= width ? 0.f : float(c[r * ldc + j]);
  if (width == NR) {
    for (int64_t k = 0; k < depth; ++k)
      for (int r = 0; r < ROWS; ++r) {
        const float x = float(a[r * lda + k]);
        #pragma omp simd
        for (int j = 0; j < NR; ++j) sum[r][j] += x * float(b[k * ldb + j]);
      }
  } else {
    for (int64_t k = 0; k < depth; ++k)
      for (int r = 0; r < ROWS; ++r)
        for (int64_t j = 0; j < width; ++j)
          sum[r][j] += float(a[r * lda + k]) * float(b[k * ldb + j]);
  }
  for (int r = 0; r < ROWS; ++r)
    for (int64_t j = 0; j < width; ++j) c[r * ldc + j] = T(sum[r][j]);
}

static inline void block(const T* a, const T* b, T* c, int64_t row, int64_t col, int64_t rows,
    int64_t cols, int64_t depth, std::vector<T>& packed) {
  const int64_t wide = col + BLOCK_N < cols ? BLOCK_N : cols - col;
  for (int64_t k = 0; k < depth; k += BLOCK_K) {
    const int64_t deep = k + BLOCK_K < depth ? BLOCK_K : depth - k;
    const T* from = b + k * cols + col;
    int64_t stride = cols;
    if (PACKED) {
      for (int64_t i = 0; i < deep; ++i)
        for (int64_t j = 0; j < wide; ++j) packed[i * BLOCK_N + j] = from[i * cols + j];
      from = packed.data();
      stride = BLOCK_N;
    }
    for (int64_t j = 0; j < wide; j += NR) {
      const int64_t width = j + NR < wide ? NR : wide - j;
      T* to = c + row * cols + col + j;
      if (row + MR <= rows) {
        tile<MR>(a + row * depth + k, from + j, to, deep, depth, stride, cols, width, k == 0);
      } else {
        for (int64_t r = row; r < rows; ++r, to += cols)
          tile<1>(a + r * depth + k, from + j, to, deep, depth, stride, cols, width, k == 0);
      }
    }
  }
}

extern "C" void KERNEL(product)(const T* a, const T* b, T* c, int64_t rows, int64_t cols,
    int64_t depth) {
  const int64_t down = (rows + MR - 1) / MR, across = (cols + BLOCK_N - 1) / BLOCK_N;
  #pragma omp parallel
  {
    std::vector<T> packed(PACKED ? BLOCK_K * BLOCK_N : 0);
    #pragma omp for schedule(static)
    for (int64_t i = 0; i < down * across; ++i) {
      const int64_t row = COLUMNS_OUTER ? i % down : i / across;
      const int64_t col = COLUMNS_OUTER ? i / down : i % across;
      block(a, b, c, row * MR, col * BLOCK_N, rows, cols, depth, packed);
    }
  }
}
"""

SIZES: Final[dict[str, tuple[int, int, int]]] = {
    "square": (2048, 2048, 2048),
    "tall": (16384, 256, 512),
    "small-k": (4096, 4096, 128),
    "few-rows": (64, 4096, 8192),
}
"""Rows, columns and depth of the landscapes on a device."""
CPU_SIZES: Final[dict[str, tuple[int, int, int]]] = {"square": (256, 256, 256)}


def make_product(rows: int, cols: int, depth: int, *, dtype: DType) -> Operator:
    """Return the operator with one workload."""
    spec = OperatorSpec(
        name="product",
        summary="c = a @ b",
        axes={
            "rows": RangeAxis(min=_UNIT, max=1 << 16, multiple_of=_UNIT),
            "cols": RangeAxis(min=_UNIT, max=1 << 16, multiple_of=_UNIT),
            "depth": RangeAxis(min=DEPTH_UNIT, max=1 << 14, multiple_of=DEPTH_UNIT),
        },
        dtypes={"T": (dtype,)},
        inputs={
            "a": InputSpec(shape=("rows", "depth"), dtype="T"),
            "b": InputSpec(shape=("depth", "cols"), dtype="T"),
        },
        outputs={"c": TensorSpec(shape=("rows", "cols"), dtype="T")},
        reference="product",
        precision=precision_of_sums(dtype),
        workloads=(
            Workload(
                name=f"m{rows}-n{cols}-k{depth}",
                sizes={"rows": rows, "cols": cols, "depth": depth},
                dtypes={"T": dtype},
            ),
        ),
    )
    return Operator(spec=spec, source=_REFERENCE)


def triton_structures() -> tuple[Structure, ...]:
    """Return the product as a whole, and with its depth split."""
    blocks = {name: name for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K")}
    tiles = "cdiv(rows, BLOCK_M) * cdiv(cols, BLOCK_N)"
    whole = Launch(
        kernel="product",
        grid=(tiles,),
        arguments=("a", "b", "c", "rows", "cols", "depth", "BAND"),
        constants=blocks,
        warps="WARPS",
        stages="STAGES",
    )
    parts = Launch(
        kernel="product_parts",
        grid=(tiles, "SPLIT"),
        arguments=("a", "b", "parts", "rows", "cols", "depth", "SPLIT"),
        constants=blocks,
        warps="WARPS",
        stages="STAGES",
    )
    added = Launch(
        kernel="add_parts",
        grid=("cdiv(rows * cols, 1024)",),
        arguments=("parts", "c", "rows * cols", "SPLIT"),
        constants={"BLOCK": "1024"},
    )
    scratch = Buffer(shape=("SPLIT", "rows", "cols"), dtype="float32")
    return (
        Structure(name="whole", code=TRITON, plan=Plan(language="triton", steps=(whole,))),
        Structure(
            name="split",
            code=TRITON_SPLIT,
            plan=Plan(language="triton", buffers={"parts": scratch}, steps=(parts, added)),
        ),
    )


def cpp_structures() -> tuple[Structure, ...]:
    """Return the product in C++."""
    names = ("MR", "NR", "BLOCK_K", "BLOCK_N", "PACKED", "COLUMNS_OUTER")
    step = Launch(
        kernel="product",
        arguments=("a", "b", "c", "rows", "cols", "depth"),
        constants={name: name for name in names},
    )
    return (Structure(name="tiled", code=CPP, plan=Plan(language="cpp", steps=(step,))),)
