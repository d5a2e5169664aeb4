"""The command that drills a fleet: ``kernelevolve bench fleet``."""

import shlex
import sys
from argparse import Namespace
from pathlib import Path
from tempfile import TemporaryDirectory

from daemon.cli.terminal import Terminal
from daemon.fleet.drill import Stage
from daemon.fleet.drill_report import make_table, write_table
from daemon.fleet.fleet_table import find_failures, to_markdown
from daemon.logs import configure_logs
from daemon.origin import WorkspaceError
from daemon.settings import SettingsError
from daemon.workspace import find_revision
from optimizer.errors import OptimizerError
from optimizer.store import Store

MISUSE = (SettingsError,)
FAULTS = (OptimizerError, WorkspaceError, OSError)
_LEAST_S = 300.0
_EACH_S = 3.0
"""A goal takes 0.7 s of eight devices; who takes four times as long will not end well."""


def bench_fleet(args: Namespace, terminal: Terminal) -> int:
    """Drill a fleet of eight logical devices, and write the table; 1 where something was lost."""
    configure_logs("text", sys.stderr)
    with TemporaryDirectory(prefix="kernelevolve-fleet-") as folder:
        stage = Stage(Path(folder), args.goals, log=terminal.complain)
        killed = stage.play(within_s=max(_LEAST_S, args.goals * _EACH_S))
        with Store(stage.settings.store_url) as store:
            table = make_table(
                store,
                killed,
                command=shlex.join(("kernelevolve", *sys.argv[1:])),
                commit=args.commit or find_revision(Path(__file__).parent) or "",
            )
    write_table(table, args.out)
    if terminal.as_json:
        terminal.tell(table.summary)
    else:
        terminal.show_markdown(to_markdown(table))
    failures = list(find_failures(table.summary))
    for failure in failures:
        terminal.complain(f"not kept: {failure}")
    return 1 if failures else 0
