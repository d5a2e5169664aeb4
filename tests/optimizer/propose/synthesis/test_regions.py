"""Region kinds in both languages, against eager, at sizes that fit no block."""

from pathlib import Path

import pytest

from operator_registry.registry import Operator
from operator_registry.spec import (
    AttributeSpec,
    IdsFrom,
    InputSpec,
    Permutation,
    RangeAxis,
    SortedUniqueIds,
    Uniform,
)
from optimizer.candidate import Candidate
from optimizer.targets.target import KernelTable
from tests.optimizer.propose.trial import (
    Call,
    built,
    drafts_of,
    floats,
    interpreted,
    make_case,
    result,
)

HALF = {"T": ("float32", "bfloat16")}
IDS = InputSpec(shape=("users", "each"), dtype="int64", values=Uniform(low=0, high=3))
SORTED = SortedUniqueIds(below=100)
CASES: dict[str, Operator] = {
    "an offset to each row and each column": make_case(
        "def reference(x, a, b): return torch.exp(x * 0.5 + a[:, None]) * b",
        {"x": floats("m", "n"), "a": floats("m"), "b": floats("n")},
        {"y": result("m", "n")},
    ),
    "three axes with one broadcast in the middle": make_case(
        "def reference(x, a): return torch.tanh(x + a[:, None, :])",
        {"x": floats("k", "m", "n"), "a": floats("k", "n")},
        {"y": result("k", "m", "n")},
    ),
    "a transposed operand": make_case(
        "def reference(x, z): return x.t() - z.permute(1, 0) * z.transpose(0, 1)",
        {"x": floats("m", "n"), "z": floats("m", "n")},
        {"y": result("n", "m")},
    ),
    "flattened, computed and folded again": make_case(
        "def reference(x): return (x.flatten() * 2 + 1).view(x.shape).abs()",
        {"x": floats("m", "n")},
        {"y": result("m", "n")},
    ),
    "a chosen row, and the row before in a longer tensor": make_case(
        "def reference(x, longer): return x * x[0] - longer[1:, -x.shape[1]:]",
        {"x": floats("m", "n"), "longer": floats("more", "n")},
        {"y": result("m", "n")},
    ),
    "whole numbers": make_case(
        "def reference(a, b): return (a // b) * 3 + (a % b) - (a & b) + (a == b) * (~a)",
        {
            "a": InputSpec(shape=("n",), dtype="int64", values=Uniform(low=-50, high=50)),
            "b": InputSpec(shape=("n",), dtype="int64", values=Uniform(low=1, high=9)),
        },
        {"y": result("n", dtype="int64")},
    ),
    "truth values": make_case(
        "def reference(x, z): return (x > z) & ~(x < 0) | torch.isnan(z)",
        {"x": floats("m", "n"), "z": floats("m", "n")},
        {"y": result("m", "n", dtype="bool")},
    ),
    "rows of an embedding": make_case(
        "def reference(ids, table): return F.embedding(ids, table) * 2",
        {"ids": IDS, "table": floats("entries", "width")},
        {"y": result("users", "each", "width")},
    ),
    "a gather by a permutation": make_case(
        "def reference(x, order): return x[order] + x.index_select(0, order)",
        {
            "x": floats("m", "n"),
            "order": InputSpec(shape=("m",), dtype="int64", values=Permutation()),
        },
        {"y": result("m", "n")},
    ),
    "buckets from the right": make_case(
        "def reference(ids, table): return torch.bucketize(ids, table, right=True)",
        {
            "ids": InputSpec(shape=("m", "n"), dtype="int64", values=IdsFrom(table="table")),
            "table": InputSpec(shape=("entries",), dtype="int64", values=SORTED),
        },
        {"y": result("m", "n", dtype="int64")},
    ),
    "a search in each row's own units": make_case(
        "def reference(x, unit, table): return torch.searchsorted(table, x * unit[:, None]) * 2",
        {
            "x": InputSpec(shape=("m", "n"), dtype="int64", values=Uniform(low=0, high=40)),
            "unit": InputSpec(shape=("m",), dtype="int64", values=Uniform(low=1, high=4)),
            "table": InputSpec(shape=("entries",), dtype="int64", values=SORTED),
        },
        {"y": result("m", "n", dtype="int64")},
    ),
    "normalised rows with an attribute": make_case(
        "def reference(x, eps):\n"
        "    return (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + eps).sqrt()",
        {"x": floats("k", "m", "n", dtype="T")},
        {"y": result("k", "m", "n", dtype="T")},
        attributes={"eps": AttributeSpec(value=0.1)},
        dtypes=HALF,
    ),
    "softmax and what it subtracts": make_case(
        "def reference(x): return torch.softmax(x, -1), x.amax(-1), x.logsumexp(-1)",
        {"x": floats("m", "n", dtype="T")},
        {
            "y": result("m", "n", dtype="T"),
            "greatest": result("m", dtype="T"),
            "log": result("m", dtype="T"),
        },
        dtypes=HALF,
    ),
    "the least and the product of whole numbers": make_case(
        "def reference(x): return x.amin(-1), x.amax(-1) * 2, x.sum(-1)",
        {"x": InputSpec(shape=("m", "n"), dtype="int64", values=Uniform(low=-9, high=9))},
        {name: result("m", dtype="int64") for name in ("least", "most", "all")},
    ),
    "layer norm over two axes": make_case(
        "def reference(x, w, b): return F.layer_norm(x, x.shape[1:], w, b)",
        {"x": floats("k", "m", "n"), "w": floats("m", "n"), "b": floats("m", "n")},
        {"y": result("k", "m", "n")},
    ),
    "everything in one number": make_case(
        "def reference(x): return (x * x).mean()", {"x": floats("m", "n")}, {"y": result()}
    ),
    "a weight normalised first": make_case(
        "def reference(x, w): return x * (w / w.norm())",
        {"x": floats("m", "n"), "w": floats("n")},
        {"y": result("m", "n")},
    ),
    "a reduction of reductions": make_case(
        "def reference(x): return torch.softmax(x.mean(-1), -1)",
        {"x": floats("k", "m", "n")},
        {"y": result("k", "m")},
    ),
    "names that kernels use": make_case(
        "def reference(row, mask): return torch.relu(row) + mask",
        {"row": floats("first", "col"), "mask": floats("col")},
        {"last": result("first", "col")},
    ),
}
SIZES = {
    "m": 3, "n": 37, "k": 2, "fewer": 36, "entries": 11, "users": 5, "each": 3, "width": 9,
    "more": 4, "first": 4, "col": 21,
}  # fmt: skip


Drafts = dict[str, tuple[tuple[Candidate, KernelTable], ...]]


def calls_of(operator: Operator) -> list[Call]:
    sizes = {axis: SIZES[axis] for axis in operator.spec.axes}
    bindings = [{"T": dtype} for dtype in operator.spec.dtypes.get("T", ())] or [{}]
    return [Call(operator, sizes, binding) for binding in bindings]


@pytest.fixture(scope="module")
def cpp(tmp_path_factory: pytest.TempPathFactory) -> Drafts:
    """All drafts of all cases, built together: the compiler's start costs more than a kernel."""
    drafts = [(name, d) for name, case in CASES.items() for d in drafts_of(case, "cpp")]
    wanted = [(draft, calls_of(CASES[name])) for name, draft in drafts]
    tables = built(wanted, tmp_path_factory.mktemp("kernels"))
    pairs = list(zip(drafts, tables, strict=True))
    return {n: tuple((d, table) for (name, d), table in pairs if name == n) for n in CASES}


@pytest.mark.parametrize("name", CASES)
def test_every_cpp_draft_agrees_with_eager(name: str, cpp: Drafts) -> None:
    for candidate, kernels in cpp[name]:
        for call in calls_of(CASES[name]):
            call.check(candidate, kernels)


@pytest.mark.parametrize("name", CASES)
def test_every_triton_draft_agrees_with_eager(name: str) -> None:
    for candidate in drafts_of(CASES[name], "triton"):
        for call in calls_of(CASES[name]):
            call.check(candidate, interpreted(candidate))


def test_a_long_sum_of_like_numbers_in_cpp_is_as_exact_as_eager_s(tmp_path: Path) -> None:
    operator = make_case(
        "def reference(x): return (x * 0 + 1.1).sum(-1)",
        {"x": floats("m", "n")},
        {"y": result("m")},
        axes={"n": RangeAxis(min=0, max=1 << 16)},
    )
    call = Call(operator, {"m": 2, "n": 1 << 15})
    drafts = drafts_of(operator, "cpp")

    tables = built([(draft, [call]) for draft in drafts], tmp_path)

    for draft, kernels in zip(drafts, tables, strict=True):
        call.check(draft, kernels)
