"""Faulty sources, each with one fault, and how they are really built: where the logs come from.

The logs of `LOGS` were written by ``python -m tests.knowledge.faulty``; a drill builds all of them
again and demands that they are still diagnosed alike.
"""

import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from knowledge.outcome import Failed
from optimizer.targets.cpu import CpuTarget
from optimizer.targets.cuda import CudaTarget
from optimizer.targets.target import Artefact, Build, BuildError, Constant, Instance

LOGS = Path(__file__).parent / "logs"
SHARED_BYTES = 232448
_ANYWHERE = re.compile(r"/[\w./-]*(?=/site-packages)|/[\w./-]*/(?=unit\.cpp)")
"""What stands before a file's place on this machine only."""


@dataclass(frozen=True)
class Faulty:
    """A source that one of the compilers refuses."""

    name: str
    language: str
    code: str
    types: tuple[str, ...]
    constants: tuple[tuple[str, Constant], ...] = ()
    warps: int = 4
    stages: int = 1
    kernel: str = "kernel"

    @property
    def log(self) -> str:
        """Return the recorded log."""
        return (LOGS / f"{self.name}.txt").read_text(encoding="utf-8")

    def failure(self) -> Failed:
        """Return the outcome that the judge makes of the recorded log."""
        return Failed(stage="build", log=self.log)

    def build(self) -> str:
        """Return what the compiler says now; empty where it takes the code."""
        instance = Instance(
            kernel=self.kernel,
            types=self.types,
            divisible=tuple(False for _ in self.types) if self.language == "triton" else (),
            constants=self.constants,
            warps=self.warps,
            stages=self.stages,
        )
        build = Build(code=self.code, instances=(instance,))
        target: CpuTarget | CudaTarget
        if self.language == "triton":
            target = CudaTarget("sm_90", shared_limit_bytes=SHARED_BYTES)
        else:
            target = CpuTarget("x86-64-v3")
        with tempfile.TemporaryDirectory() as folder:
            (built,) = target.build([build], [Path(folder)])
        match built:
            case BuildError():
                return _ANYWHERE.sub("", str(built))
            case Artefact():
                return ""


_HEAD = "import triton\nimport triton.language as tl\n\n\n@triton.jit\n"
_ROW = ("*fp32", "*fp32", "i32")
_BLOCK = (("BLOCK", 1024),)


def _triton(name: str, body: str, **how: object) -> Faulty:
    given = {"types": _ROW, "constants": _BLOCK, **how}
    head = given.pop("head", "def kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):\n")
    lines = "".join(f"    {line}\n" for line in body.strip("\n").splitlines())
    return Faulty(name, "triton", f"{_HEAD}{head}{lines}", **given)  # type: ignore[arg-type]


def _cpp(name: str, code: str, **how: object) -> Faulty:
    given = {"types": ("*fp32", "*fp32", "i64"), **how}
    return Faulty(name, "cpp", code, **given)  # type: ignore[arg-type]


_SIGNATURE = 'extern "C" void KERNEL(kernel)(const float* x, float* y, int64_t cols)'
_DOT = "def kernel(a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):\n"
_DOT_BODY = """
m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
a = tl.load(a_ptr + m[:, None] * K + k[None, :])
b = tl.load(b_ptr + k[:, None] * N + n[None, :])
tl.store(c_ptr + m[:, None] * N + n[None, :], tl.dot(a, b))
"""
_LOOPED_DOT = """
m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
c = tl.zeros([M, N], tl.float32)
for start in range(0, size, K):
    a = tl.load(a_ptr + m[:, None] * size + (start + k)[None, :])
    b = tl.load(b_ptr + (start + k)[:, None] * N + n[None, :])
    c = tl.dot(a, b, c)
tl.store(c_ptr + m[:, None] * N + n[None, :], c)
"""

FAULTY: tuple[Faulty, ...] = (
    _triton("arange_not_a_power_of_two", "tl.store(y_ptr + tl.arange(0, BLOCK), 1.0)",
            constants=(("BLOCK", 1000),)),
    _triton("arange_of_a_runtime_size", "tl.store(y_ptr + tl.arange(0, cols), 1.0)"),
    _triton("block_shapes_differ",
            "a = tl.load(x_ptr + tl.arange(0, BLOCK))\n"
            "b = tl.load(x_ptr + tl.arange(0, 2 * BLOCK))\n"
            "tl.store(y_ptr + tl.arange(0, BLOCK), a + b)"),
    _triton("name_not_defined",
            "col = tl.arange(0, BLOCK)\ntl.store(y_ptr + col, tl.load(x_ptr + column))"),
    _triton("no_such_function",
            "col = tl.arange(0, BLOCK)\n"
            "tl.store(y_ptr + col, tl.softplus(tl.load(x_ptr + col)))"),
    _triton("global_not_constexpr", "tl.store(y_ptr + tl.arange(0, BLOCK), SCALE)",
            head="def kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):\n"),
    _triton("loop_changes_the_type",
            "total = 0\n"
            "for start in range(0, cols, BLOCK):\n"
            "    total += tl.sum(tl.load(x_ptr + start + tl.arange(0, BLOCK)), axis=0)\n"
            "tl.store(y_ptr, total)"),
    _triton("branches_differ_in_type",
            "col = tl.arange(0, BLOCK)\n"
            "if cols > 10:\n    value = tl.load(x_ptr + col)\nelse:\n    value = 0\n"
            "tl.store(y_ptr + col, value)"),
    _triton("block_too_large", "tl.store(y_ptr + tl.arange(0, BLOCK), 1.0)",
            constants=(("BLOCK", 2097152),)),
    _triton("dot_too_small", _DOT_BODY, head=_DOT, types=("*fp16", "*fp16", "*fp32"),
            constants=(("M", 64), ("N", 64), ("K", 8))),
    _triton("dot_of_unlike_types", _DOT_BODY, head=_DOT, types=("*fp16", "*fp32", "*fp32"),
            constants=(("M", 64), ("N", 64), ("K", 32))),
    _triton("dot_inner_sizes_differ",
            "a = tl.zeros([32, 64], tl.float16)\nb = tl.zeros([32, 64], tl.float16)\n"
            "tl.store(y_ptr + tl.arange(0, 32)[:, None], tl.dot(a, b))"),
    _triton("too_much_shared_memory", _LOOPED_DOT, types=("*fp16", "*fp16", "*fp32", "i32"),
            head="def kernel(a_ptr, b_ptr, c_ptr, size, M: tl.constexpr, N: tl.constexpr, "
                 "K: tl.constexpr):\n",
            constants=(("M", 256), ("N", 256), ("K", 128)), warps=8, stages=4),
    _triton("constants_missing",
            "tl.store(y_ptr + tl.arange(0, BLOCK), 1.0)", constants=()),
    _triton("arguments_missing", "tl.store(y_ptr + tl.arange(0, BLOCK), 1.0)", types=("*fp32",)),
    _triton("kernel_missing", "tl.store(y_ptr + tl.arange(0, BLOCK), 1.0)", kernel="softmax"),
    _triton("break_in_a_loop",
            "for start in range(0, cols, BLOCK):\n"
            "    if start > 10:\n        break\n"
            "    tl.store(y_ptr + start + tl.arange(0, BLOCK), 1.0)"),
    _triton("tensor_in_a_condition",
            "x = tl.load(x_ptr + tl.arange(0, BLOCK))\n"
            "if x > 0:\n    tl.store(y_ptr + tl.arange(0, BLOCK), x)"),
    _triton("mask_shape_differs",
            "row = tl.arange(0, 16)[:, None]\ncol = tl.arange(0, BLOCK)[None, :]\n"
            "tl.store(y_ptr + col, tl.load(x_ptr + col, mask=row < cols))"),
    _triton("other_without_mask",
            "col = tl.arange(0, BLOCK)\n"
            "tl.store(y_ptr + col, tl.load(x_ptr + col, other=0.0))"),
    _triton("pointer_is_a_number",
            "col = tl.arange(0, BLOCK)\ntl.store(y_ptr + col, tl.load(cols + col))"),
    _triton("subscript_of_a_tensor",
            "x = tl.load(x_ptr + tl.arange(0, BLOCK))\ntl.store(y_ptr, x[0])"),
    _triton("bitwise_on_floats",
            "col = tl.arange(0, BLOCK)\nx = tl.load(x_ptr + col)\ntl.store(y_ptr + col, x & x)"),
    _triton("list_in_a_kernel",
            "values = [tl.load(x_ptr + i) for i in range(4)]\ntl.store(y_ptr, values[0])"),
    Faulty("import_fails", "triton", "import triton\nfrom triton import languages as tl\n", _ROW),
    _cpp("undeclared_name",
         f"{_SIGNATURE} {{\n  for (int64_t i = 0; i < rows; ++i) y[i] = x[i];\n}}"),
    _cpp("missing_semicolon",
         f"{_SIGNATURE} {{\n  const int64_t half = cols / 2\n  y[half] = x[half];\n}}"),
    _cpp("no_export", "void kernel(const float* x, float* y, int64_t cols) {\n  y[0] = x[0];\n}"),
    _cpp("mismatched_pointer",
         f"{_SIGNATURE} {{\n  double* out = y;\n  out[0] = x[0];\n}}"),
    _cpp("bad_reduction_clause",
         f"{_SIGNATURE} {{\n  float best = x[0];\n"
         "  #pragma omp simd reduction(largest:best)\n"
         "  for (int64_t i = 0; i < cols; ++i) best = x[i] > best ? x[i] : best;\n"
         "  y[0] = best;\n}"),
    _cpp("omp_loop_not_canonical",
         f"{_SIGNATURE} {{\n  #pragma omp parallel for\n"
         "  for (int64_t i = 0; x[i] > 0; ++i) y[i] = x[i];\n}"),
    _cpp("break_in_omp_loop",
         f"{_SIGNATURE} {{\n  #pragma omp parallel for\n"
         "  for (int64_t i = 0; i < cols; ++i) {\n    if (x[i] < 0) break;\n"
         "    y[i] = x[i];\n  }\n}"),
    _cpp("wrong_target_intrinsic",
         "#include <immintrin.h>\n"
         f"{_SIGNATURE} {{\n  _mm512_storeu_ps(y, _mm512_loadu_ps(x));\n}}"),
    _cpp("missing_include",
         f"{_SIGNATURE} {{\n  std::vector<float> row(x, x + cols);\n  y[0] = row[0];\n}}"),
    _cpp("overloaded_c_linkage",
         f"{_SIGNATURE} {{\n  y[0] = x[0];\n}}\n"
         'extern "C" int KERNEL(kernel)(const float* x, float* y, int64_t cols) { return 0; }'),
    _cpp("template_not_deduced",
         "template <class V>\nstatic inline V least(V a, V b) { return a < b ? a : b; }\n"
         f"{_SIGNATURE} {{\n  y[least(cols, 4)] = x[0];\n}}"),
    _cpp("assignment_to_const", f"{_SIGNATURE} {{\n  x[0] = y[0];\n}}"),
    _cpp("tunable_has_no_value",
         '// TUNABLES = {"BLOCK": (512, 1024)}\n'
         f"{_SIGNATURE} {{\n  for (int64_t i = 0; i < cols; i += BLOCK) y[i] = x[i];\n}}"),
)  # fmt: skip


def write_logs() -> Iterator[str]:
    """Build all, write what the compilers say, and yield the names of those that were taken."""
    LOGS.mkdir(exist_ok=True)
    for faulty in FAULTY:
        log = faulty.build()
        if not log:
            yield faulty.name
        (LOGS / f"{faulty.name}.txt").write_text(log, encoding="utf-8")


if __name__ == "__main__":
    if taken := list(write_logs()):
        msg = f"no fault was found in {', '.join(taken)}"
        raise SystemExit(msg)
