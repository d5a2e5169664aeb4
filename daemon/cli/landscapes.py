"""The commands that measure searches: ``kernelevolve bench landscapes`` and ``bench search``."""

import shlex
import sys
from argparse import Namespace
from pathlib import Path

from pydantic import ValidationError

from daemon.cli.arguments import MisuseError, find_hardware, load_given
from daemon.cli.search import FAULTS, MISUSE, run_job, tell_stopped
from daemon.cli.terminal import Terminal
from daemon.settings import Settings
from daemon.workspace import find_revision
from optimizer.job import (
    LandscapeRow,
    LandscapesRequest,
    LandscapesResult,
    SearchBenchRequest,
    SearchBenchResult,
)

__all__ = ["FAULTS", "MISUSE", "bench_landscapes", "bench_search"]


def bench_landscapes(args: Namespace, terminal: Terminal) -> int:
    """Record schedule spaces through the judge; 1 where points are left or a space is too easy."""
    hardware = find_hardware(load_given(args.registry), args.hardware)
    try:
        request = LandscapesRequest(
            hardware=hardware,
            folder=args.out.absolute(),
            state_folder=Settings.load().state / "artefacts",
            only=args.only,
            points=args.points,
            commit=args.commit or find_revision(Path(__file__).parent) or "",
            shard=args.shard,
        )
    except ValidationError as error:
        raise MisuseError(error.errors()[0]["msg"]) from error
    result = run_job("landscapes", request, f"landscapes on {hardware.name}", terminal)
    if not isinstance(result, LandscapesResult):
        return tell_stopped(terminal)
    if terminal.as_json:
        terminal.tell(result)
    else:
        terminal.show_markdown(_table(result.rows))
    for name in result.too_easy:
        terminal.complain(f"too easy: {name}")
    if result.unfinished:
        terminal.complain(f"points are left: {', '.join(result.unfinished)}")
    return 1 if result.too_easy or result.unfinished else 0


def bench_search(args: Namespace, terminal: Terminal) -> int:
    """Replay recorded landscapes with every policy, and write the table."""
    try:
        request = SearchBenchRequest(
            folder=args.landscapes.absolute(),
            file=args.out.absolute(),
            seeds=args.seeds,
            commit=args.commit or find_revision(Path(__file__).parent) or "",
            command=shlex.join(("kernelevolve", *sys.argv[1:])),
        )
    except ValidationError as error:
        raise MisuseError(error.errors()[0]["msg"]) from error
    result = run_job("search", request, f"landscapes in {args.landscapes}", terminal)
    if not isinstance(result, SearchBenchResult):
        return tell_stopped(terminal)
    if terminal.as_json:
        terminal.tell(result)
    else:
        terminal.show_markdown(result.file.with_suffix(".md").read_text(encoding="utf-8"))
    for failure in result.failures:
        terminal.complain(f"not kept: {failure}")
    if result.unfinished:
        terminal.complain(f"stopped: {result.unfinished} rows are left")
    return 1 if result.failures or result.unfinished else 0


def _table(rows: tuple[LandscapeRow, ...]) -> str:
    lines = [
        "| landscape | points | tried | passed | within 5 % | optimum ms | eager ms |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        near = "-" if row.near_share is None else f"{row.near_share:.2%}"
        times = ["-" if ms is None else f"{ms:.4g}" for ms in (row.optimum_ms, row.baseline_ms)]
        cells = (row.name, row.points, row.tried, row.passed, near, *times)
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"
