"""Triton kernels under the interpreter, through the executor."""

from pathlib import Path

import pytest
import torch

from optimizer.executor import Executor
from optimizer.targets.cuda import CudaTarget
from optimizer.targets.interpreter import InterpreterTable
from optimizer.targets.target import Artefact, Build, BuildError, Instance
from tests.optimizer.plans import (
    ADD,
    HEADS,
    POSITIVE,
    RMS,
    TRITON,
    Sample,
    heads_reference,
    make_heads,
    rms_reference,
)

CHOSEN = {"BLOCK": 128, "WARPS": 4}
LANGUAGE = """\
import triton
import triton.language as tl

@triton.jit
def half(x):
    return x / 2

@triton.jit
def use(x_ptr, y_ptr, N: tl.constexpr = 8):
    x = tl.load(x_ptr + tl.arange(0, N))
    y = tl.zeros([N], tl.float32) + tl.softmax(x) + x.sum(0) + tl.cumsum(half(x), 0) + x.max()
    tl.store(y_ptr + tl.arange(0, N), y)
"""
FORM = Instance(kernel="use", types=("*fp32", "*fp32"))


def make_executor(sample: Sample) -> Executor:
    kernels = InterpreterTable(TRITON)
    return Executor(sample.spec, sample.triton, CHOSEN, kernels=kernels, device="cpu")


def run_language() -> tuple[torch.Tensor, torch.Tensor]:
    x, y = torch.randn(8), torch.zeros(8)
    InterpreterTable(LANGUAGE).launcher(FORM)((1,), (x.data_ptr(), y.data_ptr()))
    return x, y


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_row_reduction_agrees_with_its_reference(dtype: torch.dtype) -> None:
    x, w = torch.randn(3, 100).to(dtype), torch.randn(100).to(dtype)

    (y,) = make_executor(RMS)(x, w)

    torch.testing.assert_close(y, rms_reference(x, w))


def test_a_grid_of_many_programs_covers_a_ragged_end() -> None:
    x = torch.randn(300)

    (z,) = make_executor(ADD)(x, x)

    torch.testing.assert_close(z, 2 * x)


def test_addresses_are_read_from_a_table_and_sizes_by_the_plan() -> None:
    lengths, values = make_heads()

    kept_lengths, kept = make_executor(HEADS)(lengths, values)

    torch.testing.assert_close((kept_lengths, kept), heads_reference(lengths, values, 2))


def test_a_grid_that_the_data_decide_is_launched_after_the_read() -> None:
    count, kept = make_executor(POSITIVE)(torch.tensor([1.0, -2.0, 3.0]))

    assert isinstance(count, torch.Tensor)
    assert isinstance(kept, torch.Tensor)
    assert (count.item(), kept.tolist()) == (2, [2.0, 6.0])


def test_nothing_is_launched_on_an_empty_grid() -> None:
    _, kept = make_executor(POSITIVE)(torch.tensor([-1.0]))

    assert isinstance(kept, torch.Tensor)
    assert kept.shape == (0,)


def test_functions_and_methods_of_the_language_can_be_interpreted() -> None:
    x, y = run_language()

    wanted = x.softmax(0) + x.sum() + (x / 2).cumsum(0) + x.max()
    torch.testing.assert_close(y, wanted)


def test_the_process_can_still_compile_afterwards(tmp_path: Path) -> None:
    run_language()

    (built,) = CudaTarget("sm_90").build(
        [Build(code=LANGUAGE, instances=(FORM.model_copy(update={"divisible": (True, True)}),))],
        [tmp_path],
    )

    assert isinstance(built, Artefact), built


def test_code_that_can_not_be_imported_gets_a_message() -> None:
    with pytest.raises(BuildError, match="ZeroDivisionError"):
        InterpreterTable("1 / 0")
