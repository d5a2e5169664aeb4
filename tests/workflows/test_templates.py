"""The forms and owners that the code host reads from `.github`."""

import re
from pathlib import Path

import pytest
import yaml

from daemon.talk.lines import find_lines

ROOT = Path(__file__).parents[2]
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
CODEOWNERS = (ROOT / ".github" / "CODEOWNERS").read_text(encoding="utf-8")
_KINDS = {"markdown", "input", "textarea", "dropdown", "checkboxes"}


def rules() -> list[list[str]]:
    lines = (line.partition("#")[0].split() for line in CODEOWNERS.splitlines())
    return [words for words in lines if words]


def test_every_form_is_one() -> None:
    for path in FORMS:
        form = yaml.safe_load(path.read_text(encoding="utf-8"))
        if path.name == "config.yml":
            continue
        assert {"name", "description", "body"} <= form.keys()
        ids = [field["id"] for field in form["body"] if field["type"] != "markdown"]
        assert len(ids) == len(set(ids))
        assert {field["type"] for field in form["body"]} <= _KINDS
        assert all(field["attributes"] for field in form["body"])


def test_every_owned_path_is_there() -> None:
    paths = [pattern.strip("/") for pattern, *_ in rules() if pattern != "*"]

    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_every_path_has_owners() -> None:
    assert rules()[0][0] == "*"
    owners = [owner for _, *owners in rules() for owner in owners]
    assert all(re.fullmatch(r"@[a-z0-9-]+(/[a-z0-9-]+)?", owner) for owner in owners)
    assert all(len(words) > 1 for words in rules())


@pytest.mark.parametrize("path", [*FORMS, ROOT / ".github" / "PULL_REQUEST_TEMPLATE.md"], ids=str)
def test_no_template_commands_the_bot(path: Path) -> None:
    assert find_lines(path.read_text(encoding="utf-8"), me="kernelevolve[bot]") == ()
