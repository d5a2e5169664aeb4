import subprocess
import sys
from pathlib import Path

import pytest

import daemon
from daemon.cli import main as cli
from daemon.cli import search as cli_search
from daemon.cli.main import main
from tests.daemon.origins import SCRIPTED, Origin
from tests.makers import make_candidate

ROOT = Path(__file__).parents[2]
PROGRAMS = {"__init__", "__main__", "tether"}
FOLDER = Path(daemon.__file__).parent
MODULES = sorted(
    ".".join(path.relative_to(FOLDER.parent).with_suffix("").parts)
    for path in FOLDER.rglob("*.py")
    if path.stem not in PROGRAMS
)
COMMANDS = (
    ("registry", "validate"),
    ("plan",),
    ("config", "check"),
    ("schema",),
    ("optimize",),
    ("tree",),
    ("evaluate",),
    ("job",),
    ("verify",),
    ("sign",),
    ("key", "new"),
    ("key", "show"),
    ("status",),
    ("commands",),
    ("pr", "list"),
    ("pr", "show"),
    ("pr", "close"),
    ("run",),
    ("serve",),
    ("fleet", "cordon"),
    ("fleet", "uncordon"),
    ("fleet", "drain"),
    ("hardware", "detect"),
    ("pause",),
    ("resume",),
    ("admit",),
    ("doctor",),
    ("knowledge",),
    ("bench", "catalog"),
    ("bench", "fleet"),
    ("bench", "throughput"),
    ("demo",),
    ("github", "doctor"),
)


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELEVOLVE_STATE", str(tmp_path / "state"))
    monkeypatch.delenv("KERNELEVOLVE_REGISTRY", raising=False)


def test_no_module_of_the_daemon_imports_torch() -> None:
    code = f"import sys, {', '.join(MODULES)}; sys.exit('torch' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_help_needs_neither_the_database_nor_git() -> None:
    code = (
        "import sys; from daemon.cli.main import main\n"
        "try: main(['--help'])\n"
        "finally: sys.exit(len({'sqlalchemy', 'git', 'pydantic'} & set(sys.modules)))"
    )

    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False, capture_output=True)

    assert done.returncode == 0


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_a_help(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*command, "--help"])

    assert ended.value.code == 0
    assert command[-1] in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["optimise"], "invalid choice"),
        (["optimize", "gelu_bias"], "--hardware"),
        (["run"], "--once"),
        (["optimize", "x", "--hardware", "cpu", "--budget", "soon"], "write for example 60s"),
        (["bench", "catalog", "--hardware", "cpu", "--out", "x", "--shard", "5/4"], "no part"),
        (["bench", "throughput", "--seconds", "soon"], "no time"),
        (["optimize", "x", "--hardware", "cpu", "--trials", "0"], "no number of things"),
        (["optimize", "x", "--hardware", "cpu", "--money", "-1"], "no amount"),
        (["optimize", "x", "--hardware", "cpu", "--roofline", "near"], "no amount"),
        (["tree", "7"], "no search has the id"),
        (["optimize", "gelu", "--hardware", "cpu"], "did you mean gelu_bias?"),
        (["optimize", "gelu_bias", "--hardware", "h20"], "did you mean h200?"),
        (["registry", "validate", "/nowhere"], "/nowhere is no folder"),
        (["verify", "/nowhere"], "holds no dispatch.json"),
        (["evaluate", "/no.cpp", "--operator", "softmax", "--hardware", "cpu"], "there is no"),
        (["run", "--once"], "set KERNELEVOLVE_REGISTRY"),
        (["plan", "--since", "--upload-pack=x"], "expected one argument"),
        (["plan", "--since=-x"], "no name that is handed to git"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_misuse_is_told_in_a_line_with_its_remedy_and_exits_2(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code: object = main(words)
    except SystemExit as ended:
        code = ended.code

    assert code == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.out == ""


@pytest.mark.parametrize(
    ("text", "seconds"), [("60", 60), ("60s", 60), ("1.5m", 90), ("1h", 3600), ("500ms", 0.5)]
)
def test_a_budget_has_its_unit(text: str, seconds: float) -> None:
    args = cli._build_parser().parse_args(  # noqa: SLF001 - what it makes of words is its contract
        ["optimize", "x", "--hardware", "cpu", "--budget", text]
    )

    assert args.budget == seconds


def test_a_setting_that_is_misspelt_is_misuse(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KERNELEVOLVE_STAT", "x")

    assert main(["status"]) == 2
    assert "KERNELEVOLVE_STAT: no such setting" in capsys.readouterr().err


def test_a_result_for_scripts_is_all_there_is_on_the_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli_search, "Jobs", lambda: SCRIPTED)
    registry = checkout(tmp_path, "say noise; trial 1; better 2.0")
    out = tmp_path / "out"
    words = ["optimize", "gelu_bias", "--hardware", "cpu", "--json", "--budget", "5s"]

    code = main([*words, "--registry", str(registry), "--out", str(out)])

    captured = capsys.readouterr()
    assert code == 0
    assert captured.out.startswith("{")
    assert f'"kernel_folder": "{out}"' in captured.out
    assert "trial 1 passed" in captured.err
    assert (out / "evidence.json").exists()


def test_what_is_not_better_exits_1_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli_search, "Jobs", lambda: SCRIPTED)
    registry = checkout(tmp_path, "trial 1")
    out = tmp_path / "out"
    words = ["optimize", "gelu_bias", "--hardware", "cpu"]

    code = main([*words, "--registry", str(registry), "--out", str(out)])

    assert code == 1
    assert "Not better: nothing was faster" in capsys.readouterr().out
    assert not out.exists()


def test_a_job_that_dies_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli_search, "Jobs", lambda: SCRIPTED)
    registry = checkout(tmp_path, "crash")

    code = main(["optimize", "gelu_bias", "--hardware", "cpu", "--registry", str(registry)])

    assert code == 1
    assert "kernelevolve: the job died (exit code 3): out of memory" in capsys.readouterr().err


def test_a_kernel_of_ones_own_needs_its_plan_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "kernel.cpp"
    file.write_text("// mine")

    assert main(["evaluate", str(file), "--operator", "softmax", "--hardware", "cpu"]) == 2
    assert "there is no plan.json beside" in capsys.readouterr().err


@pytest.mark.parametrize("bare", [False, True], ids=["candidate", "plan"])
def test_the_plan_may_stand_alone_or_as_in_a_published_kernel(
    tmp_path: Path,
    bare: bool,  # noqa: FBT001 - pytest fills it
) -> None:
    candidate = make_candidate()
    (tmp_path / "kernel.cpp").write_text("// mine")
    plan = candidate.plan if bare else candidate.model_copy(update={"code": ""})
    (tmp_path / "plan.json").write_text(plan.to_json())

    found = cli_search._read_candidate(tmp_path / "kernel.cpp")  # noqa: SLF001 - it has no other door

    assert (found.code, found.plan) == ("// mine", candidate.plan)


def checkout(folder: Path, script: str) -> Path:
    origin = Origin(folder)
    origin.add_operator(script)
    origin.run_git("worktree", "add", "--quiet", str(folder / "checkout"), "main")
    return folder / "checkout"
