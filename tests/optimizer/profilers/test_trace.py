"""What a profiler sees of a call, and what a candidate need not declare."""

import pytest
import torch

from optimizer.candidate import Candidate
from optimizer.plan import LibraryCall
from optimizer.profilers.launches import trace
from optimizer.profilers.trace import Activity, Trace, find_undeclared
from tests.makers import make_candidate

WINDOW = (0.0, 100.0)


def ran(*names: str, op: str = "") -> Trace:
    activities = tuple(
        Activity(name=name, stream=7, begin_us=1, took_us=2, op=op) for name in names
    )
    return Trace(activities=activities, ops=(op,) if op else (), window_us=WINDOW)


def with_library(op: str) -> Candidate:
    candidate = make_candidate()
    call = LibraryCall(op=op, arguments=("x",), out=("y",))
    steps = (*candidate.plan.steps, call)
    return candidate.model_copy(update={"plan": candidate.plan.model_copy(update={"steps": steps})})


def test_the_outermost_library_function_is_seen() -> None:
    seen = trace(lambda: torch.softmax(torch.ones(9), 0), device="cpu")

    assert "aten::softmax" in seen.ops
    assert "aten::_softmax" not in seen.ops


def test_a_call_of_nothing_shows_nothing() -> None:
    seen = trace(lambda: None, device="cpu")

    assert (seen.activities, seen.ops) == ((), ())
    assert seen.window_us[0] < seen.window_us[1]


def test_a_kernel_of_the_plan_is_declared() -> None:
    assert find_undeclared(ran("scale"), make_candidate()) is None


def test_a_kernel_that_is_no_step_is_undeclared() -> None:
    found = find_undeclared(ran("scale", "sgemm_128x64"), make_candidate())

    assert found == "launches sgemm_128x64, which is no step of the plan"


@pytest.mark.parametrize("op", ["aten::mm", "aten::softmax"])
def test_a_library_function_that_is_no_step_is_undeclared(op: str) -> None:
    assert find_undeclared(ran("gemm", op=op), make_candidate()) is not None


def test_a_declared_library_function_may_launch_what_it_likes() -> None:
    assert find_undeclared(ran("gemm", op="aten::mm"), with_library("aten::mm.out")) is None


def test_memory_may_be_filled_and_copied() -> None:
    assert find_undeclared(ran("Memset (Device)", "Memcpy DtoD"), make_candidate()) is None


@pytest.mark.parametrize("op", ["aten::copy_", "aten::item"])
def test_only_our_executor_copies_and_reads(op: str) -> None:
    by_python = make_candidate().model_copy(update={"host": "python"})

    assert find_undeclared(ran(op=op), make_candidate()) is None
    assert find_undeclared(ran(op=op), by_python) is not None


@pytest.mark.gpu
def test_kernels_are_seen_with_the_function_that_they_ran_for() -> None:
    x = torch.ones(1 << 20, device="cuda")

    seen = trace(lambda: torch.softmax(x, 0), device="cuda")

    assert seen.kernels()
    assert {activity.op for activity in seen.activities} == {"aten::softmax"}


@pytest.mark.gpu
def test_work_on_another_stream_is_seen_inside_the_window() -> None:
    x, side = torch.ones(1 << 20, device="cuda"), torch.cuda.Stream()  # type: ignore[no-untyped-call] # torch's

    def call() -> None:
        x.mul_(2)
        with torch.cuda.stream(side):
            x.add_(1)

    seen = trace(call, device="cuda")

    assert len({activity.stream for activity in seen.activities}) == 2
    ends = [activity.begin_us + activity.took_us for activity in seen.activities]
    assert max(ends) <= seen.window_us[1]
