"""Kernels on an NVIDIA device, compiled ahead of time and launched by the driver.

``pytest -m gpu tests/optimizer/targets tests/contracts/test_target.py -s`` on the device.
"""

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest
import torch

from optimizer.errors import CallError
from optimizer.executor import Executor
from optimizer.plan import Launch, Plan
from optimizer.targets import BuildingTable
from optimizer.targets.cuda import CudaTarget
from optimizer.targets.cuda_launch import find_cuda_obstacle
from optimizer.targets.target import Build, Instance
from tests.optimizer.plans import (
    ADD,
    HEADS,
    POSITIVE,
    PRODUCT,
    RMS,
    TRITON,
    Sample,
    heads_reference,
    make_heads,
    rms_reference,
)

pytestmark = pytest.mark.gpu

CHOSEN = {"BLOCK": 1024, "WARPS": 8}
WIDE_SHARED = """\
import triton
import triton.language as tl


@triton.jit
def product(a_ptr, b_ptr, c_ptr, rows, inner, cols, M: tl.constexpr, N: tl.constexpr,
            K: tl.constexpr):
    i = (tl.program_id(0) * M + tl.arange(0, M))[:, None]
    j = (tl.program_id(1) * N + tl.arange(0, N))[None, :]
    total = tl.zeros([M, N], tl.float32)
    for start in range(0, inner, K):
        k = start + tl.arange(0, K)
        a = tl.load(a_ptr + i * inner + k[None, :], mask=(i < rows) & (k[None, :] < inner), other=0)
        b = tl.load(b_ptr + k[:, None] * cols + j, mask=(k[:, None] < inner) & (j < cols), other=0)
        total += tl.dot(a.to(tl.bfloat16), b.to(tl.bfloat16))
    tl.store(c_ptr + i * cols + j, total, mask=(i < rows) & (j < cols))
"""
WIDE_PLAN = Plan(
    language="triton",
    steps=(
        Launch(
            kernel="product",
            grid=("cdiv(rows, 128)", "cdiv(cols, 128)"),
            arguments=("a", "b", "c", "rows", "inner", "cols"),
            constants={"M": "128", "N": "128", "K": "64"},
            warps="8",
            stages="4",
        ),
    ),
)


@pytest.fixture(scope="module")
def target() -> CudaTarget:
    major, minor = torch.cuda.get_device_capability()
    return CudaTarget(f"sm_{major}{minor}")


@pytest.fixture(scope="module")
def make(
    target: CudaTarget, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Sample], Executor]:
    folder = tmp_path_factory.mktemp("kernels")

    def make_executor(sample: Sample) -> Executor:
        kernels = BuildingTable(target, TRITON, folder)
        return Executor(sample.spec, sample.triton, CHOSEN, kernels=kernels, device="cuda")

    return make_executor


Make = Callable[[Sample], Executor]


def make_stream() -> torch.cuda.Stream:
    return torch.cuda.Stream()  # type: ignore[no-untyped-call] # torch does not type it


@pytest.mark.parametrize("rows", [0, 1, 1000, 4096, 1_000_003])
def test_vectors_are_added(make: Make, rows: int) -> None:
    x, y = torch.randn(rows, device="cuda"), torch.randn(rows, device="cuda")

    (z,) = make(ADD)(x, y)

    torch.testing.assert_close(z, x + y, rtol=0, atol=0)


@pytest.mark.parametrize("cols", [16, 1000, 4096])
def test_a_row_reduction_in_bfloat16_agrees_with_its_reference(make: Make, cols: int) -> None:
    x = torch.randn(333, cols, device="cuda").bfloat16()
    w = torch.randn(cols, device="cuda").bfloat16()

    (y,) = make(RMS)(x, w)

    torch.testing.assert_close(y, rms_reference(x, w), rtol=2e-2, atol=1e-2)


def test_an_attribute_reaches_the_kernel_as_a_float(make: Make) -> None:
    x, w = torch.ones(1, 16, device="cuda"), torch.ones(16, device="cuda")

    (y,) = make(RMS)(x, w, eps=3)

    torch.testing.assert_close(y, torch.full((1, 16), 0.5, device="cuda"))


def test_lists_go_through_a_table_of_addresses_and_outputs_are_cut_to_the_sizes_read(
    make: Make,
) -> None:
    lengths, values = make_heads("cuda")

    kept_lengths, kept = make(HEADS)(lengths, values)

    torch.testing.assert_close((kept_lengths, kept), heads_reference(lengths, values, 2))


def test_a_table_follows_the_tensors_of_each_call(make: Make) -> None:
    executor = make(HEADS)
    calls = [make_heads("cuda") for _ in range(300)]  # more than tables are kept

    found = [executor(*call) for call in calls]

    for call, outputs in zip(calls, found, strict=True):
        torch.testing.assert_close(outputs, heads_reference(*call, 2))


def test_a_later_launchs_grid_is_the_size_that_was_read(make: Make) -> None:
    x = torch.randn(5000, device="cuda")

    count, kept = make(POSITIVE)(x)

    torch.testing.assert_close(kept, 2 * x[x > 0])
    assert isinstance(count, torch.Tensor)
    assert count.item() == (x > 0).sum().item()


def test_library_functions_write_into_buffers_and_outputs(make: Make) -> None:
    a, b = torch.randn(64, 32, device="cuda"), torch.randn(32, 16, device="cuda")

    (c,) = make(PRODUCT)(a, b)

    torch.testing.assert_close(c, 4 * (a @ b))


def test_a_kernel_runs_on_the_current_stream(make: Make) -> None:
    executor = make(ADD)
    x = torch.zeros(4096, device="cuda")
    executor(x, x)
    torch.cuda.synchronize()
    big = torch.ones(8192, 8192, device="cuda")
    side = make_stream()

    with torch.cuda.stream(side):
        for _ in range(20):
            big @ big  # keeps the stream busy: a kernel elsewhere would run before x is filled
        x.fill_(5)
        (z,) = executor(x, x)
    side.synchronize()

    torch.testing.assert_close(z, torch.full_like(x, 10))


def test_two_streams_have_results_of_their_own(make: Make) -> None:
    executor = make(RMS)
    streams = [make_stream() for _ in range(2)]
    inputs = [
        (torch.randn(500, 4096, device="cuda"), torch.randn(4096, device="cuda")) for _ in streams
    ]
    torch.cuda.synchronize()

    outputs = []
    for _ in range(20):
        for stream, given in zip(streams, inputs, strict=True):
            with torch.cuda.stream(stream):
                outputs.append(executor(*given)[0])
    torch.cuda.synchronize()

    for number, output in enumerate(outputs):
        torch.testing.assert_close(output, rms_reference(*inputs[number % 2]), rtol=1e-5, atol=1e-5)


def test_a_call_can_be_captured_in_a_graph(make: Make) -> None:
    executor = make(RMS)
    x, w = torch.randn(64, 1000, device="cuda"), torch.randn(1000, device="cuda")
    executor(x, w)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        (y,) = executor(x, w)

    x.copy_(torch.randn_like(x))
    graph.replay()
    torch.cuda.synchronize()

    torch.testing.assert_close(y, rms_reference(x, w), rtol=1e-5, atol=1e-5)


def test_a_thread_that_never_used_the_device_can_launch(target: CudaTarget, tmp_path: Path) -> None:
    types = ("*fp32", "*fp32", "*fp32", "i32")
    form = Instance(kernel="add", types=types, divisible=(True,) * 4, constants=(("BLOCK", 1024),))
    target.build([Build(code=TRITON, instances=(form,))], [tmp_path])
    launch = target.load(tmp_path).launcher(form)
    x, z = torch.ones(1024, device="cuda"), torch.zeros(1024, device="cuda")
    arguments = (x.data_ptr(), x.data_ptr(), z.data_ptr(), 1024)
    torch.cuda.synchronize()
    raised: list[Exception] = []

    def run() -> None:
        try:
            launch((1,), arguments)
        except OSError as error:
            raised.append(error)

    thread = Thread(target=run)
    thread.start()
    thread.join()
    torch.cuda.synchronize()

    assert raised == []
    torch.testing.assert_close(z, 2 * x)


def test_an_input_at_an_odd_address_or_not_contiguous_is_copied_first(make: Make) -> None:
    x = torch.randn(1001, device="cuda")[1:]
    y = torch.randn(1000, 2, device="cuda")[:, 0]

    (z,) = make(ADD)(x, y)

    torch.testing.assert_close(z, x + y, rtol=0, atol=0)


def test_a_kernel_may_have_more_than_48_kb_of_shared_memory(
    target: CudaTarget, tmp_path: Path
) -> None:
    kernels = BuildingTable(target, WIDE_SHARED, tmp_path)
    executor = Executor(PRODUCT.spec, WIDE_PLAN, {}, kernels=kernels, device="cuda")
    a, b = torch.randn(300, 520, device="cuda"), torch.randn(520, 200, device="cuda")

    (c,) = executor(a, b)

    wanted = a.bfloat16().double() @ b.bfloat16().double()
    torch.testing.assert_close(c, wanted.float(), rtol=1e-3, atol=1e-2)


def test_sizes_beyond_32_bits_reach_the_kernel(make: Make) -> None:
    rows = 2**31 + 5
    free, _ = torch.cuda.mem_get_info()
    if free < 4 * 2 * rows:
        pytest.skip("the device has too little memory free")
    x = torch.ones(rows, dtype=torch.bfloat16, device="cuda")

    (z,) = make(ADD)(x, x)

    assert isinstance(z, torch.Tensor)
    assert (z[:3].tolist(), z[-3:].tolist()) == ([2.0] * 3, [2.0] * 3)


def test_inputs_elsewhere_are_refused_before_any_launch(make: Make) -> None:
    with pytest.raises(CallError, match="x is on cpu; this kernel runs on cuda:0"):
        make(ADD)(torch.ones(4), torch.ones(4))


def test_another_architectures_kernels_are_refused() -> None:
    obstacle = find_cuda_obstacle("sm_52")

    assert obstacle is not None
    assert "can't run code for sm_52" in obstacle


def test_the_host_time_of_a_call_is_told(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    executor = make(RMS)
    x, w = torch.randn(8, 1024, device="cuda"), torch.randn(1024, device="cuda")

    ours = _host_us(lambda: executor(x, w))
    eager = _host_us(lambda: torch.nn.functional.rms_norm(x, (1024,), w, 1e-6))

    with capsys.disabled():
        sys.stdout.write(f"\nhost time of a call: executor {ours:.1f} us, F.rms_norm {eager:.1f}\n")


def _host_us(call: Callable[[], object]) -> float:
    """Return the median time until a call comes back, the queue never full."""
    samples = []
    for number in range(2000):
        began = time.perf_counter()
        call()
        samples.append(time.perf_counter() - began)
        if number % 100 == 0:
            torch.cuda.synchronize()
    return statistics.median(samples) * 1e6
