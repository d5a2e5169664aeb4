"""The commands on configuration and on schemas: config check, schema."""

from argparse import Namespace
from pathlib import Path

from daemon.cli.arguments import MisuseError
from daemon.cli.terminal import Terminal, make_table
from daemon.config.file import CONFIG_PATH, BotConfig, cap, changes, describe, read_config
from daemon.config.watch import load_ceilings, read_file
from daemon.settings import Settings, SettingsError
from operator_registry.fault import Fault
from operator_registry.json_schema import SCHEMAS, make_schema

MISUSE = (MisuseError, SettingsError)
FAULTS = (OSError,)


def check(args: Namespace, terminal: Terminal) -> int:
    """Report every fault of a configuration, or what it comes to here."""
    path = args.file or Path(CONFIG_PATH)
    if not path.is_file():
        msg = f"there is no file {path}; name the configuration"
        raise MisuseError(msg)
    reading = read_config(read_file(path), str(path))
    if reading.faults or reading.record is None:
        _tell_faults(reading.faults, path, terminal)
        return 1
    config, ceilings = reading.record, load_ceilings(Settings.load().ceilings)
    in_force = cap(config, ceilings)
    if terminal.as_json:
        capped = [key for key, _, _ in changes(config, in_force)]
        told = in_force.model_dump(mode="json")
        terminal.tell({"file": str(path), "faults": [], "config": told, "capped": capped})
    else:
        _show(path, config, in_force, terminal)
    return 0


def show_schema(args: Namespace, terminal: Terminal) -> int:
    """Print the JSON Schema of a kind of file."""
    kind = BotConfig if args.kind == "config" else dict(SCHEMAS)[args.kind]
    terminal.tell(make_schema(kind))
    return 0


def _tell_faults(faults: tuple[Fault, ...], path: Path, terminal: Terminal) -> None:
    if terminal.as_json:
        listed = [fault.model_dump(mode="json") for fault in faults]
        terminal.tell({"file": str(path), "faults": listed})
    else:
        for fault in sorted(faults, key=lambda fault: fault.line):
            terminal.say(str(fault))


def _show(path: Path, config: BotConfig, in_force: BotConfig, terminal: Terminal) -> None:
    capped = {key: asked for key, asked, _ in changes(config, in_force)}
    given = {key for key, _, _ in changes(BotConfig(), config)}
    table = make_table("key", "value", "")
    for key, value in describe(in_force).items():
        note = "given" if key in given else ""
        if key in capped:
            note = f"this host's ceiling; {capped[key]} is asked for"
        table.add_row(key, value, note)
    terminal.say(f"{path}: no fault")
    terminal.show(table)
