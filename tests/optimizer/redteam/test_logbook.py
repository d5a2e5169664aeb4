"""What is known of a run's attempts."""

from pathlib import Path

from optimizer.redteam.attempt import Attempt
from optimizer.redteam.logbook import Logbook

CAUGHT = Attempt(through=False, how="incorrect")
PASSED = Attempt(through=True, how="passed", told_ms=0.1)


def test_the_last_attempt_of_an_errand_counts_and_what_was_cut_off_or_broke_is_none(
    tmp_path: Path,
) -> None:
    book = Logbook(tmp_path / "new" / "log.jsonl")
    book.note("a", CAUGHT)
    book.note("b", CAUGHT)
    book.note("a", PASSED)
    book.note("d", Attempt(through=False, how="the judge failed", broke="no device"))
    with (tmp_path / "new" / "log.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"errand": "c", "attem')

    assert book.read() == {"a": PASSED, "b": CAUGHT}


def test_a_run_that_ended_leaves_nothing(tmp_path: Path) -> None:
    book = Logbook(tmp_path / "log.jsonl")
    book.note("a", CAUGHT)

    book.close()

    assert book.read() == {}
    assert list(tmp_path.iterdir()) == []


def test_without_a_file_nothing_is_kept() -> None:
    book = Logbook()
    book.note("a", CAUGHT)

    assert book.read() == {}
