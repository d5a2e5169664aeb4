from pathlib import Path
from typing import get_args

import daemon
from daemon.pulls.publish import Publication
from daemon.report import EndVerdict
from daemon.settings import PREFIX, Settings
from tests.daemon.test_cli import COMMANDS

PACKAGE = Path(daemon.__file__).parent
README = (PACKAGE / "README.md").read_text(encoding="utf-8")


def test_it_names_every_setting() -> None:
    names = [PREFIX + name.upper() for name in Settings.model_fields]

    assert [name for name in names if f"`{name}`" not in README] == []


def test_it_names_every_command() -> None:
    commands = [" ".join(words) for words in COMMANDS]

    assert [c for c in commands if f"{c} " not in README and f"{c}`" not in README] == []


def test_it_names_every_end_and_every_publication() -> None:
    cases = get_args(get_args(Publication)[0])
    kinds = [case.model_fields["kind"].default for case in cases]

    assert [k for k in (*kinds, *get_args(EndVerdict)) if f"`{k}`" not in README] == []


def test_the_states_of_a_pull_request_are_drawn() -> None:
    graph = README.split("```mermaid")[1].split("```")[0]

    assert all(state in graph for state in ("open", "closed", "merged", "left_alone"))
