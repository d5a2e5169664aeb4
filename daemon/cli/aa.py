"""The command that measures the judge itself: ``kernelevolve bench aa``."""

import shlex
import sys
from argparse import Namespace
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from daemon.cli.arguments import MisuseError, find_hardware, load_given
from daemon.cli.search import FAULTS, run_job, tell_stopped
from daemon.cli.search import MISUSE as OTHER_MISUSE
from daemon.cli.terminal import Terminal
from daemon.settings import Settings
from daemon.workspace import find_revision
from optimizer.job import AaRequest, AaResult

__all__ = ["FAULTS", "MISUSE", "bench_aa"]
MISUSE = (*OTHER_MISUSE,)
ROUNDS: Final = {"cpu": (3, 7), "cuda": (2, 3), "rocm": (2, 3)}
"""Samples of a side in each pair, of a comparison and of a trial: a device's clock is quieter."""


def bench_aa(args: Namespace, terminal: Terminal) -> int:
    """Compare a kernel with itself, again and again, and write the table."""
    hardware = find_hardware(load_given(args.registry), args.hardware)
    kind = "cpu" if hardware.target == "cpu" else hardware.name
    rounds, trial_rounds = ROUNDS[hardware.target]
    folder: Path = args.out or Path("benchmarks") / kind
    try:
        request = AaRequest(
            hardware=hardware,
            folder=folder.absolute(),
            state_folder=Settings.load().state / "artefacts",
            comparisons=args.comparisons,
            trials=args.trials,
            pairs=args.pairs,
            per_comparison=args.per_comparison,
            rounds=args.rounds or rounds,
            trial_rounds=args.trial_rounds or trial_rounds,
            commit=args.commit or find_revision(Path(__file__).parent) or "",
            command=shlex.join(("kernelevolve", *sys.argv[1:])),
            shard=args.shard,
        )
    except ValidationError as error:
        raise MisuseError(error.errors()[0]["msg"]) from error
    result = run_job("aa", request, f"the judge on {hardware.name}", terminal)
    if not isinstance(result, AaResult):
        return tell_stopped(terminal)
    if terminal.as_json:
        terminal.tell(result)
    else:
        terminal.show_markdown(result.file.with_suffix(".md").read_text(encoding="utf-8"))
    for failure in result.failures:
        terminal.complain(f"not kept: {failure}")
    if result.unfinished:
        terminal.complain(f"stopped: {result.unfinished} comparisons are left")
    return 1 if result.failures or result.unfinished else 0
