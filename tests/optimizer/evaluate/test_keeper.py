"""Memory that a keeper holds and a worker writes into, and files that pass between processes."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from knowledge.evidence import Evidence
from knowledge.outcome import Failed, Incorrect, Passed
from operator_registry.hardware import HardwareSpec
from optimizer.candidate import Candidate
from optimizer.evaluate.device_state import find_states
from optimizer.evaluate.evaluator import Effort, Evaluator
from optimizer.evaluate.handing import fetch, offer
from optimizer.evaluate.health import Watch
from optimizer.evaluate.keeping import KeptMemory
from optimizer.evaluate.lenders import make_lender
from optimizer.evaluate.memory import SharedFolder
from optimizer.evaluate.process import Place, Process
from optimizer.evaluate.sandbox import Limits, start
from optimizer.evaluate.timing import flush_bytes
from optimizer.evaluate.tray import Lender
from optimizer.plan import Launch, Plan
from tests.makers import OPERATOR

pytestmark = pytest.mark.alone

CODE = """\
import triton
import triton.language as tl


@triton.jit
def scale(x, y, rows, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < rows)
    tl.store(y + at, value * factor, mask=at < rows)


def run(x, y, *, factor):
    if len(x):
        scale[(triton.cdiv(len(x), 256),)](x, y, len(x), factor, BLOCK=256)
"""
LATE = (
    CODE.replace("def run(", "def real(")
    + """

REAL = torch.Tensor.copy_


def run(x, y, *, factor):
    def late(self, other, *rest, **named):
        if other.data_ptr() == y.data_ptr():
            real(x, y, factor=factor)
        return REAL(self, other, *rest, **named)

    torch.Tensor.copy_ = late
"""
)
BROKEN = CODE.replace("tl.program_id(0) *", "(tl.program_id(0) + 1000000000000) *").replace(
    "mask=at < rows", "mask=at >= 0"
)


def make(code: str) -> Candidate:
    plan = Plan(language="python", steps=(Launch(kernel="scale", arguments=()),))
    return Candidate(code=code, plan=plan, origin="test", host="python")


def test_an_open_file_is_handed_to_the_first_that_asks(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("well", encoding="ascii")
    offer(os.open(tmp_path / "secret", os.O_RDONLY), tmp_path / "socket")

    with open(fetch(str(tmp_path / "socket")), encoding="ascii") as file:  # noqa: PTH123 - by number
        assert file.read() == "well"
    with pytest.raises(OSError, match=r"refused|No such|nothing|reset"):
        fetch(str(tmp_path / "socket"))


def test_a_file_reaches_a_worker_through_its_walls(shared: SharedFolder) -> None:
    trays = shared.folder("trays")
    offer(os.open("/dev/zero", os.O_RDONLY), trays / "socket")

    with start("optimizer.evaluate.handing:fetch", limits=Limits(fill=(trays,))) as child:
        assert int(child.ask(str(trays / "socket"), deadline_s=60)) > 2


@pytest.fixture(scope="module")
def shared() -> Iterator[SharedFolder]:
    folder = SharedFolder()
    yield folder
    folder.close()


@pytest.fixture(scope="module")
def place(shared: SharedFolder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("place")
    bare = Place(
        device="cuda", threads=1, cache_bytes=0, folder=folder, memory_gib=64, shared=shared.path
    )
    lender = make_lender(bare, shared)
    yield replace(bare, lender=lender)
    lender.close()


@pytest.fixture(scope="module")
def lender(place: Place) -> Lender:
    assert place.lender is not None
    return place.lender


@pytest.mark.gpu
def test_the_keeper_fills_and_copies_what_a_worker_has_mapped(place: Place, lender: Lender) -> None:
    with Process(place) as process:
        process.greet(timed=False)

        assert lender.obstacle is None
        assert process.memory is not None
        process.memory.fill(4096, 8192, 0x5A)
        found = process.memory.read(4096, 8192)

    assert found is not None
    assert torch.equal(found, torch.full((8192,), 0x5A, dtype=torch.uint8))


@pytest.mark.gpu
def test_memory_outlives_the_worker_that_had_it(place: Place, lender: Lender) -> None:
    memory = lender.lend(1 << 20)
    assert memory is not None
    with Process(place) as process:
        process.greet(timed=False)
    memory.fill(0, 16, 7)

    found = memory.read(0, 16)

    assert found is not None
    assert found.tolist() == [7] * 16
    memory.close()


@pytest.fixture(scope="module")
def judge(state: Path, h200: HardwareSpec) -> Iterator[Evaluator]:
    effort = Effort(measure_s=0.1, pairs=2, pair_s=0.3, eager_only=True)
    with Evaluator(OPERATOR, h200, folder=state / "keeper", effort=effort) as judge:
        yield judge


@pytest.mark.gpu
def test_a_host_side_in_python_passes_on_a_device(judge: Evaluator) -> None:
    (evaluation,) = judge.evaluate([make(CODE)])

    assert isinstance(evaluation.outcome, Passed), evaluation.outcome
    assert not evaluation.outcome.library_only


@pytest.mark.gpu
def test_who_computes_at_the_copy_has_computed_nothing(judge: Evaluator) -> None:
    (evaluation,) = judge.evaluate([make("import torch\n" + LATE)])

    assert isinstance(evaluation.outcome, Incorrect), evaluation.outcome


@pytest.mark.gpu
def test_a_broken_context_harms_only_who_broke_it(judge: Evaluator, state: Path) -> None:
    broken, well = judge.evaluate([make(BROKEN), make(CODE)])

    assert isinstance(broken.outcome, Failed | Incorrect)
    assert isinstance(well.outcome, Passed), well.outcome
    assert list(find_states(state)) == []
    Watch(state / "keeper", "h200").refuse_cordoned()


@pytest.mark.gpu
def test_a_confirming_run_of_python_ends_in_evidence(judge: Evaluator) -> None:
    found = judge.confirm(make(CODE), deadline_s=200, alpha=0.01, handed_back=())

    assert isinstance(found, Evidence), found
    assert (found.host, found.launched) == ("python", ("scale",))
    assert not any("copied by the process" in text for text in found.not_tested)


@pytest.mark.gpu
def test_many_workers_flush_the_cache_by_the_same_memory(place: Place, lender: Lender) -> None:
    memory = lender.lend(flush_bytes(1 << 20))
    assert isinstance(memory, KeptMemory)
    memory.fill(0, 16, 7)

    for _ in range(2):
        there = replace(
            place, lender=None, cache_bytes=1 << 20, flush_file=Path(memory.hand_again())
        )
        with Process(there) as process:
            process.greet()

    left = memory.read(0, 16)
    memory.close()
    assert left is not None
    assert not left.any()
