"""The least time that physics allows."""

import pytest

from knowledge.roofline import UnboundAxisError, bytes_of, impossible_below_ms, memory_bound_ms
from operator_registry.hardware import CompileTarget, HardwareSpec, Limits
from operator_registry.spec import InputSpec, OperatorSpec, RangeAxis, SumAxis, TensorSpec, Workload

DEVICE = HardwareSpec(
    name="device",
    vendor="any",
    target="cpu",
    compile=CompileTarget(arch="any"),
    languages=("cpp",),
    limits=Limits(dram_bandwidth_gb_s=1000, dram_gb=8, last_level_cache_mb=8),
)
SOFTMAX = OperatorSpec(
    name="softmax",
    axes={"rows": RangeAxis(max=1 << 20), "cols": RangeAxis(max=1 << 20)},
    dtypes={"T": ("float32", "bfloat16")},
    inputs={"x": InputSpec(shape=("rows", "cols"), dtype="T")},
    outputs={"y": TensorSpec(shape=("rows", "cols"), dtype="T")},
    reference="softmax",
    workloads=(Workload(name="w", sizes={"rows": 1, "cols": 1}, dtypes={"T": "float32"}),),
)
FLOAT32 = {"T": "float32"}


def test_counts_each_tensor_once() -> None:
    """A 1000 x 500 float32 softmax reads 2 MB and writes 2 MB: 4 us at 1 TB/s."""
    sizes = {"rows": 1000, "cols": 500}

    assert memory_bound_ms(SOFTMAX, sizes, DEVICE, dtypes=FLOAT32) == pytest.approx(4e-3)


def test_a_narrower_dtype_halves_the_time() -> None:
    sizes = {"rows": 1000, "cols": 500}

    assert memory_bound_ms(SOFTMAX, sizes, DEVICE, dtypes={"T": "bfloat16"}) == pytest.approx(2e-3)


def test_a_missing_axis_is_named() -> None:
    with pytest.raises(UnboundAxisError, match="cols"):
        memory_bound_ms(SOFTMAX, {"rows": 1000}, DEVICE, dtypes=FLOAT32)


def test_a_list_counts_each_member_at_its_own_size() -> None:
    spec = OperatorSpec(
        name="jagged",
        axes={"lists": RangeAxis(max=9), "n": RangeAxis(max=9), "total": SumAxis(sum_of="lengths")},
        inputs={
            "lengths": InputSpec(shape=("n",), list_over="lists", dtype="int64"),
            "values": InputSpec(shape=("total",), list_over="lists", dtype="int64"),
        },
        outputs={"out": TensorSpec(shape=("total",), list_over="lists", dtype="int64")},
        reference="jagged",
        workloads=(Workload(name="w", sizes={"lists": 2, "n": 3}),),
    )

    assert bytes_of(spec.inputs["values"], {"lists": 2, "n": 3, "total": (5, 7)}, {}) == 96


def test_only_outputs_far_beyond_the_cache_convict_a_time() -> None:
    small = {"rows": 1000, "cols": 1000}  # 4 MB
    large = {"rows": 10_000, "cols": 1000}  # 40 MB, of which 8 may wait in the cache

    assert impossible_below_ms(SOFTMAX, small, DEVICE, dtypes=FLOAT32) == 0
    assert impossible_below_ms(SOFTMAX, large, DEVICE, dtypes=FLOAT32) == pytest.approx(0.032)
