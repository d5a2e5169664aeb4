"""The command that counts the judge's trials: ``kernelevolve bench throughput``."""

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
from optimizer.job import ThroughputRequest, ThroughputResult

__all__ = ["FAULTS", "MISUSE", "bench_throughput"]


def bench_throughput(args: Namespace, terminal: Terminal) -> int:
    """Sweep one source's tunables through the judge, and write the table."""
    hardware = find_hardware(load_given(args.registry), args.hardware)
    kind = "cpu" if hardware.target == "cpu" else hardware.name
    folder: Path = args.out or Path("benchmarks") / kind
    try:
        request = ThroughputRequest(
            hardware=hardware,
            folder=folder.absolute(),
            state_folder=Settings.load().state / "artefacts",
            seconds=args.seconds,
            batch=args.batch,
            commit=args.commit or find_revision(Path(__file__).parent) or "",
            command=shlex.join(("kernelevolve", *sys.argv[1:])),
        )
    except ValidationError as error:
        raise MisuseError(error.errors()[0]["msg"]) from error
    result = run_job("throughput", request, f"the judge on {hardware.name}", terminal)
    if not isinstance(result, ThroughputResult):
        return tell_stopped(terminal)
    if terminal.as_json:
        terminal.tell(result)
    else:
        terminal.show_markdown(result.file.with_suffix(".md").read_text(encoding="utf-8"))
    for failure in result.failures:
        terminal.complain(f"not kept: {failure}")
    return 1 if result.failures else 0
