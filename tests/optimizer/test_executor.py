"""Plans run on the host's processor: the executor with real compiled kernels."""

from pathlib import Path

import pytest
import torch

from optimizer.errors import CallError, PlanError
from optimizer.executor import Executor
from optimizer.plan import Buffer, Launch, LibraryCall, Plan, ReadSize, Step
from optimizer.targets import BuildingTable, host_cpu_arch
from optimizer.targets.cpu import CpuTarget
from tests.optimizer.plans import (
    ADD,
    CPP,
    CPP_RAGGED,
    HEADS,
    POSITIVE,
    PRODUCT,
    RMS,
    Sample,
    heads_reference,
    make_heads,
    rms_reference,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kernels")


def make_executor(sample: Sample, folder: Path, *, plan: Plan | None = None) -> Executor:
    code = CPP if sample in (ADD, RMS) else CPP_RAGGED
    kernels = BuildingTable(CpuTarget(host_cpu_arch()), code, folder)
    return Executor(sample.spec, plan or sample.cpp, {}, kernels=kernels, device="cpu")


def test_a_row_reduction_agrees_with_its_reference(folder: Path) -> None:
    x, w = torch.randn(33, 257), torch.randn(257)

    (y,) = make_executor(RMS, folder)(x, w)

    torch.testing.assert_close(y, rms_reference(x, w), rtol=1e-5, atol=1e-6)


def test_an_attribute_reaches_the_kernel(folder: Path) -> None:
    x, w = torch.ones(1, 4), torch.ones(4)

    (y,) = make_executor(RMS, folder)(x, w, eps=3)

    torch.testing.assert_close(y, torch.full((1, 4), 0.5))


def test_bfloat16_is_a_type_of_the_code(folder: Path) -> None:
    x, w = torch.randn(5, 64).bfloat16(), torch.randn(64).bfloat16()

    (y,) = make_executor(RMS, folder)(x, w)

    torch.testing.assert_close(y, rms_reference(x, w), rtol=1e-2, atol=1e-2)


def test_lists_of_tensors_are_read_and_written_and_cut_to_the_sizes_that_the_data_decide(
    folder: Path,
) -> None:
    lengths, values = make_heads()

    kept_lengths, kept = make_executor(HEADS, folder)(lengths, values, most=2)

    assert (list(kept_lengths), list(kept)) == _equal(heads_reference(lengths, values, 2))


def test_a_list_of_another_length_is_another_call(folder: Path) -> None:
    executor = make_executor(HEADS, folder)
    lengths, values = make_heads()
    executor(lengths, values)

    kept_lengths, kept = executor(lengths[:1], values[:1])

    assert (list(kept_lengths), list(kept)) == _equal(heads_reference(lengths[:1], values[:1], 2))


def test_a_size_that_was_read_is_an_argument_of_a_later_launch(folder: Path) -> None:
    x = torch.tensor([1.0, -2.0, 3.0, 0.0, 4.0])

    count, kept = make_executor(POSITIVE, folder)(x)

    assert isinstance(count, torch.Tensor)
    assert isinstance(kept, torch.Tensor)
    assert (count.item(), kept.tolist()) == (3, [2.0, 6.0, 8.0])


def test_a_launch_is_left_out_where_its_condition_on_a_read_size_is_false(folder: Path) -> None:
    _, kept = make_executor(POSITIVE, folder)(-torch.ones(4))

    assert isinstance(kept, torch.Tensor)
    assert kept.shape == (0,)


def test_library_functions_write_into_buffers_and_outputs(folder: Path) -> None:
    a, b = torch.randn(3, 4), torch.randn(4, 5)

    (c,) = make_executor(PRODUCT, folder)(a, b)

    torch.testing.assert_close(c, 4 * (a @ b))


def test_an_input_that_is_not_contiguous_is_copied_first(folder: Path) -> None:
    x, w = torch.randn(64, 16).t(), torch.randn(64)

    (y,) = make_executor(RMS, folder)(x, w)

    torch.testing.assert_close(y, rms_reference(x, w), rtol=1e-5, atol=1e-6)


def test_outputs_are_new_memory_at_each_call(folder: Path) -> None:
    executor = make_executor(ADD, folder)
    ones = torch.ones(8)
    (first,) = executor(ones, ones)

    executor(ones, 2 * ones)

    assert isinstance(first, torch.Tensor)
    assert first.tolist() == [2.0] * 8


def test_an_empty_tensor_is_a_size_like_any_other(folder: Path) -> None:
    (z,) = make_executor(ADD, folder)(torch.ones(0), torch.ones(0))

    assert isinstance(z, torch.Tensor)
    assert z.shape == (0,)


def test_memory_comes_from_the_given_allocator(folder: Path) -> None:
    asked: list[tuple[int, ...]] = []

    def allocate(
        size: tuple[int, ...], *, dtype: torch.dtype, device: torch.device
    ) -> torch.Tensor:
        asked.append(tuple(size))
        return torch.full(tuple(size), 7, dtype=dtype, device=device)

    executor = Executor(
        PRODUCT.spec, PRODUCT.cpp, {}, kernels=BuildingTable(CpuTarget("x"), "", folder),
        device="cpu", allocate=allocate,  # type: ignore[arg-type] # sizes are tuples here
    )  # fmt: skip

    executor(torch.ones(2, 2), torch.ones(2, 2))

    assert asked == [(2, 2), (256,)]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ((torch.ones(3),), "takes 2 inputs"),
        ((torch.ones(3), torch.ones(4)), "rows"),
        ((torch.ones(3, 1), torch.ones(3)), "x has"),
        ((torch.ones(3), torch.ones(3).bfloat16()), "y is bfloat16; add takes float32"),
        ((torch.ones(3).int(), torch.ones(3).int()), "x is int32"),
        ((torch.ones(3), [torch.ones(3)]), "y"),
        ((torch.ones(3), 3.0), "float"),
        ((torch.ones(3, device="meta"), torch.ones(3)), "x is on meta"),
        ((torch.ones(3, requires_grad=True), torch.ones(3)), "no backward pass"),
    ],
)
def test_a_wrong_argument_gets_its_message(
    folder: Path, inputs: tuple[torch.Tensor, ...], message: str
) -> None:
    with pytest.raises(CallError, match=message):
        make_executor(ADD, folder)(*inputs)


def test_an_unknown_attribute_gets_its_message(folder: Path) -> None:
    with pytest.raises(CallError, match="no attribute epsilon; it has eps"):
        make_executor(RMS, folder)(torch.ones(1, 1), torch.ones(1), epsilon=1.0)


X_ROWS = ("x", "kept", "count", "rows")


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ((Launch(kernel="positive", arguments=("x", "kept", "size")),), "names size"),
        ((Launch(kernel="positive", arguments=X_ROWS),), "tells the size of found"),
        (
            (Launch(kernel="positive", arguments=X_ROWS), ReadSize(buffer="none", axis="found")),
            "none has 0 elements",
        ),
        (
            (Launch(kernel="positive", arguments=X_ROWS), ReadSize(buffer="x", axis="found")),
            "x holds 9 for the size of found, wanted 0 to 3",
        ),
        ((LibraryCall(op="aten::nothing.out", arguments=(), out=("kept",)),), "no ATen function"),
        ((LibraryCall(op="aten::neg", arguments=("x",), out=("kept",)),), "writes 0 tensors"),
        ((LibraryCall(op="prims::neg.out", arguments=("x",), out=("kept",)),), "no ATen function"),
    ],
)
def test_a_plan_that_can_not_be_run_gets_its_message(
    folder: Path, steps: tuple[Step, ...], message: str
) -> None:
    read = (ReadSize(buffer="count", axis="found"),) if "tells" not in message else ()
    plan = Plan(
        language="cpp",
        buffers={"none": Buffer(shape=("0",), dtype="int64")},
        steps=(*steps, *read),
    )

    with pytest.raises(PlanError, match=message):
        make_executor(POSITIVE, folder, plan=plan)(9 * torch.ones(3))


def _equal(wanted: tuple[list[torch.Tensor], list[torch.Tensor]]) -> object:
    """Return what equals lists of tensors that are equal in all."""
    return tuple([_Same(tensor) for tensor in tensors] for tensors in wanted)


class _Same:
    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    def __eq__(self, other: object) -> bool:
        return isinstance(other, torch.Tensor) and torch.equal(self.tensor, other)

    __hash__ = None  # type: ignore[assignment] # it is compared only

    def __repr__(self) -> str:
        return repr(self.tensor)
