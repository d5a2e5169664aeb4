"""Kernels signed and verified from the command line, by real jobs."""

import json
from pathlib import Path

import pytest

from daemon.cli.main import main
from daemon.sealing import seal
from operator_registry.hardware import HardwareSpec
from operator_registry.registry import CATALOG, load_registry
from optimizer.kernel import make_kernel
from optimizer.kernel_page import write_kernel
from optimizer.signing import read_signer
from tests.makers import HARDWARE, OPERATOR, make_candidate, make_evidence

CANDIDATE = make_candidate()


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELEVOLVE_STATE", str(tmp_path / "state"))


def publish(kernels: Path, hardware: HardwareSpec) -> Path:
    evidence = make_evidence(CANDIDATE, 2.0).model_copy(update={"hardware": hardware.name})
    kernel = make_kernel(OPERATOR, hardware, candidate=CANDIDATE, evidence=evidence)
    folder = kernels / OPERATOR.name / hardware.name
    write_kernel(folder, kernel)
    return folder


def elsewhere() -> HardwareSpec:
    """A device that no machine has."""
    h200 = load_registry(CATALOG).hardware["h200"]
    target = h200.compile.model_copy(update={"arch": "sm_999"})
    return h200.model_copy(update={"compile": target})


def test_a_key_is_made_shown_and_signs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = publish(tmp_path / "kernels", HARDWARE)

    assert main(["key", "show"]) == 1
    assert "unsigned" in capsys.readouterr().out
    assert main(["sign", str(folder)]) == 2
    assert main(["key", "new", str(tmp_path / "key")]) == 0
    monkeypatch.setenv("KERNELEVOLVE_SIGNING_KEY", str(tmp_path / "key"))
    assert main(["sign", str(folder)]) == 0
    capsys.readouterr()
    assert main(["key", "show"]) == 0

    assert capsys.readouterr().out.strip() == read_signer(folder)


def test_a_key_that_is_there_is_not_made_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["key", "new", str(tmp_path / "key")])

    assert main(["key", "new", str(tmp_path / "key")]) == 1
    assert "no signing key" in capsys.readouterr().err


def test_without_a_key_nothing_is_sealed(tmp_path: Path) -> None:
    folder = publish(tmp_path / "kernels", HARDWARE)

    seal(folder, None)

    assert read_signer(folder) == ""


@pytest.mark.drill
def test_the_wall_tells_of_each_kernel_and_fails_for_one_that_fell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    absent = publish(tmp_path / "kernels", elsewhere())
    fallen = publish(tmp_path / "kernels", HARDWARE)
    code = next(fallen.glob("*/kernel.cpp"))
    code.write_text(code.read_text().replace("x[i] *", "x[i] +"))

    exit_code = main(["verify", "--all", str(tmp_path / "kernels"), "--json"])

    found = json.loads(capsys.readouterr().out)
    kinds = {name: result["verifications"][0]["finding"]["kind"] for name, result in found.items()}
    assert kinds == {
        absent.relative_to(tmp_path / "kernels").as_posix(): "cannot_run",
        fallen.relative_to(tmp_path / "kernels").as_posix(): "not_reproduced",
    }
    assert exit_code == 1


def test_the_wall_stands_where_nothing_fell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(tmp_path / "kernels", elsewhere())

    assert main(["verify", "--all", str(tmp_path / "kernels")]) == 0
    said = capsys.readouterr().out
    assert "cannot run" in said
    assert "unsigned" in said


def test_a_folder_without_kernels_is_misuse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", "--all", str(tmp_path)]) == 2
    assert "dispatch.json" in capsys.readouterr().err
