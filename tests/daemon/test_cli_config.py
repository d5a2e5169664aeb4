import json
from pathlib import Path

import pytest

from daemon.cli.main import main
from daemon.config.file import BotConfig
from operator_registry.json_schema import SCHEMAS, make_schema


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KERNELEVOLVE_STATE", str(tmp_path / "state"))
    monkeypatch.delenv("KERNELEVOLVE_CEILINGS", raising=False)


def write(text: str, name: str = ".github/kernelevolve.yml") -> Path:
    path = Path(name)
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    return path


def test_a_good_configuration_shows_what_it_comes_to(capsys: pytest.CaptureFixture[str]) -> None:
    write("version: 1\nlimits: {open_pull_requests: 3}\n")

    assert main(["config", "check"]) == 0

    said = capsys.readouterr().out
    assert ".github/kernelevolve.yml: no fault" in said
    assert ["limits.open_pull_requests", "3", "given"] in [row.split() for row in said.splitlines()]


def test_faults_have_file_line_and_nearest_key(capsys: pytest.CaptureFixture[str]) -> None:
    write("version: 1\npuase: true\n", "mine.yml")

    assert main(["config", "check", "mine.yml"]) == 1

    assert capsys.readouterr().out == "mine.yml:2: unknown key puase; did you mean 'pause'?\n"


def test_bytes_that_are_no_text_are_a_fault(capsys: pytest.CaptureFixture[str]) -> None:
    write("version: 1\n# \udcff\n")

    assert main(["config", "check"]) == 1

    assert "kernelevolve.yml:2: byte 0xff is no UTF-8" in capsys.readouterr().out


def test_a_file_that_is_away_is_misuse(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "check"]) == 2
    assert "there is no file .github/kernelevolve.yml" in capsys.readouterr().err


def test_scripts_are_told_what_the_ceilings_cut(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNELEVOLVE_CEILINGS", "ceilings.yml")
    write("version: 1\nlimits: {device_hours_per_day: 2}\n", "ceilings.yml")
    write("version: 1\n")

    assert main(["config", "check", "--json"]) == 0

    told = json.loads(capsys.readouterr().out)
    assert told["capped"] == ["limits.device_hours_per_day"]
    assert BotConfig.model_validate(told["config"]).limits.device_hours_per_day == 2


def test_scripts_are_told_of_faults(capsys: pytest.CaptureFixture[str]) -> None:
    write("pause: true\n")

    assert main(["config", "check", "--json"]) == 1

    (fault,) = json.loads(capsys.readouterr().out)["faults"]
    assert fault["message"] == "version is missing"


def test_broken_ceilings_are_misuse(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNELEVOLVE_CEILINGS", "ceilings.yml")
    write("version: 1\nlimit: {}\n", "ceilings.yml")
    write("version: 1\n")

    assert main(["config", "check"]) == 2
    assert "ceilings.yml:2: unknown key limit" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "kind"), [("config", BotConfig), *SCHEMAS])
def test_the_schema_of_each_kind_of_file_is_printed(
    name: str, kind: type, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["schema", name]) == 0
    assert json.loads(capsys.readouterr().out) == make_schema(kind)


def test_a_configuration_needs_its_version() -> None:
    assert make_schema(BotConfig)["required"] == ["version"]
