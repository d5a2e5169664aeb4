"""Kernels that are built when a call first needs them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch

from optimizer.executor import Executor
from optimizer.targets import BuildingTable, host_cpu_arch
from optimizer.targets.cpu import CpuTarget
from optimizer.targets.target import Artefact, Build, BuildError, KernelTable
from tests.optimizer.plans import ADD, CPP

TARGET = CpuTarget(host_cpu_arch())


@dataclass
class CountingTarget:
    """A real target that remembers what it built."""

    built: list[str] = field(default_factory=list)
    toolchain: str = "one"

    def build(
        self, builds: Sequence[Build], folders: Sequence[Path]
    ) -> Sequence[Artefact | BuildError]:
        self.built += [i.symbol for b in builds for i in b.instances]
        return TARGET.build(builds, folders)

    def load(self, folder: Path) -> KernelTable:
        return TARGET.load(folder)


def add(target: CountingTarget, folder: Path, *, code: str = CPP, rows: int = 3) -> None:
    kernels = BuildingTable(target, code, folder)
    executor = Executor(ADD.spec, ADD.cpp, {}, kernels=kernels, device="cpu")
    x = torch.ones(rows)
    (z,) = executor(x, x)
    (again,) = executor(x, x)
    torch.testing.assert_close((z, again), (2 * x, 2 * x))


def test_a_kernel_is_built_once_and_found_by_the_next_table(tmp_path: Path) -> None:
    target = CountingTarget()

    add(target, tmp_path)
    add(target, tmp_path, rows=7)

    assert len(target.built) == 1


def test_other_code_or_another_toolchain_is_another_kernel(tmp_path: Path) -> None:
    target = CountingTarget()

    add(target, tmp_path)
    add(target, tmp_path, code=f"// other\n{CPP}")
    target.toolchain = "two"
    add(target, tmp_path)

    assert len(target.built) == 3


def test_code_that_does_not_compile_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(BuildError):
        add(CountingTarget(), tmp_path, code="nonsense KERNEL(add)")

    assert list(tmp_path.iterdir()) == []
