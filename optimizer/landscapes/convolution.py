"""A 2-D convolution of channels-last images, in Triton and in C++, with its spaces.

Stride 1, the edges padded with zeros, so that images keep their size.
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
from optimizer.plan import Launch, Plan

SIDE: Final = 3
"""Height and width of the filters."""
CHANNEL_UNIT: Final = 64
_REFERENCE = '''\
"""``y[i, r, c, f] = sum of x[i, r + u - 1, c + v - 1, k] * w[u, v, k, f]`` over u, v and k."""

from torch.nn import functional


def convolution(x, w):
    images = x.permute(0, 3, 1, 2)
    filters = w.permute(3, 2, 0, 1)
    return functional.conv2d(images, filters, padding="same").permute(0, 2, 3, 1).contiguous()
'''

TRITON = '''\
"""A convolution as a product: a program's rows are pixels, its depth is taps times channels."""

import triton
import triton.language as tl

TUNABLES = {
    "BLOCK_M": (32, 64, 128, 256),
    "BLOCK_N": (32, 64, 128, 256),
    "BLOCK_C": (16, 32, 64),
    "TAPS_INNER": (0, 1),
    "WARPS": (4, 8),
    "STAGES": (2, 3, 4),
}


@triton.jit
def convolution(x, w, y, pixels, height, width, channels, features, tap_every, block_every,
    SIDE: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_C: tl.constexpr):
    pixel = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    feature = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    col = pixel % width
    row = pixel // width % height
    channel = tl.arange(0, BLOCK_C)
    blocks = channels // BLOCK_C
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for step in range(0, SIDE * SIDE * blocks):
        tap = step // tap_every % (SIDE * SIDE)
        first = step // block_every % blocks * BLOCK_C
        down = tap // SIDE - SIDE // 2
        right = tap % SIDE - SIDE // 2
        inside = (row + down >= 0) & (row + down < height) & (col + right >= 0)
        inside = inside & (col + right < width) & (pixel < pixels)
        source = (pixel + down * width + right).to(tl.int64) * channels + first
        seen = tl.load(x + source[:, None] + channel[None, :], mask=inside[:, None], other=0.0)
        place = (tap * channels + first + channel).to(tl.int64) * features
        known = feature[None, :] < features
        filters = tl.load(w + place[:, None] + feature[None, :], mask=known, other=0.0)
        total = tl.dot(seen, filters, total)
    target = y + pixel.to(tl.int64)[:, None] * features + feature[None, :]
    both = (pixel[:, None] < pixels) & (feature[None, :] < features)
    tl.store(target, total.to(y.dtype.element_ty), mask=both)
'''

CPP = """\
// A convolution: PIXELS pixels of a row with FEATURES features each are held in registers.
// TUNABLES = {"PIXELS": (1, 2, 4, 8), "FEATURES": (8, 16, 32, 64), "BLOCK_C": (8, 32, 128), \
"TAPS_INNER": (0, 1), "GRAIN": (1, 4, 16), "UNROLL": (1, 4)}
#include <cstdint>

struct Shape { int64_t height, width, channels, features; };

static inline void taps(const T* __restrict image, const T* __restrict w, float (*sum)[FEATURES],
    const Shape& s, int64_t row, int64_t col, int64_t feature, int tap, int64_t first,
    int64_t last, int64_t count) {
  const int64_t r = row + tap / SIDE - SIDE / 2, shift = tap % SIDE - SIDE / 2;
  if (r < 0 || r >= s.height) return;
  const T* line = image + r * s.width * s.channels;
  const T* filters = w + tap * s.channels * s.features + feature;
  const bool whole = count == FEATURES && col + shift >= 0 && col + shift + PIXELS <= s.width;
  if (whole && col + PIXELS <= s.width) {
    const T* seen = line + (col + shift) * s.channels;
    constexpr int unrolled = UNROLL;
    #pragma GCC unroll unrolled
    for (int64_t c = first; c < last; ++c)
      for (int p = 0; p < PIXELS; ++p) {
        const float x = float(seen[p * s.channels + c]);
        #pragma omp simd
        for (int f = 0; f < FEATURES; ++f) sum[p][f] += x * float(filters[c * s.features + f]);
      }
    return;
  }
  for (int p = 0; p < PIXELS; ++p) {
    const int64_t at = col + shift + p;
    if (at < 0 || at >= s.width || col + p >= s.width) continue;
    for (int64_t c = first; c < last; ++c) {
      const float x = float(line[at * s.channels + c]);
      for (int64_t f = 0; f < count; ++f) sum[p][f] += x * float(filters[c * s.features + f]);
    }
  }
}

extern "C" void KERNEL(convolution)(const T* x, const T* w, T* y, int64_t images, int64_t height,
    int64_t width, int64_t channels, int64_t features) {
  const Shape s = {height, width, channels, features};
  #pragma omp parallel for schedule(dynamic, GRAIN)
  for (int64_t line = 0; line < images * height; ++line) {
    const T* image = x + line / height * height * width * channels;
    for (int64_t feature = 0; feature < features; feature += FEATURES) {
      const int64_t count = feature + FEATURES < features ? FEATURES : features - feature;
      for (int64_t col = 0; col < width; col += PIXELS) {
        float sum[PIXELS][FEATURES] = {};
        for (int64_t c = 0; c < channels; c += TAPS_INNER ? BLOCK_C : channels)
          for (int tap = 0; tap < SIDE * SIDE; ++tap)
            for (int64_t first = c; first < (TAPS_INNER ? c + 1 : channels); first += BLOCK_C) {
              const int64_t last = first + BLOCK_C < channels ? first + BLOCK_C : channels;
              taps(image, w, sum, s, line % height, col, feature, tap, first, last, count);
            }
        for (int64_t p = 0; p < PIXELS && col + p < width; ++p)
          for (int64_t f = 0; f < count; ++f)
            y[(line * width + col + p) * features + feature + f] = T(sum[p][f]);
      }
    }
  }
}
"""

SIZES: Final[dict[str, tuple[int, int, int, int]]] = {
    "wide": (16, 56, 64, 64),
    "deep": (32, 14, 256, 256),
    "few-images": (1, 28, 512, 512),
}
"""Images, height (which is the width), channels and features of the landscapes on a device."""
CPU_SIZES: Final[dict[str, tuple[int, int, int, int]]] = {"small": (1, 28, 64, 64)}


def make_convolution(
    images: int, height: int, channels: int, features: int, *, dtype: DType
) -> Operator:
    """Return the operator with one workload."""
    spec = OperatorSpec(
        name="convolution",
        summary="A 3 x 3 convolution of channels-last images, padded so that they keep their size.",
        axes={
            "images": RangeAxis(max=256),
            "height": RangeAxis(max=512),
            "width": RangeAxis(max=512),
            "channels": RangeAxis(min=CHANNEL_UNIT, max=2048, multiple_of=CHANNEL_UNIT),
            "features": RangeAxis(min=16, max=2048, multiple_of=16),
            "side": RangeAxis(min=SIDE, max=SIDE),
        },
        dtypes={"T": (dtype,)},
        inputs={
            "x": InputSpec(shape=("images", "height", "width", "channels"), dtype="T"),
            "w": InputSpec(shape=("side", "side", "channels", "features"), dtype="T"),
        },
        outputs={"y": TensorSpec(shape=("images", "height", "width", "features"), dtype="T")},
        reference="convolution",
        precision=precision_of_sums(dtype),
        workloads=(
            Workload(
                name=f"i{images}-s{height}-c{channels}-f{features}",
                sizes={
                    "images": images,
                    "height": height,
                    "width": height,
                    "channels": channels,
                    "features": features,
                    "side": SIDE,
                },
                dtypes={"T": dtype},
            ),
        ),
    )
    return Operator(spec=spec, source=_REFERENCE)


def triton_structures() -> tuple[Structure, ...]:
    """Return the convolution as a product, its taps outside or inside the channels' blocks."""
    pixels = "images * height * width"
    blocks = "(channels // BLOCK_C)"
    step = Launch(
        kernel="convolution",
        grid=(f"cdiv({pixels}, BLOCK_M)", "cdiv(features, BLOCK_N)"),
        arguments=(
            "x", "w", "y", pixels, "height", "width", "channels", "features",
            f"1 if TAPS_INNER == 1 else {blocks}",
            "side * side if TAPS_INNER == 1 else 1",
        ),
        constants={name: name for name in ("BLOCK_M", "BLOCK_N", "BLOCK_C")} | {"SIDE": "side"},
        warps="WARPS",
        stages="STAGES",
    )  # fmt: skip
    plan = Plan(language="triton", steps=(step,))
    return (Structure(name="as-product", code=TRITON, plan=plan),)


def cpp_structures() -> tuple[Structure, ...]:
    """Return the convolution in C++."""
    names = ("PIXELS", "FEATURES", "BLOCK_C", "TAPS_INNER", "GRAIN", "UNROLL")
    step = Launch(
        kernel="convolution",
        arguments=("x", "w", "y", "images", "height", "width", "channels", "features"),
        constants={name: name for name in names} | {"SIDE": "side"},
    )
    return (Structure(name="direct", code=CPP, plan=Plan(language="cpp", steps=(step,))),)
