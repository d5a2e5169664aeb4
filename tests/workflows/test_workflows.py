"""The workflows: what zizmor says of them, and what a caller of the job's workflow relies on."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
JOB = ROOT / ".github" / "workflows" / "job.yml"
SEARCH = ROOT / ".github" / "workflows" / "search.yml"
ZIZMOR = Path(sys.executable).with_name("zizmor")
_PIN = re.compile(r"^[\w.-]+/[\w./-]+@[0-9a-f]{40}$")


def load(path: Path) -> dict[str, Any]:
    """Return a workflow; `on` is a truth value to this YAML, so that it stands under True."""
    read: dict[Any, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return {"on" if key is True else key: value for key, value in read.items()}


def zizmor(*paths: Path) -> subprocess.CompletedProcess[str]:
    command = [str(ZIZMOR), "--offline", "--no-progress", "--persona=pedantic", *map(str, paths)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_zizmor_finds_nothing() -> None:
    done = zizmor(*WORKFLOWS)

    assert done.returncode == 0, done.stdout


def test_zizmor_would_find_an_input_in_a_shell_line(tmp_path: Path) -> None:
    text = JOB.read_text(encoding="utf-8")
    bad = tmp_path / "job.yml"
    bad.write_text(text.replace('"$REQUEST"', "'${{ inputs.request }}'"), encoding="utf-8")

    done = zizmor(bad)

    assert "template-injection" in done.stdout


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_the_whole_hash(path: Path) -> None:
    steps = [s for job in load(path)["jobs"].values() for s in job.get("steps", ())]
    used = [step["uses"] for step in steps if "uses" in step]

    assert [name for name in used if not _PIN.match(name)] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_no_shell_line_holds_an_expression(path: Path) -> None:
    steps = [s for job in load(path)["jobs"].values() for s in job.get("steps", ())]

    assert [s["run"] for s in steps if "${{" in s.get("run", "")] == []


@pytest.mark.parametrize("path", [JOB, SEARCH], ids=lambda path: path.name)
def test_a_runner_gets_no_permission_and_no_secret(path: Path) -> None:
    workflow = load(path)

    assert workflow["permissions"] == {}
    assert [job["permissions"] for job in workflow["jobs"].values()] == [{}]
    assert "secrets" not in re.sub(r"#.*", "", path.read_text(encoding="utf-8"))


def test_nothing_that_a_stranger_does_starts_a_search() -> None:
    assert list(load(SEARCH)["on"]) == ["workflow_dispatch"]
    (job,) = load(JOB)["jobs"].values()
    assert "github.event_name == 'workflow_dispatch'" in job["if"]
    assert "github.event.repository.fork == false" in job["if"]


def test_the_dispatched_workflow_hands_everything_on() -> None:
    asked = load(SEARCH)["on"]["workflow_dispatch"]["inputs"]
    (job,) = load(SEARCH)["jobs"].values()

    assert {name: f"${{{{ inputs.{name} }}}}" for name in asked} == job["with"]
    assert asked.keys() <= load(JOB)["on"]["workflow_call"]["inputs"].keys()


def test_one_tag_is_one_run_at_a_time() -> None:
    (job,) = load(JOB)["jobs"].values()

    assert "inputs.tag" in job["concurrency"]["group"]
    assert job["concurrency"]["cancel-in-progress"] is False
