import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.cli.main import main
from optimizer.store import Effect, NewCommand, Store


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("KERNELEVOLVE_STATE", str(tmp_path))
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as store:
        store.migrate()
        yield store


def note(store: Store, text: str, *, number: int = 1) -> None:
    command = NewCommand(
        comment_id=10 + number, line=1, number=number, author_id=7, author="wendy", text=text
    )
    store.note_command(command, now=0)


def test_it_shows_who_asked_for_what_and_what_came_of_it(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    note(store, "/stop [/red]\x1b[31m")
    store.change_command(1, state="done", told="nothing runs", now=1)

    assert main(["commands"]) == 0

    row = capsys.readouterr().out.splitlines()[1]
    assert row.split()[:4] == ["1970-01-01", "00:00:00", "wendy", "(7)"]
    assert "/stop [/red]?[31m" in row
    assert row.rstrip().endswith("done   nothing runs")


def test_it_looks_below_one_pull_request(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    note(store, "/stop", number=1)
    note(store, "/help", number=2)

    assert main(["commands", "--number", "2", "--json"]) == 0

    told = json.loads(capsys.readouterr().out)
    assert [command["text"] for command in told["commands"]] == ["/help"]


def test_without_any_it_says_so(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["commands"]) == 0
    assert "nobody has asked" in capsys.readouterr().out


def test_an_answer_that_failed_for_good_is_a_finding(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    store.post(Effect(key="react/1/eyes", kind="react", payload="{}"), now=0)
    (effect,) = store.due_effects(now=0)
    store.end_effect(effect.id, now=1, error="no")

    assert main(["commands"]) == 1
    assert "react/1/eyes: no" in capsys.readouterr().err
