"""A launch plan rendered as the Python function that a person would have written."""

from collections.abc import Iterator, Sequence

from operator_registry.spec import OneMoreAxis, OperatorSpec, SumAxis, TensorSpec
from optimizer.candidate import Candidate
from optimizer.plan import Buffer, Launch, LibraryCall, Plan, ReadSize


def host_function(spec: OperatorSpec, candidate: Candidate) -> str:
    """Return readable Python that does what the executor does with the plan.

    It is for reading: `kernel` is the code beside the plan, `cdiv` and its like stand in
    `optimizer.expression`.
    """
    parameters = [*spec.inputs, *(f"{k}={v.value!r}" for k, v in spec.attributes.items())]
    lines = [
        *_sizes(spec),
        *(f"{name} = {value}  # tunable" for name, value in sorted(candidate.chosen.items())),
        *(f"{name} = {text}" for name, text in candidate.plan.let.items()),
        *(_output(spec, name, output) for name, output in spec.outputs.items()),
        *(_buffer(name, buffer) for name, buffer in candidate.plan.buffers.items()),
        *_steps(candidate.plan),
        *_narrowed(spec, candidate.plan),
        f"return {', '.join(spec.outputs)}",
    ]
    body = "\n".join(f"    {line}" for line in lines)
    return f"def {spec.name}({', '.join(parameters)}):\n{body}\n"


def _sizes(spec: OperatorSpec) -> Iterator[str]:
    known: set[str] = set()
    for name, tensor in spec.inputs.items():
        fresh = [axis for axis in tensor.shape if axis not in known]
        if not fresh:
            continue
        known |= set(fresh)
        if tensor.list_over:
            shapes = f"zip(*(member.shape for member in {name}))"
            yield f"{_targets(tensor.shape)} = {shapes}  # one size a member"
        else:
            yield f"{_targets(tensor.shape)} = {name}.shape"
        yield from _one_less(spec, fresh, known)


def _one_less(spec: OperatorSpec, fresh: Sequence[str], known: set[str]) -> Iterator[str]:
    for axis in fresh:
        declared = spec.axes.get(axis)
        if isinstance(declared, OneMoreAxis) and declared.one_more_than not in known:
            known.add(declared.one_more_than)
            yield f"{declared.one_more_than} = {axis} - 1"


def _targets(axes: Sequence[str]) -> str:
    return f"{axes[0]}," if len(axes) == 1 else ", ".join(axes)


def _output(spec: OperatorSpec, name: str, output: TensorSpec) -> str:
    upper = [_upper(spec, axis) for axis in output.shape]
    made = f"torch.empty({_tuple(upper)}, dtype={_dtype(output.dtype)})"
    if output.list_over:
        return f"{name} = [{made} for member in range({output.list_over})]"
    return f"{name} = {made}"


def _upper(spec: OperatorSpec, axis: str) -> str:
    declared = spec.axes.get(axis)
    if isinstance(declared, SumAxis) and declared.at_most:
        return declared.at_most
    if isinstance(declared, OneMoreAxis):
        return f"{_upper(spec, declared.one_more_than)} + 1"
    return axis


def _buffer(name: str, buffer: Buffer) -> str:
    maker = "zeros" if buffer.zeroed else "empty"
    return f"{name} = torch.{maker}({_tuple(buffer.shape)}, dtype={_dtype(buffer.dtype)})"


def _steps(plan: Plan) -> Iterator[str]:
    for step in plan.steps:
        match step:
            case Launch():
                yield from _launch(step, plan.language)
            case LibraryCall():
                name = step.op.replace("::", ".")
                yield f"torch.ops.{name}({', '.join(step.arguments)}, out={_tuple(step.out)})"
            case ReadSize():
                yield _read_size(step)


def _launch(step: Launch, language: str) -> Iterator[str]:
    call = [*step.arguments, *(f"{name}={text}" for name, text in step.constants.items())]
    place = f"kernel.{step.kernel}"
    if language == "triton":
        place += f"[{_tuple(step.grid)}]"
        call += [f"num_warps={step.warps}", f"num_stages={step.stages}"]
    text = f"{place}({', '.join(call)})"
    yield text if step.when is None else f"if {step.when}:"
    if step.when is not None:
        yield f"    {text}"


def _read_size(step: ReadSize) -> str:
    if step.count is None:
        return f"{step.axis} = int({step.buffer}[{step.index}])  # waits for the device"
    last = step.count if step.index == "0" else f"{step.index} + {step.count}"
    first = "" if step.index == "0" else step.index
    return f"{step.axis} = {step.buffer}[{first}:{last}].tolist()  # waits for the device"


def _narrowed(spec: OperatorSpec, plan: Plan) -> Iterator[str]:
    read = {step.axis for step in plan.steps if isinstance(step, ReadSize)}
    for name, output in spec.outputs.items():
        for place, axis in enumerate(output.shape):
            if axis not in read:
                continue
            if output.list_over:
                pairs = f"zip({name}, {axis})"
                yield f"{name} = [m.narrow({place}, 0, size) for m, size in {pairs}]"
            else:
                yield f"{name} = {name}.narrow({place}, 0, {axis})"


def _dtype(name: str) -> str:
    return name if name.isupper() else f"torch.{name}"


def _tuple(parts: Sequence[str]) -> str:
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
