"""Builds in a child process: each harms only itself, and is made once."""

from pathlib import Path

import pytest

from knowledge.outcome import Failed, TimedOut
from operator_registry.hardware import HardwareSpec
from optimizer.evaluate.building import Builder, Built
from optimizer.evaluate.sandbox import Limits
from optimizer.targets.target import Build, Instance
from tests.makers import SCALE

FORM = Instance(
    kernel="scale", types=("*fp32", "*fp32", "i64", "fp64"), constants=(("T", "float32"),), warps=1
)
ENDLESS = "template <int N> struct D { D<N + 1> next; D<N - 1> other; };\ntemplate struct D<0>;\n"


def build_of(code: str) -> Build:
    return Build(code=code, instances=(FORM,))


@pytest.fixture
def builder(tmp_path: Path, host: HardwareSpec) -> Builder:
    return Builder(host, tmp_path, limits=Limits(wall_s=60))


def test_a_build_that_fails_leaves_the_others_whole(builder: Builder) -> None:
    good, bad, other = builder.build(
        [build_of(SCALE), build_of(SCALE + "\nnonsense"), build_of("// other\n" + SCALE)]
    )

    assert isinstance(good, Built)
    assert isinstance(bad, Failed)
    assert "nonsense" in bad.log
    assert isinstance(other, Built)


def test_what_was_built_is_not_built_again(builder: Builder) -> None:
    (first,) = builder.build([build_of(SCALE)])
    assert isinstance(first, Built)
    stamp = (first.folder / "artefact.json").stat().st_mtime_ns

    (second,) = builder.build([build_of(SCALE)])

    assert second == first
    assert (first.folder / "artefact.json").stat().st_mtime_ns == stamp


@pytest.mark.drill
def test_a_build_that_hangs_is_found_among_the_others(tmp_path: Path, host: HardwareSpec) -> None:
    """The compiler's own endless work: an expression that it evaluates for ever."""
    forever = (
        "constexpr int64_t spin(int64_t n) { int64_t s = 0; "
        "for (int64_t i = 0; i < n; ++i) for (int64_t j = 0; j < 250000; ++j) s += j; return s; }\n"
        + "".join(f"constexpr int64_t c{i} = spin(130);\n" for i in range(200))
        + SCALE
    )
    builder = Builder(host, tmp_path, limits=Limits(wall_s=6))

    hung, good = builder.build([build_of(forever), build_of(SCALE)])

    assert isinstance(hung, TimedOut | Failed)
    assert isinstance(good, Built)
