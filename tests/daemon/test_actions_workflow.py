from pathlib import Path

import pytest

from daemon.actions.workflow import FOLDER, find_workflow_fault

SEARCH = (Path(__file__).parents[2] / FOLDER / "search.yml").read_text(encoding="utf-8")


def test_our_own_workflow_can_be_dispatched() -> None:
    assert find_workflow_fault("search.yml", SEARCH) is None


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (None, "there is no .github/workflows/search.yml"),
        ("on: [", "it can't be read"),
        (SEARCH.replace("workflow_dispatch", "push"), "is not started by workflow_dispatch"),
        ("on: workflow_dispatch\n", "is not started by workflow_dispatch"),
        (SEARCH.replace("labels:\n        description", "lables:\n        description"), "labels"),
        (SEARCH.replace("run-name: kernelevolve ${{ inputs.tag }}\n", ""), "no run-name"),
        ("on: {workflow_dispatch: }\n", "takes no input tag, labels, request"),
    ],
)
def test_what_would_go_wrong_is_told(text: str | None, fault: str) -> None:
    assert fault in (find_workflow_fault("search.yml", text) or "")
