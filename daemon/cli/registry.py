"""The commands on a registry's files: validate, plan. Both parse only; no code of it is run."""

from argparse import Namespace
from pathlib import Path

from daemon.agenda import in_order
from daemon.cli.arguments import MisuseError, find_registry_folder
from daemon.cli.terminal import Terminal, make_table
from daemon.origin import UnknownRevisionError, WorkspaceError
from daemon.planner import REGISTRY_ENTRIES, plan, registry_texts
from daemon.workspace import read_revision
from operator_registry.diff import Goal
from operator_registry.fault import RegistryError
from operator_registry.registry import Registry, load_registry, parse_registry

MISUSE = (MisuseError, UnknownRevisionError)
FAULTS = (RegistryError, WorkspaceError, OSError)


def validate(args: Namespace, terminal: Terminal) -> int:
    """Report every fault of a registry."""
    folder = find_registry_folder(args.folder)
    try:
        registry = load_registry(folder)
    except RegistryError as error:
        if terminal.as_json:
            faults = [fault.model_dump(mode="json") for fault in error.faults]
            terminal.tell({"folder": str(folder), "faults": faults})
        else:
            for fault in error.faults:
                terminal.say(str(fault) if folder == Path() else f"{folder}/{fault}")
        return 1
    if terminal.as_json:
        terminal.tell({"folder": str(folder), "faults": []})
    else:
        terminal.say(
            f"{folder}: no fault; operators: {len(registry.operators)}, "
            f"hardware: {len(registry.hardware)}, models: {len(registry.models)}"
        )
    return 0


def show_plan(args: Namespace, terminal: Terminal) -> int:
    """Show the goals that the files' difference from a revision makes, in agenda order."""
    folder = find_registry_folder(args.registry)
    after = load_registry(folder)
    before = _load_revision(folder, args.since)
    goals = in_order(plan(before, after, published={}), kernels=(), budget_s=after.config.budget_s)
    since = (args.since or "HEAD") if before is not None else None
    if terminal.as_json:
        listed = [goal.model_dump(mode="json") for goal in goals]
        terminal.tell({"since": since, "budget_s": after.config.budget_s, "goals": listed})
    else:
        _show(goals, since, terminal)
    return 0


def _load_revision(folder: Path, since: str | None) -> Registry | None:
    """Return the registry at a revision; None where the folder is in no repository."""
    try:
        files = read_revision(folder, since or "HEAD", under=REGISTRY_ENTRIES)
    except UnknownRevisionError:
        if since is not None:
            raise
        return None  # a repository without a commit
    if files is None and since is not None:
        msg = f"{folder} is in no git repository, so that there is no revision {since}"
        raise MisuseError(msg)
    # A folder that was not there then is new as a whole.
    return parse_registry(registry_texts(files)) if files else None


def _show(goals: tuple[Goal, ...], since: str | None, terminal: Terminal) -> None:
    than = f"since {since}" if since else "as a registry that nobody has seen yet"
    if not goals:
        terminal.say(f"no goals {than}: nothing changed that a kernel depends on")
        return
    table = make_table("operator", "hardware", "share of time", "why")
    for goal in goals:
        share = f"{100 * goal.share_of_time:.3g} %" if goal.share_of_time else ""
        table.add_row(goal.operator, goal.hardware, share, "; ".join(goal.reasons))
    terminal.say(f"goals {than}: {len(goals)}")
    terminal.show(table)
