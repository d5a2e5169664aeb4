"""Bad days in numbers: two here, five hundred in the drill."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.github.bench import run_bad_days

ROOT = Path(__file__).parents[2]


@pytest.mark.alone
def test_a_bad_day_loses_nothing_and_does_nothing_twice() -> None:
    tally = run_bad_days(0, runs=2)

    assert (tally.lost, tally.doubled, tally.violations) == ([], [], [])


@pytest.mark.drill
def test_five_hundred_bad_days_lose_nothing_and_do_nothing_twice(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.github.bench", "--out", str(tmp_path)]
    halves = [
        subprocess.Popen([*command, "--shard", f"{part}/2"], cwd=ROOT, stdout=subprocess.DEVNULL)
        for part in (1, 2)
    ]

    assert [half.wait() for half in halves] == [0, 0]

    summary = json.loads((tmp_path / "github.json").read_text(encoding="utf-8"))["summary"]
    assert summary["runs"] >= 500
    assert (summary["lost"], summary["doubled"], summary["violations"]) == (0, 0, 0)
