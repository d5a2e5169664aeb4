import json
from pathlib import Path

import pytest

from daemon.cli.main import main
from tests.daemon.origins import HERE, Origin


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A working copy of a registry with one operator, committed."""
    origin = Origin(tmp_path)
    origin.add_operator()
    origin.run_git("worktree", "add", "--quiet", str(tmp_path / "checkout"), "main")
    return tmp_path / "checkout"


def goals(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(capsys.readouterr().out)["goals"]
    return found


def test_the_registry_that_ships_has_no_fault(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["registry", "validate"]) == 0
    assert "no fault; operators: 5" in capsys.readouterr().out


def test_every_fault_has_file_and_line(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (checkout / "registry.yaml").write_text("schema: 1\nhardwear: [x]\n")
    spec = checkout / "operators" / "gelu_bias" / "operator.yaml"
    spec.write_text(spec.read_text().replace("reference:", "referense:"))

    assert main(["registry", "validate", str(checkout)]) == 1

    said = capsys.readouterr().out
    assert f"{checkout}/registry.yaml:2: " in said
    assert f"{checkout}/operators/gelu_bias/operator.yaml:" in said


def test_faults_are_told_to_scripts_too(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (checkout / "registry.yaml").write_text("schema: 1\nhardwear: [x]\n")

    assert main(["registry", "validate", "--json", str(checkout)]) == 1

    faults = json.loads(capsys.readouterr().out)["faults"]
    assert {"path", "line", "message", "remedy"} <= set(faults[0])


def test_what_is_committed_makes_no_goal(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", "--registry", str(checkout)]) == 0
    assert "no goals since HEAD" in capsys.readouterr().out


def test_an_edit_shows_its_goals_before_it_is_committed(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reference = checkout / "operators" / "gelu_bias" / "reference.py"
    reference.write_text(reference.read_text() + "\n\ndef more() -> None:\n    pass\n")

    main(["plan", "--json", "--registry", str(checkout)])

    (goal,) = goals(capsys)
    assert (goal["operator"], goal["hardware"]) == ("gelu_bias", HERE)
    assert goal["reasons"] == ["reference changed"]


def test_goals_since_a_revision_come_in_agenda_order_with_their_reasons(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["plan", "--since", "HEAD~1", "--registry", str(checkout)])

    said = capsys.readouterr().out
    assert "goals since HEAD~1: 1" in said
    assert "operator added" in said


def test_a_folder_without_git_is_new_as_a_whole(
    checkout: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = tmp_path / "plain"
    checkout.rename(plain)
    (plain / ".git").unlink()

    main(["plan", "--json", "--registry", str(plain)])

    assert len(goals(capsys)) == 1


def test_an_unknown_revision_is_misuse(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--since", "nope", "--registry", str(checkout)]) == 2
    assert "there is no revision nope" in capsys.readouterr().err


def test_a_broken_registry_has_no_plan(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (checkout / "registry.yaml").write_text("schema: 1\nhardwear: [x]\n")

    assert main(["plan", "--registry", str(checkout)]) == 1
    assert "registry.yaml:2" in capsys.readouterr().err
