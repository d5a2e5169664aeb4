"""The command that shows who asked the bot for what, and what came of it."""

from argparse import Namespace
from datetime import UTC, datetime

from rich.text import Text

from daemon.bot import open_store
from daemon.cli.arguments import MisuseError
from daemon.cli.terminal import Terminal, make_table
from daemon.settings import Settings, SettingsError
from optimizer.errors import OptimizerError
from optimizer.store import StoredCommand, StoredEffect

MISUSE = (MisuseError, SettingsError)
FAULTS = (OptimizerError, OSError)


def show_commands(args: Namespace, terminal: Terminal) -> int:
    """Show what people asked for in comments, the newest first; 1 where an answer failed."""
    with open_store(Settings.load()) as store:
        commands = store.commands(number=args.number, limit=args.limit)
        failed = store.given_up_effects(limit=args.limit)
    if terminal.as_json:
        terminal.tell(
            {
                "commands": [command.model_dump(mode="json") for command in commands],
                "given_up": [effect.model_dump(mode="json") for effect in failed],
            }
        )
    else:
        _show(commands, failed, terminal)
    return 1 if failed else 0


def _show(
    commands: tuple[StoredCommand, ...], failed: tuple[StoredEffect, ...], terminal: Terminal
) -> None:
    if commands:
        table = make_table("when (UTC)", "who", "where", "asked", "state", "what came of it")
        for c in commands:
            # The number as well: names change hands.
            who = f"{c.author} ({c.author_id})"
            row = (_time(c.received_at), who, f"#{c.number}", c.text, c.state, c.told)
            table.add_row(*(Text(_seen(cell)) for cell in row))
        terminal.show(table)
    else:
        terminal.say("nobody has asked for anything")
    for effect in failed:
        at = _time(effect.done_at or 0.0)
        terminal.complain(f"given up at {at}: {_seen(effect.key)}: {_seen(effect.error or '')}")


def _time(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}"


def _seen(text: str) -> str:
    """Return a stranger's text as a terminal may show it, without its escapes."""
    return "".join(c if c.isprintable() else "?" for c in text)
