"""Small operators of the tests' own, and candidates run on them against eager in float64."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import cast

import numpy as np
import torch
from torch import Tensor

from operator_registry.hardware import HardwareSpec
from operator_registry.inputs import Value, load_reference, make_inputs, resolve_sizes
from operator_registry.registry import CATALOG, Operator, load_registry
from operator_registry.spec import (
    AttributeSpec,
    Axis,
    InputSpec,
    OperatorSpec,
    RangeAxis,
    Scalar,
    TensorSpec,
    Workload,
)
from optimizer.binding import instances
from optimizer.candidate import Candidate
from optimizer.executor import Executor
from optimizer.propose.synthesis.capture import capture
from optimizer.propose.synthesis.drafts import make_drafts
from optimizer.targets import make_target
from optimizer.targets.cpu import host_cpu_arch
from optimizer.targets.interpreter import InterpreterTable
from optimizer.targets.target import Artefact, Build, Instance, KernelTable

EPS = {torch.float32: 2.0**-23, torch.bfloat16: 2.0**-7, torch.float64: 2.0**-52}


@cache
def catalogue() -> Mapping[str, Operator]:
    return load_registry(CATALOG).operators


def hardware(language: str) -> HardwareSpec:
    name = "h200" if language == "triton" else f"cpu-{host_cpu_arch()}"
    return load_registry(CATALOG).hardware[name]


def make_case(  # noqa: PLR0913 - the parts of a spec
    source: str,
    inputs: Mapping[str, InputSpec],
    outputs: Mapping[str, TensorSpec],
    *,
    axes: Mapping[str, Axis] | None = None,
    attributes: Mapping[str, AttributeSpec] | None = None,
    dtypes: Mapping[str, Sequence[str]] | None = None,
) -> Operator:
    """Return an operator whose axes are all sizes that its tensors name."""
    names = {axis for tensor in (*inputs.values(), *outputs.values()) for axis in tensor.shape}
    every: dict[str, Axis] = {axis: RangeAxis(min=0, max=4096) for axis in sorted(names)}
    every |= dict(axes or {})
    spec = OperatorSpec.model_validate(
        {
            "name": "case",
            "axes": every,
            "dtypes": dtypes or {},
            "inputs": inputs,
            "outputs": outputs,
            "attributes": attributes or {},
            "reference": "reference",
            "workloads": (
                {
                    "name": "public",
                    "sizes": {n: 8 for n, a in every.items() if isinstance(a, RangeAxis)},
                    "dtypes": {name: admitted[0] for name, admitted in (dtypes or {}).items()},
                },
            ),
        }
    )
    head = "import torch\nimport torch.nn.functional as F\n\n"
    return Operator(spec=spec, source=head + textwrap.dedent(source))


def floats(*shape: str, dtype: str = "float32") -> InputSpec:
    return InputSpec.model_validate({"shape": shape, "dtype": dtype})


def result(*shape: str, dtype: str = "float32") -> TensorSpec:
    return TensorSpec.model_validate({"shape": shape, "dtype": dtype})


def drafts_of(operator: Operator, language: str, form: str = "") -> tuple[Candidate, ...]:
    graph = capture(operator, form or operator.spec.reference)
    return make_drafts(operator.spec, graph, hardware(language))


@dataclass(frozen=True)
class Call:
    """An operator at certain sizes, dtypes and attributes, with inputs of its own."""

    operator: Operator
    sizes: Mapping[str, int]
    dtypes: Mapping[str, str] = field(default_factory=dict)
    attributes: Mapping[str, Scalar] = field(default_factory=dict)
    seed: int = 1

    @cached_property
    def inputs(self) -> tuple[Value, ...]:
        workload = Workload.model_validate(
            {"name": "case", "sizes": self.sizes, "dtypes": self.dtypes}
        )
        return make_inputs(self.operator, workload, seed=self.seed)

    @property
    def every_attribute(self) -> dict[str, Scalar]:
        stated = {name: a.value for name, a in self.operator.spec.attributes.items()}
        return stated | dict(self.attributes)

    def run(self, candidate: Candidate, kernels: KernelTable) -> tuple[Value, ...]:
        executor = Executor(
            self.operator.spec,
            candidate.plan,
            candidate.chosen,
            kernels=kernels,
            device=torch.device("cpu"),
        )
        # Masked-off elements of a block may divide by 0 or take infinity from infinity.
        with np.errstate(all="ignore"):
            return executor(*self.inputs, **self.every_attribute)

    def check(self, candidate: Candidate, kernels: KernelTable) -> None:
        """Compare a candidate's outputs with the reference's, against the reference in float64."""
        reference = getattr(load_reference(self.operator), self.operator.spec.reference)
        wanted = _several(reference(*self.inputs, **self.every_attribute))
        oracle = _several(reference(*map(_wide, self.inputs), **self.every_attribute))
        outputs = self.run(candidate, kernels)
        assert len(outputs) == len(wanted)
        for got, want, exact in zip(outputs, wanted, oracle, strict=True):
            _check(got, want, exact, candidate.note)

    def instances(self, candidate: Candidate) -> tuple[Instance, ...]:
        return instances(
            self.operator.spec,
            candidate.plan,
            candidate.chosen,
            sizes=resolve_sizes(self.operator.spec, self.inputs),
            dtypes=self.dtypes,
            attributes=self.every_attribute,
        )


def interpreted(candidate: Candidate) -> KernelTable:
    return InterpreterTable(candidate.code)


def built(calls: Sequence[tuple[Candidate, Sequence[Call]]], folder: Path) -> list[KernelTable]:
    """Return a table for each C++ candidate with what its calls need; all are built at once."""
    target = make_target(hardware("cpp"))
    builds = [
        Build(
            code=candidate.code,
            instances=tuple(
                {i.symbol: i for call in several for i in call.instances(candidate)}.values()
            ),
        )
        for candidate, several in calls
    ]
    folders = [folder / str(place) for place in range(len(builds))]
    for artefact in target.build(builds, folders):
        assert isinstance(artefact, Artefact), artefact
    return [target.load(folder) for folder in folders]


def _wide(value: Value) -> Value:
    if isinstance(value, Tensor):
        return value.double() if value.is_floating_point() else value
    return [member.double() if member.is_floating_point() else member for member in value]


def _several(outputs: object) -> tuple[Value, ...]:
    return outputs if isinstance(outputs, tuple) else (cast("Value", outputs),)


def _check(got: Value, want: Value, exact: Value, note: str) -> None:
    if not isinstance(want, Tensor):
        assert len(got) == len(want), note
        for parts in zip(got, want, exact, strict=True):
            _check(*parts, note)
        return
    assert isinstance(got, Tensor)
    assert isinstance(exact, Tensor)
    assert (got.shape, got.dtype) == (want.shape, want.dtype), note
    if not want.is_floating_point():
        assert torch.equal(got, want), note
        return
    assert torch.equal(got.isnan(), want.isnan()), note
    finite = exact.isfinite() & want.isfinite()
    if not finite.any():
        return
    off, reference_off = (
        (each.double() - exact.double())[finite].abs().max().item() for each in (got, want)
    )
    # What cancels exactly in eager may leave its last place here: a product and a sum in one step.
    scale = max(exact[finite].abs().max().item(), 1e-6)
    told = f"{note}: off by {off:.2g}, eager by {reference_off:.2g}, scale {scale:.2g}"
    assert off <= max(2 * reference_off, 4 * EPS[want.dtype] * scale), told
