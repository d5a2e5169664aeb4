"""A candidate's own host side: what `run` is given, and what its caller makes of it."""

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from optimizer.candidate import Candidate
from optimizer.errors import CallError, PlanError
from optimizer.host_python import HostPython, Run, load_run
from optimizer.plan import Launch, LibraryCall, Plan
from tests.makers import make_candidate
from tests.optimizer.plans import ADD, HEADS, POSITIVE, RMS, heads_reference, make_heads

SUM = LibraryCall(op="aten::add.out", arguments=(), out=())


def positive(x: Tensor, count: Tensor, kept: Tensor, found: Tensor) -> None:
    """Twice the elements above zero, in order."""
    above = 2 * x[x > 0]
    kept[: len(above)] = above
    count.fill_(len(above))
    found[0] = len(above)


def heads(
    lengths: list[Tensor], values: list[Tensor], *outputs: Sequence[Tensor], most: int
) -> None:
    """The first `most` values of each row of each feature."""
    kept_lengths, kept, sizes = outputs
    wanted_lengths, wanted = heads_reference(lengths, values, most)
    for place, found in enumerate(wanted):
        kept_lengths[place].copy_(wanted_lengths[place])
        kept[place][: len(found)] = found
        sizes[place].fill_(len(found))


def test_outputs_are_the_callers() -> None:
    seen: list[tuple[Tensor, ...]] = []

    def run(*tensors: Tensor) -> str:
        seen.append(tensors)
        tensors[2].copy_(tensors[0] + tensors[1])
        return "nobody looks at it"

    x, y = torch.randn(2, 5)
    (z,) = HostPython(ADD.spec, {}, run, device="cpu")(x, y)

    assert isinstance(z, Tensor)
    assert torch.equal(z, x + y)
    assert z is seen[0][2]


def test_attributes_and_tunables_come_by_name() -> None:
    told: dict[str, object] = {}
    host = HostPython(RMS.spec, {"BLOCK": 8}, lambda *_, **named: told.update(named), device="cpu")

    host(torch.ones(2, 3), torch.ones(3), eps=0.5)

    assert told == {"BLOCK": 8, "eps": 0.5}


@pytest.mark.parametrize("rows", [0, 1, 7])
def test_a_size_that_the_data_decide_is_an_output_too(rows: int) -> None:
    x = torch.arange(rows, dtype=torch.float32) - 2
    count, kept = HostPython(POSITIVE.spec, {}, positive, device="cpu")(x)

    assert isinstance(kept, Tensor)
    assert torch.equal(kept, 2 * x[x > 0])
    assert isinstance(count, Tensor)
    assert count.item() == len(kept)


def test_a_list_has_a_size_for_each_member() -> None:
    lengths, values = make_heads()
    kept_lengths, kept = HostPython(HEADS.spec, {}, heads, device="cpu")(lengths, values, most=2)

    wanted_lengths, wanted = heads_reference(lengths, values, 2)
    assert all(map(torch.equal, kept_lengths, wanted_lengths))
    assert [len(member) for member in kept] == [len(member) for member in wanted]
    assert all(map(torch.equal, kept, wanted))


@pytest.mark.parametrize("size", [-1, 4])
def test_a_size_out_of_its_range_is_refused(size: int) -> None:
    host = HostPython(POSITIVE.spec, {}, lambda *t: t[-1].fill_(size), device="cpu")

    with pytest.raises(PlanError, match="wanted 0 to 3"):
        host(torch.ones(3))


def test_inputs_are_contiguous_and_of_the_operator() -> None:
    seen: list[bool] = []
    run: Run = lambda *tensors: seen.append(all(t.is_contiguous() for t in tensors))  # noqa: E731
    host = HostPython(ADD.spec, {}, run, device="cpu")
    host(torch.ones(4, 2)[:, 0], torch.ones(4))

    assert seen == [True]
    with pytest.raises(CallError):
        host(torch.ones(4))


def test_code_without_run_is_no_host_side() -> None:
    with pytest.raises(PlanError, match="no function run"):
        load_run("def other(): pass\n", "kernel.py")


def test_what_code_raises_is_told_with_its_own_lines() -> None:
    run = load_run("def run(x):\n    raise ValueError(x)\n", "kernel.py")

    with pytest.raises(ValueError, match="seven") as caught:
        run("seven")
    assert caught.traceback[-1].statement.lines == ["    raise ValueError(x)"]


def test_a_candidate_has_one_host_side() -> None:
    declared = Plan(language="python", steps=(SUM,))
    run = Plan(language="cpp", steps=(Launch(kernel="add", arguments=()),))

    with pytest.raises(ValueError, match="host: plan has a plan in python"):
        Candidate(plan=declared, origin="test")
    with pytest.raises(ValueError, match="host: python has a plan in cpp"):
        Candidate(plan=run, origin="test", host="python")
    assert Candidate(plan=declared, origin="test", host="python").id != make_candidate().id
