"""The command that puts our own cheats before the judge: redteam."""

import re
import shlex
import sys
from argparse import Namespace
from pathlib import Path

from daemon.cli.arguments import MisuseError, find_hardware, load_given
from daemon.cli.search import FAULTS, MISUSE, run_job, tell_stopped
from daemon.cli.terminal import Terminal
from daemon.workspace import find_revision
from operator_registry.registry import Registry
from optimizer.job import RedteamRequest, RedteamResult

__all__ = ["FAULTS", "MISUSE", "redteam"]


def redteam(args: Namespace, terminal: Terminal) -> int:
    """Say how many cheats succeed unguarded, are caught, and whose twins pass."""
    _check_pattern(args)
    registry = load_given(args.registry)
    request = RedteamRequest(
        hardware=find_hardware(registry, args.hardware or _pick_hardware(registry, args.target)),
        only=args.only,
        folder=args.out.absolute() if args.out else None,
        resume=args.resume,
        commit=args.commit or find_revision(Path(__file__).parent) or "",
        command=shlex.join(("kernelevolve", *sys.argv[1:])),
    )
    if request.hardware.target != args.target:
        msg = f"{request.hardware.name} is no {args.target} hardware"
        raise MisuseError(msg)
    result = run_job("redteam", request, f"red team on {request.hardware.name}", terminal)
    if not isinstance(result, RedteamResult):
        return tell_stopped(terminal)
    _show(result, terminal)
    return 1 if result.faults else 0


def _check_pattern(args: Namespace) -> None:
    try:
        re.compile(args.only)
    except re.error as error:
        msg = f"--only {args.only!r} is no pattern: {error}"
        raise MisuseError(msg) from error
    if args.only and args.out and not args.resume:
        msg = "--out without --resume takes the whole corpus; leave --only out"
        raise MisuseError(msg)


def _pick_hardware(registry: Registry, target: str) -> str:
    if target == "cpu":
        return "cpu"
    found = sorted(name for name, h in registry.hardware.items() if h.target == target)
    if not found:
        msg = f"the registry has no {target} hardware"
        raise MisuseError(msg)
    return found[0]


def _show(result: RedteamResult, terminal: Terminal) -> None:
    if terminal.as_json:
        terminal.tell(result)
        return
    for name, value in result.summary.items():
        terminal.say(f"{name}: {value}")
    if result.file is not None:
        terminal.say(f"the table: {result.file.with_suffix('.md')}")
    for fault in result.faults:
        terminal.complain(fault)
