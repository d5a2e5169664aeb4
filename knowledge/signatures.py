"""Errors that are known by what they say: their name, and what to search for."""

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Signature:
    """An error that many a candidate shows."""

    name: str
    pattern: re.Pattern[str]
    terms: tuple[str, ...]
    out_of_resources: bool = False


def _signature(name: str, pattern: str, *terms: str, out_of_resources: bool = False) -> Signature:
    return Signature(name, re.compile(pattern, re.IGNORECASE), terms or (name,), out_of_resources)


SIGNATURES: Final = (
    _signature(
        "out of shared memory",
        r"bytes of shared memory, over|out of resource: shared memory|uses too much shared data",
        "out of resources: shared memory",
        out_of_resources=True,
    ),
    _signature(
        "too many resources for a launch",
        r"too many resources requested for launch|out of resource: (?:threads|registers)"
        r"|CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
        "out of resources: registers threads",
        out_of_resources=True,
    ),
    _signature(
        "out of device memory",
        r"out of memory|OutOfMemoryError|can't allocate memory|std::bad_alloc|MemoryError",
        "out of memory: buffers",
        out_of_resources=True,
    ),
    _signature("illegal memory access", r"illegal memory access|CUDA error 700\b"),
    _signature("misaligned address", r"misaligned address|CUDA error 716\b|SIGBUS"),
    _signature(
        "segmentation fault", r"SIGSEGV|segmentation fault", "illegal memory access in C++"
    ),
    _signature(
        "illegal instruction", r"SIGILL|illegal instruction", "instruction set of another target"
    ),
    _signature("division by zero", r"SIGFPE|ZeroDivisionError|division by zero"),
    _signature(
        "invalid launch", r"invalid (?:argument|configuration)", "grid is zero or too large"
    ),
    _signature(
        "block shape that is no power of two",
        r"must be a power of 2|exceeds triton maximum tensor numel",
        "arange power of two block",
    ),
    _signature(
        "compile-time constant expected",
        r"must be of type tl\.constexpr|as a global variable|takes the constants",
        "constexpr constants",
    ),
    _signature(
        "shapes that do not broadcast",
        r"make_shape_compatible|incompatible dimensions|Expected \w+ argument to have shape"
        r"|equal reduction dimensions",
        "block shapes differ broadcast",
    ),
    _signature(
        "type that changes in a loop or branch",
        r"Loop-carried variable|Mismatched type for",
        "type changes in loop or branch",
    ),
    _signature(
        "unsupported Python in a kernel",
        r"unsupported AST node|only tuple comprehensions|unsupported tensor index"
        r"|Boolean value of Tensor",
        "unsupported Python construct in Triton",
    ),
    _signature(
        "operands that tl.dot does not take",
        r"Both operands must be same dtype|Input shapes should have",
        "tl.dot operands",
    ),
    _signature(
        "load or store of something else than a pointer",
        r"Unsupported ptr type|`other` cannot be provided",
        "tl.load pointer mask other",
    ),
    _signature(
        "unknown name",
        r"is not defined|has no attribute|was not declared in this scope|is not a member of",
        "unknown name",
    ),
    _signature(
        "kernel that the plan does not match",
        r"the plan gives|no function extern|no @triton\.jit function|takes parameters of",
        "plan arguments kernel signature",
    ),
    _signature(
        "instruction set that the target lacks",
        r"target specific option mismatch|impossible constraint",
        "intrinsics of another instruction set",
    ),
    _signature(
        "loop that OpenMP does not take",
        r"used with OpenMP|invalid controlling predicate|user defined reduction not found"
        r"|canonical",
        "OpenMP loop canonical reduction",
    ),
    _signature(
        "missing symbol",
        r"undefined (?:symbol|reference)|cannot open shared object",
        "linker undefined symbol",
    ),
    _signature(
        "C++ types that do not match",
        r"cannot convert|no matching function|deduced conflicting|read-only location"
        r"|conflicting declaration",
        "C++ type mismatch",
    ),
    _signature(
        "syntax error", r"^expected |SyntaxError|invalid syntax", "C++ compile error syntax"
    ),
)  # fmt: skip


def find_signature(*texts: str) -> Signature | None:
    """Return the first known error that a text shows; the texts' order decides, then ours."""
    for text in texts:
        for signature in SIGNATURES:
            if signature.pattern.search(text):
                return signature
    return None
