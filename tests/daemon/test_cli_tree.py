import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.cli.main import main
from optimizer.store import Store
from tests.makers import OPERATOR
from tests.optimizer.search.trees import make_trial


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("KERNELEVOLVE_STATE", str(tmp_path))
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as store:
        store.migrate()
        yield store


def search(store: Store, goal_key: str, *, digest: str = OPERATOR.digest) -> int:
    """Return the id of a search of three trials."""
    search_id = store.open_search(
        goal_key, operator="scale", hardware="h", operator_digest=digest, now=0
    )
    for trial in (
        make_trial(1, 1.5),
        make_trial(2, 2.0, parent=1),
        make_trial(3, 0.0, parent=1, mate=2),
    ):
        store.record(search_id, trial, now=0)
    return search_id


@pytest.mark.parametrize("wanted", ["1", "optimize-scale-12", "optimize"])
def test_a_search_is_found_by_its_number_or_its_goal(
    store: Store, capsys: pytest.CaptureFixture[str], wanted: str
) -> None:
    search(store, "optimize-scale-12")

    assert main(["tree", wanted]) == 0

    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "scale on h: 3 trials, best 2.00x in trial 2 (search 1, goal optimize-scale-12)",
        "└─ * 1 1.50x one: draft one",
        "   ├─ * 2 2.00x one: draft one",
        "   └─ 3 failed (build: no) one x 2: draft one",
    ]


def test_of_several_the_person_is_asked_which(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    search(store, "a-1")
    search(store, "a-12")

    assert main(["tree", "a"]) == 2
    assert "2 (a-12), 1 (a-1)" in capsys.readouterr().err
    assert main(["tree", "a-1"]) == 0


def test_a_key_with_the_databases_own_signs_is_taken_as_it_is(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    search(store, "a-1")

    assert main(["tree", "a%"]) == 2
    assert main(["tree", "9" * 40]) == 2
    assert "the latest are: a-1" in capsys.readouterr().err


def test_scripts_read_every_node(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    search(store, "a-1")

    assert main(["tree", "1", "--json"]) == 0

    told = json.loads(capsys.readouterr().out)
    assert told["goal_key"] == "a-1"
    rows = [(n["number"], n["parent"], n["mate"], n["on_best_path"]) for n in told["nodes"]]
    assert rows == [(1, None, None, True), (2, 1, None, True), (3, 1, 2, False)]


def test_the_picture_is_written_beside(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    search(store, "a-1")
    picture = tmp_path / "tree.svg"

    assert main(["tree", "1", "--svg", str(picture)]) == 0

    assert picture.read_text(encoding="utf-8").startswith("<svg")
    assert f"the picture: {picture}" in capsys.readouterr().out


def test_a_search_without_trials_says_so(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    store.open_search("a-1", operator="scale", hardware="h", operator_digest="d", now=0)

    assert main(["tree", "1"]) == 0
    assert "0 trials, none was timed" in capsys.readouterr().out
