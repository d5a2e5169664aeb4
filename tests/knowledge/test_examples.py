"""Kernels of the documents, run by Triton's interpreter and by g++: they compute what they say."""

import ctypes
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor

from knowledge.library import Library
from optimizer.candidate import load_tunables
from optimizer.targets.cpu import COMPILER, FLAGS, host_cpu_arch
from optimizer.targets.interpreter import InterpreterTable
from optimizer.targets.target import Constant, Instance
from optimizer.targets.translation_unit import PRELUDE
from tests.knowledge.fragments import fragments_of

LIBRARY = Library.load()
TYPES = {torch.float32: "*fp32", torch.int64: "*i64"}
ROWS, COLS = 5, 77
Arguments = Sequence[Tensor | int | float]


def code_with(wanted: str) -> str:
    """Return the piece of code in the documents in which a text stands."""
    found = [
        fragment.code
        for document in LIBRARY.documents
        for fragment in fragments_of(document)
        if wanted in fragment.code
    ]
    assert found, wanted
    return found[0]


def interpret(
    name: str,
    grid: tuple[int, ...],
    arguments: Arguments,
    **constants: Constant,
) -> None:
    """Run a kernel of the documents on tensors in the host's memory."""
    kinds = [
        TYPES[a.dtype] if isinstance(a, Tensor) else "fp32" if isinstance(a, float) else "i32"
        for a in arguments
    ]
    instance = Instance(kernel=name, types=tuple(kinds), constants=tuple(constants.items()))
    given = [a.data_ptr() if isinstance(a, Tensor) else a for a in arguments]
    InterpreterTable(code_with(f"def {name}(")).launcher(instance)(grid, given)


def draw(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def empty(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.full(shape, 77, dtype=dtype)


def by_rows(
    name: str, right: Callable[[Tensor], Tensor], *, block: int, reduced: bool = False
) -> Callable[[], tuple[Tensor, Tensor]]:
    """Return a run of a kernel whose programs take a row each."""

    def run() -> tuple[Tensor, Tensor]:
        x = draw(ROWS, COLS)
        y = empty(ROWS) if reduced else empty(ROWS, COLS)
        interpret(name, (ROWS,), (x, y, COLS), BLOCK=block)
        return y, right(x)

    return run


def gelu_bias() -> tuple[Tensor, Tensor]:
    x, bias, y = draw(ROWS, COLS), draw(COLS, seed=2), empty(ROWS, COLS)
    interpret("gelu_bias", (2, ROWS), (x, bias, y, ROWS, COLS), BLOCK=64)
    return y, torch.nn.functional.gelu(x + bias, approximate="tanh")


def gather() -> tuple[Tensor, Tensor]:
    table, ids, y = draw(9), torch.tensor([3, -1, 8, 9, 0]), empty(5)
    interpret("gather", (2,), (table, ids, y, 9, 5), BLOCK=4)
    return y, torch.stack([table[3], torch.tensor(0.0), table[8], torch.tensor(0.0), table[0]])


def embed() -> tuple[Tensor, Tensor]:
    table, ids, y = draw(9, 13), torch.tensor([3, 8, 0, 3, 1]), empty(5, 13)
    interpret("embed", (2,), (table, ids, y, 5, 13), ROWS=4, BLOCK=16)
    return y, table[ids]


def transpose() -> tuple[Tensor, Tensor]:
    x, y = draw(ROWS, 21), empty(21, ROWS)
    interpret("transpose", (1, 2), (x, y, ROWS, 21), BLOCK=16)
    return y, x.t().contiguous()


def column_sums() -> tuple[Tensor, Tensor]:
    x, y = draw(ROWS, COLS), empty(COLS)
    interpret("column_sums", (3,), (x, y, ROWS, COLS), ROWS=4, BLOCK=32)
    return y, x.sum(0)


def split_rows() -> tuple[Tensor, Tensor]:
    x, parts = draw(ROWS, COLS), empty(ROWS, 3)
    interpret("split_rows", (3, ROWS), (x, parts, COLS), SPLITS=3, BLOCK=16)
    return parts.sum(1), x.sum(1)


def recurrence() -> tuple[Tensor, Tensor]:
    a, x, y = draw(ROWS, COLS).sigmoid(), draw(ROWS, COLS, seed=2), empty(ROWS, COLS)
    interpret("recurrence", (ROWS,), (a, x, y, COLS), BLOCK=128)
    right, state = torch.empty_like(x), torch.zeros(ROWS)
    for col in range(COLS):
        state = a[:, col] * state + x[:, col]
        right[:, col] = state
    return y, right


def sorted_rows() -> tuple[Tensor, Tensor]:
    x = draw(2, 13)
    x[0, 3], x[1, 1:3] = float("inf"), x[1, 7]
    y, place = empty(2, 13), empty(2, 13, dtype=torch.int64)
    interpret("sort_rows", (2,), (x, y, place, 13), BLOCK=16)
    values, places = torch.sort(x, dim=1, stable=True)
    return torch.cat([y, place.float()]), torch.cat([values, places.float()])


def attention() -> tuple[Tensor, Tensor]:
    q, k, v = (draw(2, 37, 16, seed=seed) for seed in (1, 2, 3))
    y = empty(2, 37, 16)
    scale = 16**-0.5 * 1.4426950408889634
    interpret("attend", (3, 2), (q, k, v, y, 37, scale), M=16, N=16, D=16)
    return y, torch.nn.functional.scaled_dot_product_attention(q, k, v)


def convolution() -> tuple[Tensor, Tensor]:
    x, w, y = draw(2, 19, 5), draw(3, 5, 6, seed=2), empty(2, 19, 6)
    interpret("conv1d", (2, 1, 2), (x, w, y, 5, 19, 6), TAPS=3, M=16, N=16, K=16)
    right = torch.nn.functional.conv1d(x.transpose(1, 2), w.permute(2, 1, 0), padding=1)
    return y, right.transpose(1, 2).contiguous()


def product() -> tuple[Tensor, Tensor]:
    a, b, c = draw(37, 21), draw(21, 19, seed=2), empty(37, 19)
    interpret("product", (6,), (a, b, c, 37, 19, 21), M=16, N=16, K=16, GROUP=2)
    return c, a @ b


def kept_places() -> tuple[Tensor, Tensor]:
    lengths = torch.tensor([3, 0, 7, 2, 9])
    starts, places, sizes = (empty(n, dtype=torch.int64) for n in (5, 5, 1))
    interpret("keep_first", (1,), (lengths, starts, places, sizes, 5, 4), SCANNED=2)
    kept = lengths.clamp(max=4)
    right = torch.cat([lengths.cumsum(0) - lengths, kept.cumsum(0) - kept, kept.sum()[None]])
    return torch.cat([starts, places, sizes]), right


CASES: dict[str, Callable[[], tuple[Tensor, Tensor]]] = {
    "softmax_long": by_rows("softmax_long", lambda x: x.softmax(1), block=32),
    "log_sum_exp": by_rows("log_sum_exp", lambda x: x.logsumexp(1), block=128, reduced=True),
    "cumsum_rows": by_rows("cumsum_rows", lambda x: x.cumsum(1), block=32),
    "gelu_bias": gelu_bias,
    "gather": gather,
    "embed": embed,
    "transpose": transpose,
    "column_sums": column_sums,
    "split_rows": split_rows,
    "recurrence": recurrence,
    "sort_rows": sorted_rows,
    "attend": attention,
    "conv1d": convolution,
    "product": product,
    "keep_first": kept_places,
}


@pytest.mark.parametrize("name", CASES)
def test_a_kernel_computes_what_its_document_says(name: str) -> None:
    got, wanted = CASES[name]()

    torch.testing.assert_close(got, wanted, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", ["count_before", "lower_bound"])
def test_a_search_finds_the_place(name: str, tmp_path: Path) -> None:
    table = torch.tensor([1.0, 3.0, 3.0, 8.0, 9.0])
    needles = torch.tensor([0.0, 1.0, 3.0, 4.0, 9.0, 10.0, 8.5, 3.5])
    places = empty(8, dtype=torch.int64)
    steps = ", STEPS" if name == "count_before" else ""
    code = f"""{code_with(f"def {name}(")}

@triton.jit
def search(table_ptr, needles_ptr, y_ptr, size, STEPS: tl.constexpr):
    at = tl.arange(0, 8)
    tl.store(y_ptr + at, {name}(table_ptr, size, tl.load(needles_ptr + at){steps}))
"""
    instance = Instance(
        kernel="search", types=("*fp32", "*fp32", "*i64", "i32"), constants=(("STEPS", 3),)
    )
    launch = InterpreterTable(code).launcher(instance)

    launch((1,), [table.data_ptr(), needles.data_ptr(), places.data_ptr(), 5])

    assert places.tolist() == torch.searchsorted(table, needles).tolist()


def call_cpp(name: str, arguments: Arguments, folder: Path) -> None:
    """Build a C++ kernel of the documents and call it."""
    code = code_with(f"KERNEL({name})")
    tunables = load_tunables(code, language="cpp")
    macros = [f"#define {key} {values[0]}" for key, values in tunables.items()]
    text = "\n".join((PRELUDE, *macros, "#define T float", "#define KERNEL(name) name", code))
    source, library = folder / "kernel.cpp", folder / "kernel.so"
    source.write_text(text, encoding="utf-8")
    arch = f"-march={host_cpu_arch()}"
    subprocess.run((COMPILER, *FLAGS, arch, "-o", str(library), str(source)), check=True)
    function = ctypes.CDLL(str(library))[name]
    function.argtypes = [
        ctypes.c_void_p if isinstance(a, Tensor)
        else ctypes.c_double if isinstance(a, float) else ctypes.c_int64
        for a in arguments
    ]  # fmt: skip
    function(*(a.data_ptr() if isinstance(a, Tensor) else a for a in arguments))


@pytest.mark.parametrize("name", ["total", "variance", "product", "stream", "gather_rows", "clip"])
def test_cpp_computes_what_its_document_says(name: str, tmp_path: Path) -> None:
    x = draw(ROWS, COLS)
    ids = torch.tensor([4, 0, 2])
    given: dict[str, tuple[Arguments, Tensor, Tensor]] = {}
    one, row, every = empty(1), empty(ROWS), empty(ROWS, COLS)
    c, picked, b = empty(ROWS, 9), empty(3, COLS), draw(COLS, 9, seed=2)
    given["total"] = ((x, one, x.numel()), one, x.sum()[None])
    given["variance"] = ((x, row, ROWS, COLS), row, x.var(1, correction=0))
    given["product"] = ((x, b, c, ROWS, 9, COLS), c, x @ b)
    given["stream"] = ((x, every, x.numel()), every, 2 * x)
    given["gather_rows"] = ((x, ids, picked, 3, COLS), picked, x[ids])
    given["clip"] = ((x, every, x.numel(), -0.5, 0.5), every, x.clamp(-0.5, 0.5))
    arguments, got, wanted = given[name]

    call_cpp(name, arguments, tmp_path)

    torch.testing.assert_close(got, wanted, rtol=2e-5, atol=2e-5)
