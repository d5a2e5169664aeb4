"""Functions that emitted Triton may need. Only those that a kernel uses are put into its file."""

from collections.abc import Iterable, Mapping

_LOAD = '''\
@triton.jit
def load(pointer, mask, other):
    """Return what is in memory, `other` where masked off; a mask of None leaves nothing off."""
    return tl.load(pointer) if mask is None else tl.load(pointer, mask=mask, other=other)
'''
_LOAD_SHARED = '''\
@triton.jit
def load_shared(pointer, mask, other):
    """As `load`, of what all rows have in common, and which is to stay in the cache."""
    other = None if mask is None else other
    return tl.load(pointer, mask=mask, other=other, eviction_policy="evict_last")
'''
_KEEP = '''\
@triton.jit
def keep(value, mask, other):
    """Return the value, `other` where masked off."""
    return value if mask is None else tl.where(mask, value, other)
'''
_EXP = '''\
@triton.jit
def exp(x):
    """Return exp(x); what is lost when a large x is scaled for `exp2` is put back."""
    scaled = x * 1.44269504
    lost = tl.fma(x, 1.44269504, -scaled) + x * 1.92596299e-8
    grown = tl.exp2(scaled)
    return tl.where(tl.abs(scaled) < 126.0, grown + grown * (lost * 0.693147181), grown)
'''
_TANH = '''\
@triton.jit
def tanh(x):
    """Return 1 - 2 / (exp(2 |x|) + 1) with the sign of x, near 0 by a polynomial."""
    size = tl.abs(x)
    far = 1.0 - 2.0 / (tl.exp(2.0 * size) + 1.0)
    s = x * x
    near = ((1.57394409e-2 * s - 5.23025580e-2) * s + 1.33152470e-1) * s - 3.33327681e-1
    return tl.where(size > 0.55, tl.where(x < 0, -far, far), near * s * x + x)
'''
_EXPM1 = '''\
@triton.jit
def expm1(x):
    """Return exp(x) - 1, near 0 by tanh, where the difference cancels."""
    half = tanh(0.5 * x)
    return tl.where(tl.abs(x) < 0.5, 2.0 * half / (1.0 - half), exp(x) - 1.0)
'''
_LOG1P = '''\
@triton.jit
def log1p(x):
    """Return log(1 + x); the sum's rounding is made good by the quotient."""
    grown = 1.0 + x
    near = tl.log(grown) * (x / (grown - 1.0))
    return tl.where(grown == 1.0, x, tl.where(grown == float("inf"), grown, near))
'''
_MAXIMUM = '''\
@triton.jit
def maximum(a, b):
    """Return the greater of two; NaN if either is."""
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)
'''
_MINIMUM = '''\
@triton.jit
def minimum(a, b):
    """Return the lesser of two; NaN if either is."""
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)
'''
_ROUND = '''\
@triton.jit
def round_to_even(x):
    """Return the nearest whole number, the even one of two."""
    size = tl.abs(x)
    whole = tl.floor(size)
    rest = size - whole
    odd = whole - 2.0 * tl.floor(0.5 * whole)
    up = tl.where((rest > 0.5) | ((rest == 0.5) & (odd == 1.0)), whole + 1.0, whole)
    return tl.where(x < 0, -up, up)
'''
_TRUNCATE = '''\
@triton.jit
def truncate(x):
    """Return the whole number towards 0."""
    return tl.where(x < 0, tl.ceil(x), tl.floor(x))
'''
_FLOOR_DIVIDE = '''\
@triton.jit
def floor_divide(a, b):
    """Return a / b rounded down."""
    rest = a % b
    return a // b - ((rest != 0) & ((a < 0) != (b < 0))).to(a.dtype)
'''
_MODULO = '''\
@triton.jit
def modulo(a, b):
    """Return what floor division leaves; it has the sign of b."""
    rest = a % b
    return tl.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)
'''
_COUNT_BEFORE = '''\
@triton.jit
def count_before(table_ptr, size, needle, STEPS: tl.constexpr, EQUAL: tl.constexpr):
    """Return how many elements of a sorted table are below `needle` (or equal, if EQUAL).

    Each of STEPS = ceil(log2(size)) steps halves what is left, without a branch.
    """
    first = tl.zeros_like(needle).to(tl.int32)
    left = size
    for _ in tl.static_range(STEPS):
        half = left // 2
        element = tl.load(table_ptr + first + (half - 1))
        before = (element <= needle) if EQUAL else (element < needle)
        first = tl.where(before, first + half, first)
        left -= half
    last = tl.load(table_ptr + first, mask=first < size, other=0)
    before = (last <= needle) if EQUAL else (last < needle)
    return first.to(tl.int64) + (before & (first < size)).to(tl.int64)
'''
_BUCKET_SHIFT = '''\
@triton.jit
def bucket_shift(span, BITS: tl.constexpr):
    """Return the least shift that leaves no more than BITS bits of an unsigned number."""
    shift = tl.zeros_like(span)
    for step in tl.static_range(6):
        more = 32 >> step
        longer = (span >> (shift + (more - 1))) >> BITS
        shift = tl.where(longer != 0, shift + more, shift)
    return shift
'''
_COUNT_IN_BUCKET = '''\
@triton.jit
def count_in_bucket(directory_ptr, table_ptr, needle, BITS: tl.constexpr, EQUAL: tl.constexpr):
    """Return how many elements of a sorted table are below `needle` (or equal, if EQUAL).

    Elements before its bucket are below it, those behind are above: what is left is halved for as
    long as any needle of the program has some left.
    """
    first = tl.load(table_ptr).to(tl.int64)
    shift = tl.load(directory_ptr + ((1 << BITS) + 1)).to(tl.uint64)
    offset = (tl.maximum(needle.to(tl.int64), first) - first).to(tl.uint64)
    bucket = tl.minimum(offset >> shift, (1 << BITS) - 1).to(tl.int32)
    low = tl.load(directory_ptr + bucket)
    high = tl.load(directory_ptr + bucket + 1)
    while tl.max(high - low) > 0:
        middle = low + (high - low) // 2
        element = tl.load(table_ptr + middle, mask=low < high, other=0)
        before = (element <= needle) if EQUAL else (element < needle)
        before = before & (low < high)
        low = tl.where(before, middle + 1, low)
        high = tl.where(before, high, middle)
    return low.to(tl.int64)
'''
FUNCTIONS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "load": (_LOAD, ()),
    "load_shared": (_LOAD_SHARED, ()),
    "keep": (_KEEP, ()),
    "exp": (_EXP, ()),
    "tanh": (_TANH, ()),
    "expm1": (_EXPM1, ("exp", "tanh")),
    "log1p": (_LOG1P, ()),
    "maximum": (_MAXIMUM, ()),
    "minimum": (_MINIMUM, ()),
    "round_to_even": (_ROUND, ()),
    "truncate": (_TRUNCATE, ()),
    "floor_divide": (_FLOOR_DIVIDE, ()),
    "modulo": (_MODULO, ()),
    "count_before": (_COUNT_BEFORE, ()),
    "bucket_shift": (_BUCKET_SHIFT, ()),
    "count_in_bucket": (_COUNT_IN_BUCKET, ()),
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
