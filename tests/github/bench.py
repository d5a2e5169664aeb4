"""Measures how many bad days do harm: ``python -m tests.github.bench --out benchmarks``.

Batches that stand in the file already are not run again, so that it can be done by and by, and by
several processes at a time.
"""

import argparse
import fcntl
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import structlog
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.github.machine import BadDays, Tally

_RUNS = 25
_STEPS = 10
_COUNTS = ("runs", "events", "crashes", "requests", "lost", "doubled", "violations")
Row = dict[str, Any]


def run_bad_days(number: int, *, runs: int) -> Tally:
    """Run a batch of bad days that its number determines, and return what it came to."""
    tally = BadDays.tally = Tally()

    run_state_machine_as_test(
        seed(number)(BadDays),
        settings=settings(
            max_examples=runs,
            stateful_step_count=_STEPS,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
    return tally


def main() -> None:
    """Run the batches that are missing and write the file anew after each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--runs", type=int, default=_RUNS)
    parser.add_argument("--shard", default="1/1")
    args = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    part, of = map(int, args.shard.split("/"))
    file = args.out / "github.json"
    for number in range(part, args.batches + 1, of):
        with _rows_of(file) as rows:
            if any(row["batch"] == number for row in rows):
                continue
        began = time.monotonic()
        harm = ""
        try:
            run_bad_days(number, runs=args.runs)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told in the row
            harm = f"{type(error).__name__}: {error}"[:2000]
        tally = BadDays.tally
        if harm and not (tally.lost or tally.doubled):
            tally.violations.append(harm)
        row = {"batch": number, **_counts(tally), "harm": harm}
        row |= {"seconds": round(time.monotonic() - began, 1), "commit": _find_commit()}
        with _rows_of(file) as rows:
            rows.append(row)
        sys.stdout.write(f"{row}\n")
        sys.stdout.flush()


def _counts(tally: Tally) -> Row:
    found = {name: getattr(tally, name) for name in _COUNTS}
    return {n: v if isinstance(v, int) else len(v) for n, v in found.items()}


@contextmanager
def _rows_of(file: Path) -> Iterator[list[Row]]:
    """Hand out the file's rows, and write them back, with their sum; no two processes at once."""
    file.parent.mkdir(parents=True, exist_ok=True)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        rows: list[Row] = (
            json.loads(file.read_text(encoding="utf-8"))["rows"] if file.exists() else []
        )
        yield rows
        rows.sort(key=lambda row: int(row["batch"]))
        _write(file, rows)
    finally:
        os.close(folder)


def _write(file: Path, rows: list[Row]) -> None:
    command = f"python -m tests.github.bench --out {file.parent}"
    summary = {name: sum(int(row[name]) for row in rows) for name in _COUNTS}
    whole = {
        "schema": 1,
        "command": command,
        "environment": {"python": platform.python_version(), "machine": platform.machine()},
        "summary": summary,
        "rows": rows,
    }
    file.write_text(json.dumps(whole, indent=2) + "\n", encoding="utf-8")
    head = ("batch", *_COUNTS)
    table = [f"| {' | '.join(head)} |", f"|{' ---: |' * len(head)}"]
    table += [f"| {' | '.join(str(row[name]) for name in head)} |" for row in rows]
    table.append(f"| all | {' | '.join(str(summary[name]) for name in _COUNTS)} |")
    told = (
        "# Bad days\n\n"
        f"Written by `{command}`.\n\n"
        "In each run people, the network, the code host and the daemon's process do what they do "
        "on bad days, drawn at random; afterwards all is well again, and nothing may be lost, or "
        "done twice.\n\n"
    )
    file.with_suffix(".md").write_text(told + "\n".join(table) + "\n", encoding="utf-8")


def _find_commit() -> str:
    done = subprocess.run(["git", "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    return done.stdout.strip()


if __name__ == "__main__":
    main()
