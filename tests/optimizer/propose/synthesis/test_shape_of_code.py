"""What emitted kernels look like where a person would look twice."""

import re

import pytest

from operator_registry.spec import RangeAxis
from optimizer.plan import Launch, ReadSize
from optimizer.propose.synthesis.capture import capture
from optimizer.propose.synthesis.dtypes import Dtypes, RegionError
from optimizer.propose.synthesis.neutral import choose_fillers
from optimizer.propose.synthesis.regions import cut_outputs
from optimizer.propose.synthesis.value import Load, Reduce, walk
from tests.optimizer.propose.trial import catalogue, drafts_of, floats, make_case, result


def test_a_kernel_opens_with_its_formula() -> None:
    draft = drafts_of(catalogue()["rms_norm"], "cpp")[0]

    assert "// total[row] = sum of x[row, col] * x[row, col] over col" in draft.code
    assert (
        "// y[row, col] = x[row, col] * rsqrt(total[row] / cols + eps) * weight[col]" in draft.code
    )


def test_only_helpers_that_are_called_stand_in_the_file() -> None:
    for operator in catalogue().values():
        for language in ("cpp", "triton"):
            for draft in drafts_of(operator, language):
                pattern = r"static inline \S+ (\w+)\(" if language == "cpp" else r"def (\w+)\("
                for name in re.findall(pattern, draft.code):
                    launched = {s.kernel for s in draft.plan.steps if isinstance(s, Launch)}
                    assert len(re.findall(rf"\b{name}\b", draft.code)) > 1 or name in launched


def test_no_argument_of_a_triton_kernel_is_unused() -> None:
    for operator in catalogue().values():
        for draft in drafts_of(operator, "triton"):
            for head, body in re.findall(
                r"def \w+\(([^)]*)\):(.*?)(?=\n\n\n|\Z)", draft.code, re.DOTALL
            ):
                for name in re.findall(r"(\w+)(?:: tl\.constexpr)?(?:,|$)", head.strip()):
                    assert re.search(rf"\b{name}\b", body), (name, draft.code)


def test_neighbouring_axes_become_one_where_nothing_is_broadcast() -> None:
    operator = make_case(
        "def reference(x, z): return x * z + 1",
        {"x": floats("k", "m", "n"), "z": floats("k", "m", "n")},
        {"y": result("k", "m", "n")},
    )

    draft = drafts_of(operator, "cpp")[0]

    assert "for (int64_t i = 0; i < (k * m * n); ++i)" in draft.code


def test_a_softmax_keeps_its_exponentials_between_loops() -> None:
    draft = drafts_of(catalogue()["softmax"], "cpp")[0]

    assert draft.code.count("fast_exp_falling(") == 2  # its definition and one call
    assert "exp_values[col]" in draft.code


def test_short_rows_and_rows_too_long_for_registers_have_kernels_of_their_own() -> None:
    operator = make_case(
        "def reference(x): return torch.softmax(x, -1)",
        {"x": floats("m", "n")},
        {"y": result("m", "n")},
        axes={"n": RangeAxis(min=1, max=1_000_000)},
    )

    draft = drafts_of(operator, "triton")[0]

    kernels = [step.kernel for step in draft.plan.steps if isinstance(step, Launch)]
    assert kernels == ["case", "case_in_pieces", "case_long"]


def test_sizes_that_the_data_decide_are_read_once_each() -> None:
    (draft,) = drafts_of(catalogue()["batch_event_truncate"], "triton")

    reads = [step.axis for step in draft.plan.steps if isinstance(step, ReadSize)]
    assert reads == ["kept_events", "kept_elements"]
    assert len(draft.plan.steps) == 6


def test_a_result_that_several_rows_need_gets_memory_of_its_own() -> None:
    operator = make_case(
        "def reference(x, w): return x * (w / w.norm())",
        {"x": floats("m", "n"), "w": floats("n")},
        {"y": result("m", "n")},
    )

    draft = drafts_of(operator, "cpp")[0]

    assert list(draft.plan.buffers) == ["kept_linalg_vector_norm"]
    assert len(draft.plan.steps) == 2


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("def reference(x): return x.sum(0)", "over other axes than the last"),
        ("def reference(x): return torch.sort(x[0]).values", "no region for aten.sort"),
        ("def reference(x): return x.cumsum(1)[0]", "no region for aten.cumsum"),
        ("def reference(x): return x[0].cumsum(0)", "no region|memory"),
        ("def reference(x): return x.max(1).indices[0] + x[0]", "no region for the indices"),
    ],
)
def test_what_has_no_region_is_refused_by_name(source: str, why: str) -> None:
    operator = make_case(source, {"x": floats("m", "n")}, {"y": result("n")})

    with pytest.raises(RegionError, match=why):
        drafts_of(operator, "cpp")


def test_masked_off_elements_hold_what_reductions_do_not_see() -> None:
    graph = capture(catalogue()["softmax"], "softmax")
    dtypes = Dtypes({"T": ("float32", "bfloat16")})
    (region,) = cut_outputs(graph, dtypes, ["y"]).regions
    values = list(walk(*(store.value for store in region.stores)))
    reductions = [value for value in values if isinstance(value, Reduce)]

    fillers, satisfied = choose_fillers(reductions, dtypes)

    assert satisfied == frozenset(reductions)
    assert [fillers[v] for v in values if isinstance(v, Load)] == [float("-inf")]
