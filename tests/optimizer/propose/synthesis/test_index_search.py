"""Table searches by an index of the table, against torch where directories go wrong."""

from functools import cache
from pathlib import Path

import pytest
import torch
from torch import Tensor

from operator_registry.registry import Operator
from operator_registry.spec import InputSpec, RangeAxis
from optimizer.binding import Binding
from optimizer.candidate import Candidate
from optimizer.executor import Executor
from optimizer.plan import Launch
from optimizer.shapes import Setting
from optimizer.targets import make_target
from optimizer.targets.target import Artefact, Build
from tests.optimizer.propose.trial import (
    Call,
    catalogue,
    drafts_of,
    floats,
    hardware,
    interpreted,
    make_case,
    result,
)

LEAST, MOST = -(2**63), 2**63 - 1
LARGE = RangeAxis(min=0, max=4_194_304)


def spread(entries: int, low: int, high: int, seed: int = 3) -> list[int]:
    generator = torch.Generator().manual_seed(seed)
    return sorted(torch.randint(low, high, (entries,), generator=generator).tolist())


TABLES = {
    "spread": spread(700, 0, 10**12),
    "dense": list(range(40, 340)),
    "clustered": [*spread(200, 0, 300), *spread(200, 10**9, 10**9 + 250), 2**40],
    "all but one together": [*range(0, 900, 3), 2**62],
    "one apart in front": [LEAST, *range(500)],
    "negative": spread(300, -(10**15), -5),
    "about zero": spread(257, -1000, 1000),
    "over the whole range": [LEAST, LEAST + 1, *spread(300, LEAST, MOST), MOST - 1, MOST],
    "only the ends": [LEAST, MOST],
    "equal": [7] * 130,
    "equal at the ends": [LEAST] * 70 + [MOST] * 70,
    "one": [5],
    "two": [5, 6],
}


def needles(table: list[int]) -> Tensor:
    beside = [value + step for value in table for step in (-1, 0, 1)]
    ends = [LEAST, LEAST + 1, -1, 0, 1, MOST - 1, MOST, *spread(50, LEAST, MOST, seed=5)]
    return torch.tensor([min(max(value, LEAST), MOST) for value in (*ends, *beside)])


@cache
def search(dtype: str = "int64", *, right: bool = False) -> Operator:
    ids = InputSpec.model_validate({"shape": ("batch",), "dtype": "int64",
        "values": {"kind": "ids_from", "table": "table", "hit_share": 0.5}})  # fmt: skip
    table = InputSpec.model_validate({"shape": ("entries",), "dtype": dtype,
        "values": {"kind": "sorted_unique_ids", "below": 100_000}})  # fmt: skip
    return make_case(
        f"def reference(ids, table): return torch.searchsorted(table, ids, right={right})",
        {"ids": ids, "table": table},
        {"places": result("batch", dtype="int64")},
        axes={"entries": LARGE, "batch": LARGE},
    )


def indexed(operator: Operator) -> Candidate:
    """Return the draft with an index, which is made to use it at any size."""
    draft = drafts_of(operator, "triton")[0]
    (name,) = (name for name in draft.plan.let if name.endswith("_indexed"))
    plan = draft.plan.model_copy(update={"let": {**draft.plan.let, name: "entries > 0"}})
    return draft.model_copy(update={"plan": plan})


@cache
def searching(*, right: bool) -> tuple[Operator, Candidate]:
    operator = search(right=right)
    return operator, indexed(operator)


def run(operator: Operator, candidate: Candidate, ids: Tensor, table: Tensor) -> Tensor:
    executor = Executor(
        operator.spec, candidate.plan, candidate.chosen, kernels=interpreted(candidate),
        device="cpu",
    )  # fmt: skip
    (places,) = executor(ids, table)
    assert isinstance(places, Tensor)
    return places


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("name", TABLES)
def test_every_needle_finds_its_place(name: str, *, right: bool) -> None:
    operator, candidate = searching(right=right)
    ids, table = needles(TABLES[name]), torch.tensor(TABLES[name])

    places = run(operator, candidate, ids, table)

    assert torch.equal(places, torch.searchsorted(table, ids, right=right))


@pytest.mark.parametrize("per_bucket", [1, 16])
@pytest.mark.parametrize("name", ["spread", "all but one together", "over the whole range"])
def test_any_number_of_buckets_will_do(name: str, per_bucket: int) -> None:
    operator, candidate = searching(right=False)
    chosen = {**candidate.chosen, "PER_BUCKET": per_bucket}
    ids, table = needles(TABLES[name]), torch.tensor(TABLES[name])

    places = run(operator, candidate.model_copy(update={"chosen": chosen}), ids, table)

    assert torch.equal(places, torch.searchsorted(table, ids))


def test_a_table_of_a_narrower_dtype_may_span_all_of_it() -> None:
    operator = search("int32")
    values = [-(2**31), *spread(200, -(2**31), 2**31 - 1), 2**31 - 1]
    ids, table = needles(values), torch.tensor(values, dtype=torch.int32)

    places = run(operator, indexed(operator), ids, table)

    assert torch.equal(places, torch.searchsorted(table.long(), ids))


@pytest.mark.parametrize("ids", [[], [LEAST, 3, 4], [301, 302, MOST]])
def test_no_needles_or_all_on_one_side(ids: list[int]) -> None:
    operator, candidate = searching(right=False)
    wanted, table = torch.tensor(ids, dtype=torch.int64), torch.arange(5, 300)

    places = run(operator, candidate, wanted, table)

    assert torch.equal(places, torch.searchsorted(table, wanted))


def test_fused_work_sees_the_same_places() -> None:
    operator = catalogue()["map_id"]

    for form in ("map_id", "by_searchsorted"):
        draft = drafts_of(operator, "triton", form)[0]
        plan = draft.plan.model_copy(
            update={"let": {**draft.plan.let, "map_id_indexed": "batch > 0"}}
        )
        candidate = draft.model_copy(update={"plan": plan})
        Call(operator, {"batch": 700, "entries": 999}).check(candidate, interpreted(candidate))


def test_needles_along_rows_are_searched_by_the_index_as_well() -> None:
    ids = InputSpec.model_validate({"shape": ("m", "n"), "dtype": "int64",
        "values": {"kind": "ids_from", "table": "table", "hit_share": 0.5}})  # fmt: skip
    operator = make_case(
        "def reference(ids, table, w): return torch.bucketize(ids, table) * w",
        {"ids": ids, "table": search().spec.inputs["table"], "w": floats("n")},
        {"y": result("m", "n")},
        axes={"entries": LARGE},
    )
    candidate = indexed(operator)

    assert "tl.arange(0, ROWS)" in candidate.code
    Call(operator, {"m": 5, "n": 37, "entries": 300}).check(candidate, interpreted(candidate))


@pytest.mark.parametrize(
    ("batch", "entries", "kernels"),
    [
        (4_000_000, 1_000_000, ["map_id_index", "map_id_lookup"]),
        (50_000, 1_000_000, ["map_id"]),
        (4_000_000, 10_000, ["map_id"]),
        (0, 1_000_000, []),
        (0, 1, []),
    ],
)
def test_sizes_decide_whether_an_index_is_built(
    batch: int, entries: int, kernels: list[str]
) -> None:
    operator = catalogue()["map_id"]
    draft = drafts_of(operator, "triton")[0]
    setting = Setting({"batch": batch, "entries": entries}, {}, {})
    binding = Binding(operator.spec, draft.plan, draft.chosen, setting)

    launches = [binding.launch(s) for s in draft.plan.steps if isinstance(s, Launch)]

    assert [launch.step.kernel for launch in launches if launch] == kernels


def test_both_kernels_compile_for_the_device_without_spills(tmp_path: Path) -> None:
    operator, candidate = searching(right=True)
    call = Call(operator, {"batch": 1000, "entries": 5000})
    target = make_target(hardware("triton"))

    for instance in call.instances(candidate):
        build = Build(code=candidate.code, instances=(instance,))
        (artefact,) = target.build([build], [tmp_path / instance.kernel])

        assert isinstance(artefact, Artefact), artefact
        assert [compiled.spill_bytes for compiled in artefact.compiled] == [0]


def test_tables_of_floats_and_small_ones_have_no_index() -> None:
    values = {"kind": "sorted_unique_ids", "below": 100_000}
    table = InputSpec.model_validate({"shape": ("n",), "dtype": "int64", "values": values})
    small = make_case(
        "def reference(x, t): return torch.bucketize(x, t)",
        {"x": table.model_copy(update={"shape": ("m",)}), "t": table},
        {"y": result("m", dtype="int64")},
    )
    of_floats = make_case(
        "def reference(x, t): return torch.bucketize(x, t)",
        {"x": floats("m"), "t": floats("n")},
        {"y": result("m", dtype="int64")},
        axes={"n": LARGE},
    )

    for operator in (small, of_floats):
        assert not any("index" in draft.note for draft in drafts_of(operator, "triton"))
