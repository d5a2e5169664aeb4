"""A launch plan at given sizes: its names, its arguments and the kernels it needs (no torch)."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from operator_registry.spec import OperatorSpec, Scalar, SumAxis
from optimizer.candidate import Choice
from optimizer.errors import PlanError
from optimizer.expression import Size, evaluate, names_in
from optimizer.plan import Launch, LibraryCall, Plan, ReadSize
from optimizer.scope import Scope, speaking_of
from optimizer.shapes import Setting, attributes_of
from optimizer.targets.target import Constant, Instance

TYPE_NAMES: Mapping[str, str] = {
    "float64": "fp64", "float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "int64": "i64",
    "int32": "i32", "int16": "i16", "int8": "i8", "uint8": "u8", "bool": "i1",
}  # fmt: skip
ALIGNMENT = 16
"""Bytes at which a compiled kernel may assume that memory begins; also the divisor of sizes."""
_I32_MAX = 2**31 - 1


@dataclass(frozen=True)
class Memory:
    """What a name stands for in memory."""

    dtype: str
    listed: bool = False


@dataclass(frozen=True)
class Address:
    """An argument: where a tensor or a buffer begins."""

    name: str


@dataclass(frozen=True)
class Table:
    """An argument: an int64 array with the addresses of a list's members."""

    name: str


@dataclass(frozen=True)
class Array:
    """An argument: an int64 array of sizes, one for each member of a list."""

    values: tuple[int, ...]


@dataclass(frozen=True)
class Number:
    """An argument: a number that is known before the call."""

    value: int | float


@dataclass(frozen=True)
class Unread:
    """An argument: a number that depends on a size which the data decide."""

    expression: str


Argument = Address | Table | Array | Number | Unread


@dataclass(frozen=True)
class BoundLaunch:
    """A launch whose compiled form is known."""

    step: Launch
    instance: Instance
    arguments: tuple[Argument, ...]
    grid: tuple[int, ...] | None
    """None where it depends on a size that the data decide."""
    sure: bool
    """False where `when` depends on a size that the data decide."""


@dataclass(frozen=True)
class Binding:
    """A plan of an operator at the sizes, dtypes and attributes of one call."""

    spec: OperatorSpec
    plan: Plan
    chosen: Choice
    setting: Setting

    @cached_property
    def memory(self) -> Mapping[str, Memory]:
        """What each input, output and buffer is.

        Raises:
            PlanError: A buffer has the name of a tensor, or a dtype that nothing binds.
        """
        tensors = {**self.spec.inputs, **self.spec.outputs}
        if taken := sorted(tensors.keys() & self.plan.buffers.keys()):
            msg = f"buffer {', '.join(taken)}: an input or output has that name"
            raise PlanError(msg)
        found = {
            name: Memory(self._dtype(name, tensor.dtype), listed=tensor.list_over is not None)
            for name, tensor in tensors.items()
        }
        buffers = self.plan.buffers.items()
        return found | {name: Memory(self._dtype(name, buffer.dtype)) for name, buffer in buffers}

    @cached_property
    def sizes(self) -> Mapping[str, Size]:
        """The size of each axis, or its upper bound where a step reads it.

        Raises:
            PlanError: A size that is read has no bound.
        """
        read = {step.axis for step in self.plan.steps if isinstance(step, ReadSize)}
        bounds = {axis: upper_bound(self.spec, axis, self.setting.sizes) for axis in read}
        return {**self.setting.sizes, **bounds}

    @cached_property
    def scope(self) -> Scope:
        """The plan's names before anything is read: see `scope_after`."""
        return self.scope_after({})

    def scope_after(self, read: Mapping[str, Size]) -> Scope:
        """Return the plan's names; a size that is not read yet stands at its upper bound.

        Args:
            read: Sizes that the data decided, as far as they have been read.

        Raises:
            PlanError: A size has no bound, or a `let` has no value.
        """
        unread = {step.axis for step in self.plan.steps if isinstance(step, ReadSize)} - read.keys()
        values: dict[str, object] = {
            **self.sizes,
            **read,
            **self.setting.attributes,
            **self.chosen,
        }
        for name, expression in self.plan.let.items():
            with speaking_of(f"let {name}"):
                values[name] = evaluate(expression, values)
                if names_in(expression) & unread:
                    unread.add(name)
        return Scope(values, frozenset(unread))

    def launch(self, step: Launch) -> BoundLaunch | None:
        """Return a launch with all that is known before the call; None where it never runs.

        Raises:
            PlanError: An expression of the step has no value, or not one of the wanted kind.
        """
        scope = self.scope
        with speaking_of(f"launch of {step.kernel}"):
            sure = step.when is None or scope.knows(step.when)
            if step.when is not None and sure and not evaluate(step.when, scope.values):
                return None
            arguments = tuple(self.argument(text) for text in step.arguments)
            grid = scope.grid(step) if all(map(scope.knows, step.grid)) else None
            return BoundLaunch(step, self._instance(step, arguments), arguments, grid, sure)

    def argument(self, text: str) -> Argument:
        """Return what an argument's expression stands for.

        Raises:
            PlanError: It is neither memory nor a number nor a list of sizes.
        """
        if text in self.memory:
            return Table(text) if self.memory[text].listed else Address(text)
        with speaking_of(f"argument {text!r}"):
            value = evaluate(text, self.scope.values)
        known = self.scope.knows(text)
        if isinstance(value, tuple) and known:
            return Array(tuple(int(size) for size in value))
        if not isinstance(value, int | float):
            msg = f"argument {text!r} is {value!r}, which can't be passed to a kernel here"
            raise PlanError(msg)
        if not known:
            return Unread(text)
        return Number(int(value) if isinstance(value, bool) else value)

    def _instance(self, step: Launch, arguments: tuple[Argument, ...]) -> Instance:
        typed = [self._typed(argument) for argument in arguments]
        compiled = self.plan.language == "triton"
        return Instance(
            kernel=step.kernel,
            types=tuple(kind for kind, _ in typed),
            divisible=tuple(even for _, even in typed) if compiled else (),
            constants=self._constants(step),
            warps=int(self.scope.fixed(step.warps)) if compiled else 1,
            stages=int(self.scope.fixed(step.stages)) if compiled else 1,
        )

    def _typed(self, argument: Argument) -> tuple[str, bool]:
        """Return an argument's type, and whether it is a multiple of 16."""
        triton = self.plan.language == "triton"
        match argument:
            case Address(name):
                return f"*{TYPE_NAMES[self.memory[name].dtype]}", True
            case Table(name):
                # Triton has no pointer to pointers: a kernel casts what it loads from the table.
                return ("*i64" if triton else f"**{TYPE_NAMES[self.memory[name].dtype]}"), True
            case Array():
                return "*i64", True
            case Number(value):
                even = isinstance(value, int) and value % ALIGNMENT == 0
                return _number_type(value, triton=triton), even
            case Unread(expression):
                return _number_type(self.scope.number(expression), triton=triton), False

    def _constants(self, step: Launch) -> tuple[tuple[str, Constant], ...]:
        """Return compile-time constants by name; in C++ tunables and dtype variables as well."""
        found: dict[str, Constant] = {}
        if self.plan.language == "cpp":
            found = {**self.chosen, **self.setting.dtypes}
        for name, expression in step.constants.items():
            with speaking_of(f"constant {name}"):
                found[name] = self.scope.fixed(expression)
        return tuple(sorted(found.items()))

    def _dtype(self, name: str, dtype: str) -> str:
        bound = self.setting.dtypes.get(dtype, dtype)
        if bound not in TYPE_NAMES:
            msg = f"{name} is of dtype {dtype}, which no input binds"
            raise PlanError(msg)
        return bound


def instances(  # noqa: PLR0913 - the facts of one call; a record of them would be unpacked at once
    spec: OperatorSpec,
    plan: Plan,
    chosen: Choice,
    *,
    sizes: Mapping[str, Size],
    dtypes: Mapping[str, str],
    attributes: Mapping[str, Scalar],
) -> tuple[Instance, ...]:
    """Return the compiled forms that a plan needs at these sizes, each once.

    They are those that `Executor` asks for: attributes not given have the spec's value, and only
    the dtype variables count that an input shows.

    Raises:
        CallError: No such attribute, or a value that does not fit its kind.
        PlanError: The plan can't be run as it is written.
    """
    shown = {tensor.dtype for tensor in spec.inputs.values()} & dtypes.keys()
    setting = Setting(
        sizes, {name: dtypes[name] for name in shown}, attributes_of(spec, attributes)
    )
    binding = Binding(spec, plan, chosen, setting)
    steps = [binding.launch(step) for step in plan.steps if isinstance(step, Launch)]
    return tuple({step.instance.symbol: step.instance for step in steps if step}.values())


def launched(plan: Plan) -> tuple[str, ...]:
    """Return the names of the kernels and library functions of a plan, each once, in order."""
    names: list[str] = []
    for step in plan.steps:
        match step:
            case Launch():
                names.append(step.kernel)
            case LibraryCall():
                names.append(step.op)
            case ReadSize():
                pass
    return tuple(dict.fromkeys(names))


def upper_bound(spec: OperatorSpec, axis: str, sizes: Mapping[str, Size]) -> Size:
    """Return the greatest size that an axis which the data decide can have.

    Raises:
        PlanError: The spec states no bound.
    """
    kind = spec.axes.get(axis)
    if not isinstance(kind, SumAxis) or kind.at_most is None or kind.at_most not in sizes:
        msg = f"a step reads the size of {axis}, but the spec states no bound (at_most) for it"
        raise PlanError(msg)
    bound = sizes[kind.at_most]
    summed = spec.inputs.get(kind.sum_of) or spec.outputs[kind.sum_of]
    if isinstance(bound, tuple) or summed.list_over is None:
        return bound
    members = sizes[summed.list_over]
    return (bound,) * (members if isinstance(members, int) else len(members))


def _number_type(value: float, *, triton: bool) -> str:
    if isinstance(value, float):
        return "fp32" if triton else "fp64"
    return "i32" if triton and -_I32_MAX <= value <= _I32_MAX else "i64"
