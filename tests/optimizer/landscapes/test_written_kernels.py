"""The hand-written kernels are right at small sizes, and compile ahead of time for an H200."""

import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import torch

from operator_registry.inputs import load_reference
from operator_registry.registry import Operator
from optimizer.binding import instances
from optimizer.candidate import Candidate
from optimizer.landscapes import attention, convolution, product
from optimizer.landscapes.space import Structure
from optimizer.targets import make_target
from optimizer.targets.target import Artefact, Build, KernelTable
from tests.optimizer.propose.trial import Call, built, hardware, interpreted

PRODUCT = product.make_product(256, 256, 256, dtype="float32")
CONVOLUTION = convolution.make_convolution(1, 8, 64, 64, dtype="float32")
ATTENTION = attention.make_attention(2, 64, 64, dtype="float32")
PRODUCT_SIZES = ({"rows": 80, "cols": 112, "depth": 384}, {"rows": 16, "cols": 1040, "depth": 128})
CONVOLUTION_SIZES = (
    {"images": 2, "height": 5, "width": 9, "channels": 64, "features": 48, "side": 3},
    {"images": 1, "height": 1, "width": 17, "channels": 192, "features": 80, "side": 3},
)
ATTENTION_SIZES = (
    {"heads": 2, "length": 144, "width": 64},
    {"heads": 1, "length": 16, "width": 64},
)
TRITON = [
    *((PRODUCT, structure, PRODUCT_SIZES) for structure in product.triton_structures()),
    *((CONVOLUTION, s, CONVOLUTION_SIZES) for s in convolution.triton_structures()),
    *((ATTENTION, structure, ATTENTION_SIZES) for structure in attention.triton_structures()),
]
CPP = [
    *((PRODUCT, structure, PRODUCT_SIZES) for structure in product.cpp_structures()),
    *((CONVOLUTION, structure, CONVOLUTION_SIZES) for structure in convolution.cpp_structures()),
]
ON_DEVICE = [
    (product.make_product(*product.SIZES["square"], dtype="bfloat16"), product.triton_structures()),
    (
        convolution.make_convolution(*convolution.SIZES["wide"], dtype="bfloat16"),
        convolution.triton_structures(),
    ),
    (
        attention.make_attention(*attention.SIZES["wide"], dtype="bfloat16"),
        attention.triton_structures(),
    ),
]
Sizes = Sequence[Mapping[str, int]]


def some(structure: Structure, count: int) -> list[Candidate]:
    choices = list(structure.choices())
    return [structure.candidate(chosen) for chosen in random.Random(1).sample(choices, count)]  # noqa: S311 - no secret


def check(call: Call, candidate: Candidate, kernels: KernelTable) -> None:
    """Compare as the judge does: by the operator's own precision."""
    operator = call.operator
    reference = getattr(load_reference(operator), operator.spec.reference)
    oracle = reference(*(value.double() for value in call.inputs))  # type: ignore[union-attr]
    (output,) = call.run(candidate, kernels)
    off = (output.double() - oracle).abs().max().item()  # type: ignore[union-attr]
    most = operator.spec.precision.k * torch.finfo(torch.float32).eps * oracle.abs().max().item()
    assert off <= most, candidate.chosen


@pytest.mark.drill
@pytest.mark.parametrize(("operator", "structure", "sizes"), TRITON)
def test_a_triton_kernel_is_right_under_the_interpreter(
    operator: Operator, structure: Structure, sizes: Sizes
) -> None:
    for candidate in some(structure, 2):
        for size in sizes:
            check(Call(operator, size, {"T": "float32"}), candidate, interpreted(candidate))


@pytest.mark.drill
def test_the_cpp_kernels_are_right(tmp_path: Path) -> None:
    calls = [
        (candidate, [Call(operator, size, {"T": "float32"}) for size in sizes])
        for operator, structure, sizes in CPP
        for candidate in some(structure, 8)
    ]

    tables = built(calls, tmp_path)

    for (candidate, several), kernels in zip(calls, tables, strict=True):
        for call in several:
            check(call, candidate, kernels)


@pytest.mark.drill
@pytest.mark.parametrize(("operator", "structures"), ON_DEVICE)
def test_a_triton_kernel_compiles_for_the_device_at_its_own_sizes(
    operator: Operator, structures: Sequence[Structure], tmp_path: Path
) -> None:
    workload = operator.spec.workloads[0]
    for structure in structures:
        # The smallest blocks: they fit.
        chosen = {name: min(values) for name, values in structure.tunables.items()}
        candidate = structure.candidate(chosen)
        wanted = instances(
            operator.spec,
            candidate.plan,
            candidate.chosen,
            sizes=workload.sizes,
            dtypes=workload.dtypes,
            attributes={},
        )
        build = Build(code=candidate.code, instances=tuple({i.symbol: i for i in wanted}.values()))

        (artefact,) = make_target(hardware("triton")).build([build], [tmp_path / structure.name])

        assert isinstance(artefact, Artefact), artefact
        assert all(compiled.registers for compiled in artefact.compiled)


@pytest.mark.drill
def test_a_tile_that_does_not_fit_is_refused_when_built(tmp_path: Path) -> None:
    operator, (whole, _) = ON_DEVICE[0]
    chosen = {name: max(values) for name, values in whole.tunables.items()}
    candidate = whole.candidate(chosen)
    wanted = instances(
        operator.spec,
        candidate.plan,
        chosen,
        sizes=operator.spec.workloads[0].sizes,
        dtypes={"T": "bfloat16"},
        attributes={},
    )

    (artefact,) = make_target(hardware("triton")).build(
        [Build(code=candidate.code, instances=tuple(wanted))], [tmp_path]
    )

    assert "bytes of shared memory" in str(artefact)
