"""Peers: who is compared with, and who is left out with a reason."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from operator_registry.hardware import HardwareSpec
from operator_registry.registry import Operator
from optimizer.evaluate.evaluator import Effort
from optimizer.evaluate.peer_table import (
    AbsentPeer,
    PeerProcess,
    PeerTable,
    find_table,
    keep_table,
    measure_peers,
    tell_absent,
)
from optimizer.evaluate.peers import PeerAbsentError, Peers, peer_names
from optimizer.evaluate.workbench import Workbench
from tests.makers import OPERATOR

pytestmark = pytest.mark.alone

SOURCE = """\
import os
import torch
def scale(x, factor): return x * factor
def twice(x, factor): return x + x
def wrong(x, factor): return x * (factor + 1)
def broken(x, factor): raise ValueError("no such luck")
def deadly(x, factor): os._exit(3)
def spoiling(x, factor): return x.mul_(factor)
"""
FORMS = ("wrong", "broken", "deadly", "spoiling", "twice")
MIXED = Operator(spec=OPERATOR.spec.model_copy(update={"equivalents": FORMS}), source=SOURCE)
EAGER = tuple(name for name in peer_names(MIXED, "cpu") if name.endswith("/eager"))


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory, host: HardwareSpec) -> Iterator[PeerTable]:
    folder = tmp_path_factory.mktemp("peers")
    bench = Workbench(MIXED, host, folder=folder, effort=Effort())
    sides = [PeerProcess(MIXED, host, bench.place) for _ in range(2)]
    yield measure_peers(sides, bench.public_cases(sets=2), EAGER)
    for side in sides:
        side.close()
    bench.close()


def reason(table: PeerTable, peer: str) -> str:
    return next(one.reason for one in table.absent if (one.workload, one.peer) == ("w0", peer))


def test_every_form_is_a_peer_in_every_mode() -> None:
    operator = OPERATOR.model_copy(
        update={"spec": OPERATOR.spec.model_copy(update={"equivalents": ("fused",)})}
    )

    assert peer_names(operator, "cpu")[:2] == ("reference/eager", "fused/eager")
    assert len(peer_names(operator, "cpu")) == 2 * 3
    assert len(peer_names(operator, "cuda")) == 2 * 6


@pytest.mark.drill
def test_forms_that_agree_are_timed_also_after_one_that_kills_its_process(table: PeerTable) -> None:
    assert table.names("w0") == ("reference/eager", "twice/eager")
    assert table.names("w1") == ("reference/eager", "twice/eager")


@pytest.mark.drill
@pytest.mark.parametrize(
    ("peer", "why"),
    [
        ("wrong/eager", "disagrees with the reference"),
        ("broken/eager", "no such luck"),
        ("deadly/eager", "exited with code 3"),
        ("spoiling/eager", "writes into its inputs"),
    ],
)
def test_a_peer_that_can_not_be_compared_with_is_absent(
    table: PeerTable, peer: str, why: str
) -> None:
    assert why in reason(table, peer)


def test_absent_peers_are_told_once_for_all_workloads() -> None:
    absent = [AbsentPeer(workload=w, peer="a/eager", reason="away") for w in ("w0", "w1")]

    assert list(tell_absent(absent)) == ["a/eager on w0, w1: away"]


@pytest.mark.drill
def test_a_kept_table_is_found_again(tmp_path: Path, table: PeerTable) -> None:
    keep_table(tmp_path / "peers" / "t.json", table)

    assert find_table(tmp_path / "peers" / "t.json") == table


def test_a_damaged_table_is_none(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text("{", encoding="utf-8")

    assert find_table(tmp_path / "t.json") is None


def test_max_autotune_is_no_second_peer_without_a_matrix_product() -> None:
    peers = Peers(OPERATOR, "cpu")

    with pytest.raises(PeerAbsentError, match="same code"):
        peers.bind("reference/compile-max-autotune", [torch.ones(3)], {"factor": 2.0})
