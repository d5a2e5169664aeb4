"""The oracle: draws inputs and computes what is expected of them, in a process of its own.

It runs the operator's own code, so it is a child of the judge; no candidate is ever loaded there.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from operator_registry.inputs import load_reference, make_inputs, resolve_sizes
from operator_registry.spec import OperatorSpec, Scalar, TensorSpec
from optimizer.evaluate import protocol as p
from optimizer.evaluate.dispatch import Widened
from optimizer.evaluate.memory import Value, write_file, write_value
from optimizer.evaluate.peers import outputs_of
from optimizer.shapes import attributes_of


@dataclass
class Oracle:
    """Answers `MakeCase` and `Hello` messages."""

    def __call__(self, text: str) -> str:
        """Return the case and what is expected of it."""
        if '"kind"' in text[:16]:
            p.Hello.from_json(text)
            return p.Done().to_json()
        return self.make(p.MakeCase.from_json(text)).to_json()

    def make(self, asked: p.MakeCase) -> p.MadeCase:
        """Draw each set of inputs, and store it with the reference's and the oracle's outputs."""
        spec = asked.operator.spec
        attributes = attributes_of(spec, asked.workload.attributes)
        drawn = [_draw(asked, number, attributes) for number in range(len(asked.seeds))]
        return p.MadeCase(
            case=p.Case(
                key=asked.key, attributes=attributes, sets=tuple(one.inputs for one in drawn)
            ),
            sizes=tuple(one.sizes for one in drawn),
            output_sizes=tuple(one.output_sizes for one in drawn),
            expected=tuple(one.expected for one in drawn),
        )


@dataclass(frozen=True)
class _Drawn:
    inputs: tuple[p.Stored, ...]
    sizes: dict[str, p.Size]
    output_sizes: dict[str, p.Size]
    expected: tuple[p.ExpectedFiles, ...]


@torch.no_grad()
def _draw(asked: p.MakeCase, number: int, attributes: Mapping[str, Scalar]) -> _Drawn:
    operator = asked.operator
    module = load_reference(operator)
    inputs = make_inputs(
        operator,
        asked.workload,
        seed=asked.seeds[number],
        scale=asked.scales[number],
        distribution=asked.distribution,
        device=asked.device,
        module=module,
    )
    stored = tuple(
        write_value(Path(asked.inputs_folder), f"{asked.key}-{number}-{name}", value)
        for name, value in zip(operator.spec.inputs, inputs, strict=True)
    )
    reference = getattr(module, operator.spec.reference)
    # A reference may write into its inputs; each call gets its own.
    outputs = outputs_of(reference(*_copied(inputs), **attributes))
    with Widened():
        wide = outputs_of(reference(*_copied(inputs, widen=True), **attributes))
    sizes = resolve_sizes(operator.spec, inputs, attributes)
    return _Drawn(
        inputs=stored,
        sizes=sizes,
        output_sizes=dict(_output_sizes(operator.spec, outputs, sizes)),
        expected=tuple(
            _store(Path(asked.expected_folder), f"{asked.key}-{number}-{i}", mine, oracle)
            for i, (mine, oracle) in enumerate(zip(outputs, wide, strict=True))
        ),
    )


def _copied(inputs: Sequence[Value], *, widen: bool = False) -> list[Value]:
    def copy(tensor: Tensor) -> Tensor:
        return tensor.double() if widen and tensor.is_floating_point() else tensor.clone()

    return [copy(x) if isinstance(x, Tensor) else [copy(m) for m in x] for x in inputs]


def _output_sizes(
    spec: OperatorSpec, outputs: Sequence[Value], known: Mapping[str, p.Size]
) -> Iterator[tuple[str, p.Size]]:
    """Yield the sizes of axes that only outputs have."""
    for tensor, value in zip(spec.outputs.values(), outputs, strict=True):
        for place, axis in enumerate(tensor.shape):
            if axis not in known:
                yield axis, _along(tensor, value, place)


def _along(tensor: TensorSpec, value: Value, place: int) -> p.Size:
    if isinstance(value, Tensor):
        return value.shape[place]
    return tuple(member.shape[place] for member in value)


def _store(folder: Path, name: str, output: Value, oracle: Value) -> p.ExpectedFiles:
    mine = [output] if isinstance(output, Tensor) else output
    wide = [oracle] if isinstance(oracle, Tensor) else oracle
    floating = bool(mine) and all(m.is_floating_point() for m in mine)
    return p.ExpectedFiles(
        reference=tuple(write_file(folder / f"{name}-r{i}", m) for i, m in enumerate(mine)),
        oracle=tuple(write_file(folder / f"{name}-o{i}", m.double()) for i, m in enumerate(wide))
        if floating
        else (),
    )
