"""C++ for the host's processor: what is compiled together, told apart and left alone."""

import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch

from optimizer.errors import RunnerError
from optimizer.targets.cpu import CpuTarget, compiler_version, host_cpu_arch
from optimizer.targets.target import Artefact, Build, BuildError, Instance
from tests.optimizer.plans import CPP

FILL = """\
// TUNABLES = {"VALUE": (1, 2)}
#include <cmath>
#define TWICE(x) ((x) * 2)
static inline T pick(T value) { return TWICE(value) / 2; }
extern "C" void KERNEL(fill)(T* x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) x[i] = pick(VALUE) + OFFSET;
}
"""
TARGET = CpuTarget(host_cpu_arch())


def make_instance(value: int, kernel: str = "fill", **constants: float | str) -> Instance:
    given = {"VALUE": value, "OFFSET": 0, "T": "float32", **constants}
    return Instance(
        kernel=kernel, types=("*fp32", "i64"), constants=tuple(sorted(given.items())), warps=1
    )


def build_all(codes: Sequence[str], folder: Path) -> Sequence[Artefact | BuildError]:
    builds = [Build(code=code, instances=(make_instance(i),)) for i, code in enumerate(codes)]
    return TARGET.build(builds, [folder / str(i) for i in range(len(codes))])


def fill(folder: Path, instance: Instance) -> float:
    x = torch.zeros(3)
    TARGET.load(folder).launcher(instance)((1,), (x.data_ptr(), 3))
    assert torch.equal(x, x[0].expand(3))
    return x[0].item()


def test_each_candidate_of_a_batch_has_its_own_code_and_constants(tmp_path: Path) -> None:
    codes = [FILL, FILL.replace("/ 2", "* 2"), f"// one more\n{FILL}"]

    built = build_all(codes, tmp_path)

    assert all(isinstance(artefact, Artefact) for artefact in built)
    assert [fill(tmp_path / str(i), make_instance(i)) for i in range(3)] == [0.0, 4.0, 2.0]


def test_equal_candidates_can_be_built_together(tmp_path: Path) -> None:
    twice = Build(code=FILL, instances=(make_instance(5),))

    TARGET.build([twice, twice], [tmp_path / "0", tmp_path / "1"])

    assert [fill(tmp_path / name, make_instance(5)) for name in "01"] == [5.0, 5.0]


def test_one_build_may_hold_many_forms_of_a_kernel(tmp_path: Path) -> None:
    forms = [make_instance(v, OFFSET=o) for v in (1, 2) for o in (0.5, 2**40, True)]

    TARGET.build([Build(code=FILL, instances=tuple(forms))], [tmp_path])

    found = [fill(tmp_path, form) for form in forms]
    assert found == [1.5, 2.0**40, 2.0, 2.5, 2.0**40, 3.0]


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [("float64", "*fp64"), ("float16", "*fp16"), ("bfloat16", "*bf16"), ("int64", "*i64"),
     ("int32", "*i32"), ("int16", "*i16"), ("int8", "*i8"), ("uint8", "*u8"), ("bool", "*i1")],
)  # fmt: skip
def test_each_dtype_is_a_type_in_cpp(dtype: str, kind: str, tmp_path: Path) -> None:
    form = make_instance(1, T=dtype).model_copy(update={"types": (kind, "i64")})
    x = torch.zeros(3, dtype=getattr(torch, dtype))

    TARGET.build([Build(code=FILL, instances=(form,))], [tmp_path])
    TARGET.load(tmp_path).launcher(form)((1,), (x.data_ptr(), 3))

    assert x.tolist() == [1, 1, 1]


def test_bfloat16_is_rounded_as_torch_rounds(tmp_path: Path) -> None:
    code = """\
extern "C" void KERNEL(fill)(const float* x, bf16* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] = x[i];
}
"""
    special = torch.tensor([0.0, -0.0, float("inf"), -float("inf"), float("nan"), 1e-40, 3.4e38])
    x = torch.cat([special, torch.randint(-(2**31), 2**31, (4096,)).int().view(torch.float32)])
    y = torch.zeros(len(x), dtype=torch.bfloat16)
    form = make_instance(1).model_copy(update={"types": ("*fp32", "*bf16", "i64")})

    TARGET.build([Build(code=code, instances=(form,))], [tmp_path])
    TARGET.load(tmp_path).launcher(form)((1,), (x.data_ptr(), y.data_ptr(), len(x)))

    torch.testing.assert_close(y, x.bfloat16(), rtol=0, atol=0, equal_nan=True)


BAD = {
    "no C++": "this is no C++",
    "unbalanced brace": FILL + "}",
    "brace never closed": FILL + "static void f() {",
    "unknown type": FILL.replace("T value", "Unknown value"),
    "no such header": FILL.replace("<cmath>", "<no_such_header>"),
    "another name": FILL.replace("KERNEL(fill)", "KERNEL(other)"),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_a_candidate_that_does_not_compile_harms_no_other(bad: str, tmp_path: Path) -> None:
    built = build_all([FILL, bad, f"{FILL}// third"], tmp_path)

    assert [type(result) for result in built] == [Artefact, BuildError, Artefact]
    assert [fill(tmp_path / str(i), make_instance(i)) for i in (0, 2)] == [0.0, 2.0]


def test_a_compilers_message_tells_the_line_of_the_candidates_code(tmp_path: Path) -> None:
    _, error = build_all([FILL, FILL.replace("VALUE) +", "VALUES) +")], tmp_path)

    assert re.search(r"In function .void fill\(float\*, int64_t\)", str(error))
    assert re.search(r"kernel.cpp:6:\d+: error: .VALUES", str(error))


SPILLS_OVER = {
    "pragma": f'#pragma GCC optimize ("O0")\n{FILL}',
    "macro": f"#define count 1\n{FILL}",
    "initialiser": FILL + "struct S { S(); }; S::S() { __builtin_trap(); } static S s;",
}


@pytest.mark.parametrize("code", SPILLS_OVER.values(), ids=SPILLS_OVER)
def test_what_one_candidate_does_to_the_compiler_does_not_reach_the_next(
    code: str, tmp_path: Path
) -> None:
    probe = FILL.replace("OFFSET;", "OFFSET\n#ifndef __OPTIMIZE__\n + 100\n#endif\n;")

    build_all([code, f"// second\n{code}", probe, f"// fourth\n{probe}"], tmp_path)

    assert [fill(tmp_path / str(i), make_instance(i)) for i in (2, 3)] == [2.0, 3.0]


def test_torch_computes_with_denormals_after_a_candidate_is_loaded(tmp_path: Path) -> None:
    build_all([FILL], tmp_path)

    fill(tmp_path / "0", make_instance(0))

    assert (torch.tensor([1e-40]) * 1.0).item() > 0


def test_kernels_share_torchs_threads(tmp_path: Path) -> None:
    code = """\
extern "C" void KERNEL(fill)(float* x, int64_t count) {
#pragma omp parallel
#pragma omp single
  for (int64_t i = 0; i < count; ++i) x[i] = omp_get_num_threads();
}
"""
    build_all([code], tmp_path)
    child = f"""
import torch
from pathlib import Path
from tests.optimizer.targets.test_cpu import fill, make_instance
for threads in (1, 3):
    torch.set_num_threads(threads)
    assert fill(Path({str(tmp_path / "0")!r}), make_instance(0)) == threads
"""

    done = subprocess.run([sys.executable, "-c", child], check=False, capture_output=True)

    assert done.returncode == 0, done.stderr


def test_code_for_a_newer_processor_is_not_loaded(tmp_path: Path) -> None:
    build_all([FILL], tmp_path)
    file = tmp_path / "0" / "artefact.json"
    file.write_text(file.read_text().replace(TARGET.arch, "x86-64-v9"))

    with pytest.raises(OSError, match="built for x86-64-v9; this processor is"):
        TARGET.load(tmp_path / "0")


def test_a_machine_without_a_compiler_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    compiler_version.cache_clear()

    with pytest.raises(RunnerError, match=r"apt-get install g\+\+"):
        build_all([FILL], tmp_path)

    compiler_version.cache_clear()


def test_ten_variants_are_built_together(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    types = ("*fp32", "*fp32", "*fp32", "i64", "i64", "fp64")
    form = Instance(kernel="rms", types=types, constants=(("T", "float32"),), warps=1)
    builds = [Build(code=f"// {i}\n{CPP}", instances=(form,)) for i in range(10)]

    began = time.perf_counter()
    built = TARGET.build(builds, [tmp_path / str(i) for i in range(10)])
    record_property("ten_variants_s", round(time.perf_counter() - began, 3))

    assert all(isinstance(artefact, Artefact) for artefact in built)
