"""A published kernel as a function, built and run on the host's processor."""

from pathlib import Path

import pytest
import torch

import optimizer
from knowledge.evidence import Evidence
from optimizer.candidate import Candidate
from optimizer.errors import CallError, UnsupportedDeviceError
from optimizer.kernel import ByPeer, ByVariant, make_kernel
from optimizer.kernel_page import write_kernel
from optimizer.loading import LoadedKernel
from optimizer.plan import LibraryCall, Plan
from tests.makers import HARDWARE, OPERATOR, make_candidate, make_evidence

CANDIDATE = make_candidate()
HANDED = "reference/eager"


def hand_back_w1(evidence: Evidence) -> Evidence:
    first, second = evidence.workloads
    handed = second.model_copy(update={"served_by": HANDED})
    return evidence.model_copy(update={"workloads": (first, handed)})


def publish(folder: Path, candidate: Candidate = CANDIDATE) -> Path:
    evidence = hand_back_w1(make_evidence(candidate, 2.0, 1.0))
    kernel = make_kernel(OPERATOR, HARDWARE, candidate=candidate, evidence=evidence)
    write_kernel(folder / "kernel", kernel)
    return folder / "kernel"


def same(got: object, wanted: torch.Tensor) -> bool:
    return isinstance(got, torch.Tensor) and torch.equal(got, wanted)


@pytest.fixture(scope="module")
def scale(tmp_path_factory: pytest.TempPathFactory) -> LoadedKernel:
    folder = tmp_path_factory.mktemp("published")
    return optimizer.load(publish(folder), cache=folder / "cache")


@pytest.mark.parametrize("rows", [0, 1, 63, 64, 4096])
def test_it_computes_what_the_reference_does(scale: LoadedKernel, rows: int) -> None:
    x = torch.randn(rows)

    assert same(scale(x), x * 2)


def test_attributes_are_keyword_arguments(scale: LoadedKernel) -> None:
    x = torch.randn(16)

    assert same(scale(x, factor=0.5), x * 0.5)


def test_the_nearest_workload_decides_what_serves(scale: LoadedKernel) -> None:
    assert isinstance(scale.served_by(torch.randn(100)), ByVariant)
    assert scale.served_by(torch.randn(900)) == ByPeer(peer=HANDED)


def test_wrong_arguments_are_named(scale: LoadedKernel) -> None:
    with pytest.raises(CallError, match="scale takes 1 inputs: x"):
        scale(torch.randn(4), torch.randn(4))


def test_a_second_process_finds_the_kernel_built(tmp_path: Path) -> None:
    folder, cache = publish(tmp_path), tmp_path / "cache"
    optimizer.load(folder, cache=cache)(torch.randn(64))
    built = {path: path.stat().st_mtime_ns for path in cache.rglob("*.so")}

    optimizer.load(folder, cache=cache)(torch.randn(64))

    assert built
    assert {path: path.stat().st_mtime_ns for path in cache.rglob("*.so")} == built


def test_a_kernel_for_a_device_that_is_not_here_is_refused(tmp_path: Path) -> None:
    newer = HARDWARE.model_copy(
        update={"compile": HARDWARE.compile.model_copy(update={"arch": "x86-64-v9"})}
    )
    evidence = make_evidence(CANDIDATE, 2.0)
    kernel = make_kernel(OPERATOR, newer, candidate=CANDIDATE, evidence=evidence)
    write_kernel(tmp_path / "kernel", kernel)

    with pytest.raises(UnsupportedDeviceError, match="cpu-x86-64-v3 can't run here"):
        optimizer.load(tmp_path / "kernel")


def test_a_host_side_in_python_is_loaded_and_its_page_says_so(tmp_path: Path) -> None:
    call = LibraryCall(op="aten::mul.out", arguments=(), out=())
    candidate = Candidate(
        code="import torch\n\n\ndef run(x, y, *, factor):\n    torch.mul(x, factor, out=y)\n",
        plan=Plan(language="python", steps=(call,)),
        origin="test",
        host="python",
    )
    folder, x = publish(tmp_path, candidate), torch.randn(9)

    assert same(optimizer.load(folder, cache=tmp_path)(x, factor=0.5), x * 0.5)
    page = (folder / "README.md").read_text(encoding="utf-8")
    assert "`host: python`" in page
    assert "launches `aten::mul.out`" in page
