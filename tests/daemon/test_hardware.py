"""A draft of a hardware's file says what the machine told, and is valid as it is."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from daemon.cli.main import main
from daemon.hardware import gpu as asked
from daemon.hardware.draft import slug
from daemon.hardware.gpu import draft_gpu
from daemon.hardware.processor import draft_processor
from daemon.host import Gpu, Host
from operator_registry.hardware import HardwareSpec
from operator_registry.registry import CATALOG, load_registry
from optimizer.targets import host_cpu_arch

H200 = Gpu("NVIDIA H200", "sm_90", "GPU-1")
TOLD = {
    asked.MULTIPROCESSORS: 132, asked.CLOCK_KHZ: 1_980_000, asked.MEMORY_CLOCK_KHZ: 3_201_000,
    asked.BUS_BITS: 6144, asked.L2_BYTES: 62_914_560, asked.THREADS: 2048,
    asked.REGISTERS: 65_536, asked.SHARED_BYTES: 232_448,
}  # fmt: skip


@dataclass(frozen=True)
class Driver:
    """Tells what an H200's driver does."""

    told: dict[int, int]

    def attribute(self, index: int, which: int) -> int:
        return self.told[which]

    def memory_bytes(self, index: int) -> int:
        return 150_754_820_096


def load(text: str, folder: Path, name: str) -> HardwareSpec:
    (folder / "hardware").mkdir()
    (folder / "hardware" / f"{name}.yaml").write_text(text, encoding="utf-8")
    (folder / "registry.yaml").write_text(f"schema: 1\nhardware: [{name}]\n", encoding="utf-8")
    return load_registry(folder).hardware[name]


def test_the_draft_of_this_processor_is_valid(tmp_path: Path) -> None:
    draft = draft_processor()

    found = load(draft.to_yaml(), tmp_path, draft.name)

    assert found.compile.arch == host_cpu_arch()
    assert found.limits.last_level_cache_mb > 0
    assert found.limits.peak_tflop_s["float32"] > 0
    assert Host(cpu_arch=host_cpu_arch()).find_obstacle(found) is None


def test_what_a_person_must_fill_in_is_marked_and_convicts_nobody() -> None:
    draft = draft_processor()
    widest = load_registry(CATALOG).hardware["cpu-x86-64-v3"].limits.dram_bandwidth_gb_s

    assert "dram_bandwidth_gb_s" in next(
        line for line in draft.to_yaml().splitlines() if "FILL IN from" in line
    )
    assert not draft.is_complete
    assert draft.limits["dram_bandwidth_gb_s"].value >= widest


def test_the_draft_of_a_gpu_is_valid_and_near_its_data_sheet(tmp_path: Path) -> None:
    draft = draft_gpu(H200, Driver(TOLD))
    sheet = load_registry(CATALOG).hardware["h200"]

    found = load(draft.to_yaml(), tmp_path, "h200")

    assert found.compile == sheet.compile
    assert found.limits.multiprocessors == sheet.limits.multiprocessors
    assert found.limits.dram_bandwidth_gb_s == pytest.approx(
        sheet.limits.dram_bandwidth_gb_s, rel=0.03
    )
    assert found.limits.peak_tflop_s["float32"] == pytest.approx(67, rel=0.01)
    assert Host(cpu_arch="x86-64-v4", gpus=(H200,)).find_obstacle(found) is None


def test_a_driver_that_tells_no_clock_leaves_the_bandwidth_to_a_person() -> None:
    draft = draft_gpu(H200, Driver(TOLD | {asked.MEMORY_CLOCK_KHZ: 0}))

    assert draft.limits["dram_bandwidth_gb_s"].source == "stand-in"


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("NVIDIA H200", "h200"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA A100-SXM4-80GB", "a100"),
        ("NVIDIA GeForce RTX 4090", "4090"),
        ("Tesla T4", "t4"),
        ("Something", "something"),
    ],
)
def test_a_gpus_slug_is_found_in_its_name_again(name: str, known: str) -> None:
    assert slug(name) == known
    assert known in name.lower()


def test_the_command_writes_a_file_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "new.yaml"

    assert main(["hardware", "detect", "--cpu", "--out", str(file)]) == 0
    assert main(["hardware", "detect", "--cpu", "--out", str(file)]) == 2

    assert file.read_text(encoding="utf-8").startswith("# yaml-language-server")
    assert "is there already" in capsys.readouterr().err
