"""Each published kernel: its files belong together, and it agrees with its reference."""

import ast
import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
import torch
from torch import Tensor

from knowledge.evidence import Better
from knowledge.verdict import judge
from operator_registry.inputs import load_reference, make_inputs
from operator_registry.spec import Workload
from operator_registry.workloads import draw_workloads
from optimizer.audit import find_flaw
from optimizer.evaluate.checking import Agreement, check, make_standard
from optimizer.executor import Executor
from optimizer.kernel import Kernel, Variant, read_kernel
from optimizer.shapes import attributes_of
from optimizer.signing import read_signer
from optimizer.targets import BuildingTable, find_obstacle, make_target
from optimizer.targets.interpreter import InterpreterTable

ROOT = Path(__file__).parents[2]
FOLDERS = sorted(path.parent for path in (ROOT / "kernels").glob("*/*/dispatch.json"))
VARIANTS = [(folder, name) for folder in FOLDERS for name in read_kernel(folder).variants]
NAMES = [f"{folder.parent.name}-{folder.name}-{name}" for folder, name in VARIANTS]
ALONE = {"triton", "torch", "math"}
"""What a published Triton file may import."""
Value = Tensor | list[Tensor]

read = cache(read_kernel)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda f: f"{f.parent.name}-{f.name}")
def test_it_lies_where_its_manifest_says(folder: Path) -> None:
    kernel = read(folder)

    assert folder.parts[-2:] == (kernel.operator.name, kernel.hardware.name)


@pytest.mark.parametrize(("folder", "name"), VARIANTS, ids=NAMES)
def test_its_evidence_adds_up_and_proves_a_gain(folder: Path, name: str) -> None:
    evidence = read(folder).variants[name].evidence

    assert find_flaw(evidence) is None
    assert isinstance(judge(evidence), Better)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda f: f"{f.parent.name}-{f.name}")
def test_its_signature_holds_where_it_has_one(folder: Path) -> None:
    assert read_signer(folder) in (folder / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("folder", "name"), VARIANTS, ids=NAMES)
def test_it_stands_alone(folder: Path, name: str) -> None:
    candidate = read(folder).variants[name].candidate

    if candidate.plan.language == "triton":
        tree = ast.parse(candidate.code)
        imported = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
        imported |= {n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
        assert {module.split(".")[0] for module in imported} <= ALONE
    else:
        assert '#include "' not in candidate.code


@pytest.mark.parametrize(("folder", "name"), VARIANTS, ids=NAMES)
def test_it_agrees_with_its_reference_also_on_odd_sizes(
    folder: Path, name: str, tmp_path: Path
) -> None:
    kernel = read(folder)
    run, device, elements = make_executor(kernel, kernel.variants[name], tmp_path)

    for workload in draw_workloads(
        kernel.operator.spec, kernel.hardware.target, seed=1, count=8, max_elements=elements
    ):
        assert isinstance(compare(kernel, run, workload, device=device), Agreement), workload


def make_executor(kernel: Kernel, variant: Variant, folder: Path) -> tuple[Executor, str, int]:
    """Return the variant's executor, its device, and how many elements an input may have."""
    candidate, device, elements = variant.candidate, kernel.hardware.target, 1 << 18
    interpreted = find_obstacle(kernel.hardware) is not None
    if interpreted and candidate.plan.language != "triton":
        pytest.skip(f"{kernel.hardware.name} is not here")
    if interpreted:
        device, elements = "cpu", 1 << 10
    executor = Executor(
        kernel.operator.spec,
        candidate.plan,
        candidate.chosen,
        kernels=InterpreterTable(candidate.code)
        if interpreted
        else BuildingTable(make_target(kernel.hardware), candidate.code, folder),
        device=device,
        allocate=scrubbed,
    )
    return executor, device, elements


def scrubbed(size: Sequence[int], /, *, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return memory that a kernel must write before anyone may read it."""
    count = math.prod(size) * dtype.itemsize
    ones = torch.full((count,), 0xFF, dtype=torch.uint8, device=device)
    return ones.view(dtype).view(tuple(size))


@torch.no_grad()
def compare(kernel: Kernel, run: Executor, workload: Workload, *, device: str) -> object:
    operator, spec = kernel.operator, kernel.operator.spec
    inputs = make_inputs(operator, workload, seed=2, device=device)
    attributes = attributes_of(spec, workload.attributes)
    reference = getattr(load_reference(operator), spec.reference)
    wanted = as_outputs(reference(*inputs, **attributes))
    oracle = as_outputs(reference(*map(widened, inputs), **attributes))
    for mine, theirs, exact in zip(run(*inputs, **attributes), wanted, oracle, strict=True):
        standard = make_standard(members(theirs), members(widened(exact)), spec.precision)
        found = check(members(mine), standard)
        if not isinstance(found, Agreement):
            return found
    return Agreement()


def as_outputs(returned: object) -> tuple[Value, ...]:
    return returned if isinstance(returned, tuple) else (returned,)


def members(value: Value) -> list[Tensor]:
    return [value] if isinstance(value, Tensor) else list(value)


def widened(value: Value) -> Value:
    if isinstance(value, list):
        return [member.double() if member.is_floating_point() else member for member in value]
    return value.double() if value.is_floating_point() else value
