"""A kernel before it becomes a candidate: its code, how to launch it and what can be tuned."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from optimizer.candidate import Choice
from optimizer.plan import Buffer, Step

Tunables = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Sketch:
    """What an emitter makes of one region."""

    code: tuple[str, ...]
    """The kernel's own lines, its documentation included."""
    steps: tuple[Step, ...]
    functions: tuple[str, ...] = ()
    """Names of the helper functions that the kernel calls."""
    tunables: Tunables = field(default_factory=dict)
    chosen: Choice = field(default_factory=dict)
    """The likeliest choice."""
    let: Mapping[str, str] = field(default_factory=dict)
    buffers: Mapping[str, Buffer] = field(default_factory=dict)
    note: str = ""
    """How the kernel works, in a few words."""
    cost: float = 1.0
    """A guess at its time, against that of other sketches of the same region."""
