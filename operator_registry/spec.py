"""What must be computed: an operator's axes, tensors, precision and workloads (no torch)."""

from typing import Annotated, Any, Literal, Self

from pydantic import (
    Discriminator,
    Field,
    SerializerFunctionWrapHandler,
    StringConstraints,
    Tag,
    model_serializer,
    model_validator,
)

from operator_registry.record import Identifier, Record, Slug

DType = Literal[
    "float64", "float32", "float16", "bfloat16",
    "int64", "int32", "int16", "int8", "uint8", "bool",
]  # fmt: skip
DTypeVariable = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]{0,15}$")]
"""A name such as ``T`` that each workload binds to a dtype."""
Scalar = bool | int | float
TargetName = Literal["cpu", "cuda", "rocm"]


class RangeAxis(Record):
    """A size that the caller chooses; the judge draws held-out sizes from this range."""

    min: int = Field(default=1, ge=0)
    max: int = Field(ge=1)
    multiple_of: int = Field(default=1, ge=1)

    @model_validator(mode="after")
    def _holds_a_size(self) -> Self:
        if (self.max // self.multiple_of) * self.multiple_of < self.min:
            msg = f"no multiple of {self.multiple_of} lies in {self.min}..{self.max}"
            raise ValueError(msg)
        return self


class SumAxis(Record):
    """A size that the data decide: the sum of an integer tensor's elements.

    Where that tensor is a list, the axis has one size for each member of the list.
    """

    sum_of: Identifier
    at_most: Identifier | None = None
    """For an output's axis: the axis whose size it can't exceed, so that buffers can be made."""


class OneMoreAxis(Record):
    """The size of an offsets input: one more than the segments that it bounds."""

    one_more_than: Identifier


def _axis_kind(value: Any) -> str:  # noqa: ANN401 - pydantic hands over raw input
    if isinstance(value, SumAxis) or (isinstance(value, dict) and "sum_of" in value):
        return "sum"
    if isinstance(value, OneMoreAxis) or (isinstance(value, dict) and "one_more_than" in value):
        return "one_more"
    return "range"


Axis = Annotated[
    Annotated[RangeAxis, Tag("range")]
    | Annotated[SumAxis, Tag("sum")]
    | Annotated[OneMoreAxis, Tag("one_more")],
    Discriminator(_axis_kind),
]


class TensorSpec(Record):
    """One output tensor, or a list of them of the same kind."""

    shape: tuple[Identifier, ...]
    """Axis names, outermost first; empty for a scalar."""
    dtype: DType | DTypeVariable
    list_over: Identifier | None = None
    """The axis that counts the members, where this is a list of tensors."""


class Normal(Record):
    """Independent normal values."""

    kind: Literal["normal"] = "normal"
    mean: float = 0.0
    std: float = Field(default=1.0, gt=0)


class Uniform(Record):
    """Independent uniform values in ``[low, high)``; integers for an integer dtype."""

    kind: Literal["uniform"] = "uniform"
    low: float = 0.0
    high: float = 1.0


class SortedUniqueIds(Record):
    """Strictly increasing integers drawn from ``[0, below)``."""

    kind: Literal["sorted_unique_ids"] = "sorted_unique_ids"
    below: int = Field(gt=0)


class IdsFrom(Record):
    """Integers of which a share is found in another input, the rest is not."""

    kind: Literal["ids_from"] = "ids_from"
    table: Identifier
    hit_share: float = Field(default=0.5, ge=0, le=1)


class Lengths(Record):
    """Segment lengths: integers in ``[low, high]``."""

    kind: Literal["lengths"] = "lengths"
    low: int = Field(default=0, ge=0)
    high: int = Field(ge=0)


class Offsets(Record):
    """The running sum of a lengths input, with a leading zero."""

    kind: Literal["offsets"] = "offsets"
    of: Identifier


class Permutation(Record):
    """Each index of its only axis once, in a random order."""

    kind: Literal["permutation"] = "permutation"


class Made(Record):
    """Values from a seeded function beside the reference: ``function(generator, sizes, dtype)``."""

    kind: Literal["made"] = "made"
    function: Identifier


Values = Annotated[
    Normal | Uniform | SortedUniqueIds | IdsFrom | Lengths | Offsets | Permutation | Made,
    Field(discriminator="kind"),
]


class InputSpec(TensorSpec):
    """One input tensor (or list) and how the judge draws its values."""

    values: Values = Normal()
    constant: bool = False
    """True for what changes only between versions of a model, such as a weight or a table."""


class AttributeSpec(Record):
    """A scalar argument of the reference. With a range, the judge draws from it as well."""

    value: Scalar
    min: Scalar | None = None
    max: Scalar | None = None


Distribution = Literal["stated", "flat", "skewed", "hostile"]
"""How values are drawn: as the spec describes them, or otherwise inside its domain."""
Special = Literal["excluded", "as_reference"]
"""Never an input's value; or: outputs are infinite or NaN exactly where the reference's are."""


class Domain(Record):
    """The floating values that an operator must bear, beyond those that are drawn."""

    greatest: float | None = Field(default=None, gt=0)
    """The magnitude up to which `normal` inputs may go; None: the greatest that is drawn.

    Other kinds of values have ends of their own, and stay within them.
    """
    infinite: Special = "excluded"
    nan: Special = "excluded"


class PrecisionPolicy(Record):
    """How far an output may stray: ``error <= max(c * reference_error, k * eps * scale)``.

    Errors are taken against a float64 oracle, in the max-norm and the 2-norm; `scale` is the
    oracle's own norm. Integers, booleans and pure movement must be exact whatever this says.
    """

    c: float = Field(default=2.0, gt=0)
    k: float = Field(default=4.0, ge=0)
    row_axes: tuple[Identifier, ...] = ()
    """Axes along which the rule holds for each row by itself."""
    input_scales: tuple[float, ...] = (1.0,)
    """The domain: factors on the floating inputs' values at which the rule must hold."""
    domain: Domain = Domain()
    atomics: float = Field(default=0.0, ge=0)
    """How far two runs on the same inputs may differ, as a `k`; at 0 not by a bit."""
    strides: tuple[Identifier, ...] = ()
    """Inputs that may come strided. All may begin at any multiple of their element's size."""
    memory: float = Field(default=1.1, ge=1)
    """How many times the baseline's peak of memory a kernel may take."""

    @model_serializer(mode="wrap")
    def _without_what_is_usual(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what says nothing, so that a spec keeps the digest that it was published by."""
        written: dict[str, Any] = write(self)
        usual = {name: field.default for name, field in type(self).model_fields.items()}
        silent = {n for n in _LATER_KEYS if getattr(self, n) == usual[n]}
        return {key: value for key, value in written.items() if key not in silent}


_LATER_KEYS = ("domain", "atomics", "strides", "memory")
"""Keys of `PrecisionPolicy` that the first published specs lack."""


class Workload(Record):
    """A public size: one number for each range axis, a dtype for each variable."""

    name: Slug
    sizes: dict[Identifier, int]
    dtypes: dict[DTypeVariable, DType] = {}
    attributes: dict[Identifier, Scalar] = {}
    weight: float = Field(default=1.0, gt=0)
    targets: tuple[TargetName, ...] = ()
    """Where it is measured; empty for everywhere."""


class OperatorSpec(Record):
    """An operator as its user states it: the one thing that a kernel must agree with.

    The reference is called as ``reference(*inputs, **attributes)`` in the order declared here and
    returns the outputs in theirs: a tensor, or a tuple where there are several; a list output is a
    list of tensors.
    """

    schema_version: Literal[1] = Field(default=1, alias="schema")
    name: Identifier
    summary: str = ""
    owners: tuple[str, ...] = ()
    axes: dict[Identifier, Axis]
    dtypes: dict[DTypeVariable, tuple[DType, ...]] = {}
    inputs: dict[Identifier, InputSpec]
    attributes: dict[Identifier, AttributeSpec] = {}
    outputs: dict[Identifier, TensorSpec]
    reference: Identifier
    equivalents: tuple[Identifier, ...] = ()
    """Other functions in the reference's file that compute the same: each becomes a peer."""
    precision: PrecisionPolicy = PrecisionPolicy()
    workloads: tuple[Workload, ...] = Field(min_length=1)

    def workloads_on(self, target: TargetName) -> tuple[Workload, ...]:
        """Return the public workloads that are measured on this kind of device."""
        return tuple(w for w in self.workloads if not w.targets or target in w.targets)

    def has_member_sizes(self, axis: str) -> bool:
        """Return whether the axis has one size for each member of a list of tensors."""
        kind = self.axes[axis]
        if not isinstance(kind, SumAxis):
            return False
        source = self.inputs.get(kind.sum_of) or self.outputs[kind.sum_of]
        return source.list_over is not None
