from pathlib import Path

import pytest

from daemon.cli import demo as cli_demo
from daemon.cli.main import main
from tests.daemon.origins import SCRIPTED


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)


def test_without_a_win_it_says_so_and_exits_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli_demo, "Jobs", lambda: SCRIPTED)

    assert main(["demo"]) == 1

    captured = capsys.readouterr()
    assert "the daemon looks: nothing to do" in captured.out
    assert "goal: gelu_bias on" in captured.out
    assert "not better (nothing was faster)" in captured.out
    assert "no faster kernel was proven" in captured.err


def test_an_operator_that_the_catalogue_lacks_is_misuse(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["demo", "--operator", "gelu"]) == 2
    assert "did you mean gelu_bias?" in capsys.readouterr().err
