"""Functions that emitted C++ may need: written so that gcc vectorises the loops they stand in.

Each is accurate to about two units in the last place of float32; infinities and NaN come out as
they do from the standard library's. Only those that a kernel uses are put into its file.
"""

from collections.abc import Iterable, Mapping

_BITS = """\
static inline float float_of(int32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

static inline int32_t bits_of(float value) {
  int32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
"""
_EXP = """\
// exp(x) = 2^n * exp(r) with n = round(x / log(2)) and |r| <= log(2) / 2, exp(r) by a polynomial.
// Adding 1.5 * 2^23 rounds to n and leaves it in the low bits; limits on those keep 2^n finite.
static inline float fast_exp(float x) {
  int32_t n = bits_of(x * 1.44269504f + 12582912.0f);
  n = n < 0x4b3fff81 ? 0x4b3fff81 : n;
  n = n > 0x4b40007f ? 0x4b40007f : n;
  const float whole = float_of(n) - 12582912.0f;
  const float r = x - whole * 0.693145752f - whole * 1.42860677e-6f;
  float p = 1.38145401e-3f;
  p = p * r + 8.36874521e-3f;
  p = p * r + 4.16683908e-2f;
  p = p * r + 1.66665204e-1f;
  p = p * r + 4.99999934e-1f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const float grown = p * float_of((n << 23) + 0x3f800000);
  return x < -88.0f ? 0.0f : grown;
}
"""
_EXP_FALLING = """\
// exp(x) for x <= 0, as `fast_exp` but with one constant for log(2) and a shorter polynomial: the
// error is below 2e-7, and relative to exp(0) it only falls.
static inline float fast_exp_falling(float x) {
  x = x < -88.0f ? -88.0f : x;
  const float n = x * 1.44269504f + 12582912.0f;
  const float r = x - (n - 12582912.0f) * 0.693147181f;
  float p = 8.29761945e-3f;
  p = p * r + 4.19156300e-2f;
  p = p * r + 1.66675765e-1f;
  p = p * r + 4.99988927e-1f;
  p = p * r + 9.99999691e-1f;
  p = p * r + 1.00000007f;
  return p * float_of((bits_of(n) << 23) + 0x3f800000);
}
"""
_LOG = """\
// log(x) = e * log(2) + log(m) with m in [2/3, 4/3], log(m) by a polynomial in m - 1.
static inline float fast_log(float x) {
  const bool tiny = x < 1.17549435e-38f;
  const float scaled = tiny ? x * 8388608.0f : x;
  const int32_t e = (bits_of(scaled) - 0x3f2aaaab) & int32_t(0xff800000);
  const float m = float_of(bits_of(scaled) - e) - 1.0f;
  const float exponent = float(e) * 1.19209290e-7f - (tiny ? 23.0f : 0.0f);
  const float s = m * m;
  float r = -0.130310059f;
  float t = 0.140869141f;
  r = r * s - 0.121483512f;
  t = t * s + 0.139814854f;
  r = r * s - 0.166846126f;
  t = t * s + 0.200120345f;
  r = r * s - 0.249996200f;
  r = t * m + r;
  r = r * m + 0.333331972f;
  r = r * m - 0.5f;
  r = r * s + m;
  r = exponent * 0.693147182f + r;
  r = x < INFINITY ? r : x;
  r = x == 0.0f ? -INFINITY : r;
  return x < 0.0f ? NAN : r;
}
"""
_TANH = """\
// tanh(x) = 1 - 2 / (exp(2 |x|) + 1) with the sign of x; near 0, where that cancels, a polynomial.
static inline float fast_tanh(float x) {
  const float size = std::fabs(x);
  const float far = 1.0f - 2.0f / (fast_exp(2.0f * size) + 1.0f);
  const float s = x * x;
  float near = 1.57394409e-2f;
  near = near * s - 5.23025580e-2f;
  near = near * s + 1.33152470e-1f;
  near = near * s - 3.33327681e-1f;
  near = near * s * x + x;
  return size > 0.55f ? std::copysign(far, x) : near;
}
"""
_ERF = """\
// erf(x) = 1 - exp(-q(|x|)) with the sign of x; near 0, where that cancels, a polynomial.
static inline float fast_erf(float x) {
  const float size = std::fabs(x);
  const float s = x * x;
  float q = -1.72853470e-5f * size + 3.83197126e-4f;
  const float u = -3.88396438e-3f * size + 2.42546219e-2f;
  q = q * s + u;
  q = q * size - 1.06777877e-1f;
  q = q * size - 6.34846687e-1f;
  q = q * size - 1.28717512e-1f;
  q = q * size - size;
  const float far = 1.0f - fast_exp(q);
  float near = -5.96761703e-4f;
  near = near * s + 4.99119423e-3f;
  near = near * s - 2.67681349e-2f;
  near = near * s + 1.12819925e-1f;
  near = near * s - 3.76125336e-1f;
  near = near * s + 1.28379166e-1f;
  near = near * x + x;
  return size > 0.927734375f ? std::copysign(far, x) : near;
}
"""
_MAXIMUM = """\
// The greater of two; NaN if either is.
template <class V>
static inline V maximum(V a, V b) {
  return (a < b) | (b != b) ? b : a;
}
"""
_MINIMUM = """\
// The lesser of two; NaN if either is.
template <class V>
static inline V minimum(V a, V b) {
  return (a > b) | (b != b) ? b : a;
}
"""
_FLOOR_DIV = """\
// a / b rounded down.
template <class V>
static inline V floor_divide(V a, V b) {
  return a / b - ((a % b != 0) & ((a < 0) != (b < 0)));
}
"""
_MODULO = """\
// What floor division leaves; it has the sign of b.
template <class V>
static inline V modulo(V a, V b) {
  const V rest = a % b;
  return (rest != 0) & ((rest < 0) != (b < 0)) ? rest + b : rest;
}
"""
_COUNT_BEFORE = """\
// How many elements of a sorted table stand before a needle, without a branch on what is compared.
template <class K, class Before>
static inline int64_t count_before(const K* table, int64_t size, Before before) {
  int64_t first = 0;
  int64_t left = size;
  while (left > 1) {
    const int64_t half = left / 2;
    first += before(table[first + half - 1]) ? half : 0;
    left -= half;
  }
  return left > 0 ? first + int64_t(before(table[first])) : 0;
}

// The same for many needles side by side: the loads for one do not wait for those of another.
template <int64_t N, class K, class V, class Before>
static inline void count_before(
    const K* table, int64_t size, const V* needles, int64_t* counts, Before before) {
  for (int64_t lane = 0; lane < N; ++lane) counts[lane] = 0;
  int64_t left = size;
  while (left > 1) {
    const int64_t half = left / 2;
    #pragma omp simd
    for (int64_t lane = 0; lane < N; ++lane) {
      counts[lane] += before(table[counts[lane] + half - 1], needles[lane]) ? half : 0;
    }
    left -= half;
  }
  if (left > 0) {
    #pragma omp simd
    for (int64_t lane = 0; lane < N; ++lane) {
      counts[lane] += before(table[counts[lane]], needles[lane]) ? 1 : 0;
    }
  }
}
"""
_STREAM = """\
// Writes `count` elements past the cache where both ends allow it: they are not read again soon.
template <class V>
static inline void stream(V* to, const V* from, int64_t count) {
  int64_t done = 0;
  if (reinterpret_cast<uintptr_t>(to) % 32 == 0) {
    const int64_t vectors = count * int64_t(sizeof(V)) / 32;
    for (int64_t i = 0; i < vectors; ++i) {
      const __m256i word = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from) + i);
      _mm256_stream_si256(reinterpret_cast<__m256i*>(to) + i, word);
    }
    done = vectors * 32 / int64_t(sizeof(V));
  }
  for (; done < count; ++done) to[done] = from[done];
}
"""
_SUM = """\
// The sum of `count` numbers.
template <class V>
static inline int64_t sum_of(const V* from, int64_t count) {
  int64_t total = 0;
  #pragma omp simd reduction(+ : total)
  for (int64_t i = 0; i < count; ++i) total += from[i];
  return total;
}
"""
FUNCTIONS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "float_of": (_BITS, ()),
    "fast_exp": (_EXP, ("float_of",)),
    "fast_exp_falling": (_EXP_FALLING, ("float_of",)),
    "fast_log": (_LOG, ("float_of",)),
    "fast_tanh": (_TANH, ("fast_exp",)),
    "fast_erf": (_ERF, ("fast_exp",)),
    "maximum": (_MAXIMUM, ()),
    "minimum": (_MINIMUM, ()),
    "floor_divide": (_FLOOR_DIV, ()),
    "modulo": (_MODULO, ()),
    "count_before": (_COUNT_BEFORE, ()),
    "stream": (_STREAM, ()),
    "sum_of": (_SUM, ()),
}
"""By name: the text, and the functions that it uses itself."""


def functions_for(names: Iterable[str]) -> list[str]:
    """Return the texts of functions and of those that they use, each once, in a valid order."""
    wanted: dict[str, None] = {}

    def want(name: str) -> None:
        for other in FUNCTIONS[name][1]:
            want(other)
        wanted.setdefault(name)

    for name in names:
        want(name)
    return [FUNCTIONS[name][0] for name in wanted]
