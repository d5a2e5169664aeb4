"""The long tests are run in parts; none is left out."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
MARK = "pytest.mark." + "drill"


def test_each_part_has_folders() -> None:
    (parts,) = re.findall(r"^PARTS := (.*)$", MAKEFILE, re.MULTILINE)
    named = re.findall(r"^DRILLS_(\w+) := ", MAKEFILE, re.MULTILINE)

    assert parts.split() == [f"drill-{name}" for name in named]


def test_every_long_test_is_in_a_part() -> None:
    lists = re.findall(r"^DRILLS_\w+ := (.*)$", MAKEFILE, re.MULTILINE)
    folders = [ROOT / folder for line in lists for folder in line.split()]
    long = [p for p in (ROOT / "tests").rglob("test_*.py") if MARK in p.read_text("utf-8")]

    assert long
    assert [p for p in long if not any(p.is_relative_to(folder) for folder in folders)] == []
