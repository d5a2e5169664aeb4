"""Triton for NVIDIA devices, compiled here without one."""

import re
from pathlib import Path

import pytest
import triton

from operator_registry.spec import Scalar
from optimizer.binding import instances
from optimizer.expression import Size
from optimizer.targets.cubin import CubinFacts, Parameters, entry_parameter_sizes
from optimizer.targets.cuda import CudaTarget
from optimizer.targets.target import Artefact, Build, BuildError, Compiled, Instance
from tests.optimizer.plans import ADD, HEADS, RMS, TRITON, Sample

TARGET = CudaTarget("sm_90", shared_limit_bytes=232448)
CHOSEN = {"BLOCK": 128, "WARPS": 8}
ADD_FORM = Instance(
    kernel="add",
    types=("*fp32", "*fp32", "*fp32", "i32"),
    divisible=(False,) * 4,
    constants=(("BLOCK", 128),),
)


def make_forms(
    sample: Sample, *, sizes: dict[str, Size], dtype: str = "float32", **attributes: Scalar
) -> tuple[Instance, ...]:
    return instances(
        sample.spec, sample.triton, CHOSEN,
        sizes=sizes, dtypes={"T": dtype}, attributes=attributes,
    )  # fmt: skip


def build_one(code: str, form: Instance, folder: Path) -> Compiled:
    (built,) = TARGET.build([Build(code=code, instances=(form,))], [folder])
    assert isinstance(built, Artefact), built
    return built.compiled[0]


def refuse(code: str, form: Instance, folder: Path) -> str:
    (built,) = TARGET.build([Build(code=code, instances=(form,))], [folder])
    assert isinstance(built, BuildError)
    return str(built)


CASES = {
    "pointers and i32": make_forms(ADD, sizes={"rows": 1000}),
    "i64": make_forms(ADD, sizes={"rows": 2**31}),
    "fp32 and bfloat16": make_forms(
        RMS, sizes={"rows": 3, "cols": 1000}, dtype="bfloat16", eps=1e-6
    ),
    "tables": make_forms(HEADS, sizes={"features": 2, "rows": 3, "elements": (1, 2)}, most=2),
}


@pytest.mark.parametrize("forms", CASES.values(), ids=CASES)
def test_ptx_declares_the_parameters_that_a_launch_passes(
    forms: tuple[Instance, ...], tmp_path: Path
) -> None:
    (form,) = forms

    compiled = build_one(TRITON, form, tmp_path)

    ptx = (tmp_path / compiled.file).with_suffix(".ptx").read_text()
    assert entry_parameter_sizes(ptx) == Parameters(form.types).sizes


def test_a_syntax_tree_that_is_miscounted_is_no_fault_of_the_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (form,) = make_forms(ADD, sizes={"rows": 1000})
    compile_once = triton.compile
    miscounts = [SystemError("AST constructor recursion depth mismatch")] * 3

    def miscount(*arguments: object) -> object:
        if miscounts:
            raise miscounts.pop()
        return compile_once(*arguments)

    monkeypatch.setattr(triton, "compile", miscount)

    build_one(TRITON, form, tmp_path)

    assert not miscounts


def test_the_artefact_tells_what_the_kernel_takes_of_the_device(tmp_path: Path) -> None:
    (form,) = make_forms(RMS, sizes={"rows": 3, "cols": 1000}, eps=1e-6)

    compiled = build_one(TRITON, form, tmp_path)

    assert compiled.registers is not None
    assert 16 <= compiled.registers <= 255
    assert (compiled.spill_bytes, compiled.warps) == (0, 8)
    assert compiled.shared_bytes is not None
    assert 0 < compiled.shared_bytes <= 48 * 1024


def test_a_launch_finds_its_facts_beside_the_cubin(tmp_path: Path) -> None:
    (form,) = make_forms(RMS, sizes={"rows": 3, "cols": 1000}, eps=1e-6)

    compiled = build_one(TRITON, form, tmp_path)

    cubin = tmp_path / compiled.file
    facts = CubinFacts.from_json(cubin.with_suffix(".json").read_text())
    assert cubin.read_bytes().startswith(b"\x7fELF")
    assert facts.name.encode() in cubin.read_bytes()
    assert (facts.warps, facts.shared_bytes, facts.scratch_bytes) == (8, compiled.shared_bytes, 0)


def test_what_is_divisible_is_loaded_in_wide_pieces(tmp_path: Path) -> None:
    even = ADD_FORM.model_copy(update={"divisible": (True,) * 4, "constants": (("BLOCK", 1024),)})
    odd = even.model_copy(update={"divisible": (False,) * 4})

    def has_wide_loads(form: Instance) -> bool:
        compiled = build_one(TRITON, form, tmp_path / form.symbol)
        ptx = (tmp_path / form.symbol / compiled.file).with_suffix(".ptx").read_text()
        return re.search(r"ld\.global\.v4", ptx) is not None

    assert (has_wide_loads(even), has_wide_loads(odd)) == (True, False)


def test_spills_are_told_in_bytes(tmp_path: Path) -> None:
    (form,) = make_forms(RMS, sizes={"rows": 3, "cols": 16384}, eps=1e-6)

    compiled = build_one(TRITON, form.model_copy(update={"warps": 1}), tmp_path)

    assert compiled.registers == 255
    assert compiled.spill_bytes is not None
    assert compiled.spill_bytes > 0


BAD = {
    "no Python": ("def", "SyntaxError"),
    "raises when imported": ("import no_such_module", "ModuleNotFoundError: No module named"),
    "no such kernel": ("import triton", "no @triton.jit function add"),
    "a plain function": ("def add(x): pass", "no @triton.jit function add"),
    "unknown function": (TRITON.replace("x + y", "tl.plus(x, y)"), "no attribute 'plus'"),
    "another constant": (TRITON.replace("BLOCK", "TILE"), "takes the constants TILE; the plan"),
    "another argument": (TRITON.replace("(x_ptr, y_ptr, z", "(x_ptr, z"), "takes (x_ptr, z_ptr"),
}


@pytest.mark.parametrize(("code", "message"), BAD.values(), ids=BAD)
def test_code_that_does_not_compile_gets_a_message(code: str, message: str, tmp_path: Path) -> None:
    assert message in refuse(code, ADD_FORM, tmp_path)


def test_code_that_does_not_compile_harms_no_other(tmp_path: Path) -> None:
    builds = [Build(code=code, instances=(ADD_FORM,)) for code in (TRITON, "def", TRITON)]

    built = TARGET.build(builds, [tmp_path / str(i) for i in range(3)])

    assert [type(result) for result in built] == [Artefact, BuildError, Artefact]


def test_more_shared_memory_than_a_block_can_have_is_refused_when_built(tmp_path: Path) -> None:
    (form,) = make_forms(RMS, sizes={"rows": 3, "cols": 1000}, eps=1e-6)
    small = CudaTarget("sm_90", shared_limit_bytes=8)

    (built,) = small.build([Build(code=TRITON, instances=(form,))], [tmp_path])

    assert re.search(r"rms wants \d+ bytes of shared memory, over 8", str(built))
