"""What a profiler saw of one call, and whether the candidate declared it (pure)."""

from collections.abc import Collection, Iterator
from typing import Final

from operator_registry.record import Record
from optimizer.candidate import Candidate
from optimizer.plan import Launch, LibraryCall

_SHAPES: Final = (
    "alias", "as_strided", "detach", "empty", "empty_like", "empty_strided", "expand",
    "lift_fresh", "narrow", "new_empty", "permute", "reshape", "resize_", "result_type", "select",
    "slice", "squeeze", "t", "transpose", "unsqueeze", "view", "view_as",
    "fill_", "zero_", "zeros", "zeros_like",
)  # fmt: skip
"""Functions that compute nothing of an input's values: anybody may call them."""
_EXECUTOR: Final = (
    "clone", "contiguous", "copy_", "detach_", "item", "_local_scalar_dense", "to", "_to_copy",
    "is_nonzero",
)  # fmt: skip
"""What our own executor calls besides: it copies inputs that lie oddly, and reads sizes."""
_NOT_KERNELS: Final = ("Memset", "Memcpy")
"""How CUPTI names fills and copies."""


class Activity(Record):
    """One piece of work on the device: a kernel, a copy or a fill."""

    name: str
    stream: int
    begin_us: float
    took_us: float
    op: str = ""
    """The outermost library function that it ran for; empty where it was launched by itself."""


class Trace(Record):
    """What a profiler saw of one call, on all streams."""

    activities: tuple[Activity, ...] = ()
    ops: tuple[str, ...] = ()
    """The outermost library functions that ran on the host, each once."""
    window_us: tuple[float, float]
    """From the call to the idle device, on the clock of the activities."""

    def kernels(self) -> tuple[str, ...]:
        """Return the names of the kernels that ran, each once, in order."""
        names = (a.name for a in self.activities if not a.name.startswith(_NOT_KERNELS))
        return tuple(dict.fromkeys(names))


def find_undeclared(trace: Trace, candidate: Candidate) -> str | None:
    """Return what ran although the candidate does not declare it; None where all is declared."""
    return next(_undeclared(trace, candidate), None)


def declared_kernels(candidate: Candidate) -> frozenset[str]:
    """Return the kernels that a candidate says it launches."""
    steps = (step for step in candidate.plan.steps if isinstance(step, Launch))
    return frozenset(step.kernel for step in steps)


def declared_ops(candidate: Candidate) -> frozenset[str]:
    """Return the library functions of a candidate's plan, without their overloads."""
    steps = (step for step in candidate.plan.steps if isinstance(step, LibraryCall))
    return frozenset(step.op.partition(".")[0] for step in steps)


def _undeclared(trace: Trace, candidate: Candidate) -> Iterator[str]:
    ops = declared_ops(candidate) | _aten(_SHAPES)
    if candidate.host == "plan":
        ops |= _aten(_EXECUTOR)
    kernels = declared_kernels(candidate)
    for op in trace.ops:
        if op not in ops:
            yield f"calls {op}, which is no step of the plan"
    for activity in trace.activities:
        own = activity.name in kernels or activity.name.startswith(_NOT_KERNELS)
        if not own and activity.op not in ops:
            yield f"launches {activity.name}, which is no step of the plan"


def _aten(names: Collection[str]) -> frozenset[str]:
    return frozenset(f"aten::{name}" for name in names)
