"""Memory: what is weighed, and what it takes to be refused for it."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from knowledge.evidence import Better, Evidence, NotBetter
from knowledge.verdict import MEMORY_SLACK_BYTES, judge
from optimizer.evaluate.guards import ALL_UP
from optimizer.evaluate.protocol import Weighed
from optimizer.evaluate.weights import UNTOLD_BYTES, Weights, peak_of, workspace_of
from optimizer.profilers.memory import peak_of as peak_of_changes
from optimizer.profilers.memory import weigh
from tests.makers import make_candidate, make_evidence

pytestmark = pytest.mark.alone

MIB = 1 << 20


def weighed(mine: int, theirs: int, *, leave: float = 1.1) -> Evidence:
    evidence = make_evidence(make_candidate())
    (workload,) = evidence.workloads
    (peer,) = workload.peers
    heavy = workload.model_copy(
        update={
            "peak_bytes": mine,
            "peers": (peer.model_copy(update={"peak_bytes": theirs}),),
        }
    )
    return evidence.model_copy(update={"workloads": (heavy,), "memory_leave": leave})


def test_a_kernel_may_take_a_tenth_more_than_the_baseline() -> None:
    assert isinstance(judge(weighed(109 * MIB, 100 * MIB)), Better)
    verdict = judge(weighed(112 * MIB, 100 * MIB))

    assert isinstance(verdict, NotBetter)
    assert "the spec allows 1.1 times as much" in verdict.reason


def test_the_spec_may_allow_more() -> None:
    assert isinstance(judge(weighed(290 * MIB, 100 * MIB, leave=3.0)), Better)


def test_a_little_memory_is_nobodys_gain() -> None:
    assert isinstance(judge(weighed(MEMORY_SLACK_BYTES, 64)), Better)


def test_the_workspace_of_a_call_is_part_of_what_it_takes() -> None:
    x = torch.ones(1 << 20)

    lean, _ = weigh(lambda: torch.exp(x), device="cpu")
    rich, _ = weigh(lambda: torch.exp(x + 1).sum(), device="cpu")

    assert lean.traced_bytes == x.nbytes
    assert rich.traced_bytes == pytest.approx(2 * x.nbytes, rel=0.01)


@given(st.lists(st.integers(1, 1000)))
def test_what_is_given_back_at_once_is_never_held_together(sizes: list[int]) -> None:
    changes = [change for size in sizes for change in (size, -size)]

    assert peak_of_changes(changes) == max(sizes, default=0)
    assert peak_of_changes(sizes) == sum(sizes)


def test_what_native_code_takes_for_itself_counts_beyond_the_usual_growth() -> None:
    usual = Weighed(
        peak_bytes=100, workspace_bytes=10, held_bytes=60, resident_bytes=UNTOLD_BYTES + 60
    )
    hidden = usual.model_copy(update={"resident_bytes": usual.resident_bytes + 5000})

    assert (peak_of(usual), workspace_of(usual)) == (100, 10)
    assert (peak_of(hidden), workspace_of(hidden)) == (5100, 5010)


def test_a_workload_that_a_peer_serves_has_the_peers_weight() -> None:
    weights = Weights(ALL_UP)
    weights.peers["w0"] = {"reference/eager": Weighed(peak_bytes=7, workspace_bytes=1)}
    (row,) = make_evidence(make_candidate()).workloads

    described = weights.describe(row.model_copy(update={"served_by": "reference/eager"}))

    assert described.peak_bytes == 7
    assert described.peers[0].peak_bytes == 7
    assert weights.describe(row).peak_bytes is None


@pytest.mark.gpu
def test_the_workspace_of_a_call_on_a_device_is_weighed() -> None:
    x = torch.ones(1 << 20, device="cuda")

    lean, _ = weigh(lambda: torch.exp(x), device="cuda")
    rich, _ = weigh(lambda: torch.exp(x + 1), device="cuda")

    assert lean.traced_bytes == x.nbytes
    assert rich.traced_bytes == 2 * x.nbytes
