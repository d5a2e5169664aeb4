"""The launch plan: what a candidate's host side does, as data. `executor` runs it.

All texts in a plan are expressions (`optimizer.expression`) over these names: the spec's axes
(for an axis with one size a list member: a tuple, see `total` and `largest`), its attributes, the
chosen tunables, the `let` names, and, only as launch or library arguments, the tensors and buffers
themselves. A list of tensors as an argument becomes a table of its members' addresses.
"""

from typing import Annotated, Literal

from pydantic import Field

from operator_registry.record import Identifier, Record

Expression = str
Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")]


class Buffer(Record):
    """Scratch memory that lives for one call."""

    shape: tuple[Expression, ...]
    dtype: str
    """A dtype, or a dtype variable of the spec."""
    zeroed: bool = False


class Launch(Record):
    """Run a kernel of the device code.

    On CUDA `grid` counts program instances; on a CPU it is ignored and the kernel shares its work
    among OpenMP threads by itself.
    """

    kind: Literal["launch"] = "launch"
    kernel: Name
    grid: tuple[Expression, ...] = ("1",)
    arguments: tuple[Expression, ...]
    """In the kernel's order, its compile-time constants left out."""
    constants: dict[Name, Expression] = {}
    """Compile-time constants: `tl.constexpr` in Triton, macros in C++."""
    warps: Expression = "4"
    stages: Expression = "1"
    when: Expression | None = None
    """Launched only where this is true; for example ``rows > 0``."""


class LibraryCall(Record):
    """Call an ATen out-variant by name, such as ``aten::mm.out``."""

    kind: Literal["library"] = "library"
    op: str
    arguments: tuple[Expression, ...]
    out: tuple[Name, ...]


class ReadSize(Record):
    """Wait for the device and read a size that the data decide.

    Binds axis `axis` to the value at `index` of the integer buffer, or, for an axis that has one
    size a list member, to the `count` values from there on.
    """

    kind: Literal["read_size"] = "read_size"
    buffer: Name
    index: Expression = "0"
    axis: Identifier
    count: Expression | None = None


Step = Annotated[Launch | LibraryCall | ReadSize, Field(discriminator="kind")]


class Plan(Record):
    """The host side of a candidate: buffers and steps in order.

    An output whose axis a `ReadSize` binds is made at its upper bound (`SumAxis.at_most`) and
    narrowed once the size is known. A plan in ``python`` is not run: its steps only declare, in any
    order and without arguments, what the code's own `run` may launch and call.
    """

    schema_version: Literal[1] = Field(default=1, alias="schema")
    language: Literal["triton", "cpp", "python"]
    let: dict[Name, Expression] = {}
    """Named values, each may use those before it."""
    buffers: dict[Identifier, Buffer] = {}
    steps: tuple[Step, ...] = Field(min_length=1)
