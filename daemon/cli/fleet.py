"""The commands on devices: fleet, fleet cordon, fleet uncordon, fleet drain."""

import time
from argparse import Namespace

from daemon.bot import open_store
from daemon.cli.arguments import MisuseError
from daemon.cli.terminal import Terminal, make_table
from daemon.fleet.overview import Overview, find_device, find_overview
from daemon.settings import Settings, SettingsError
from optimizer.errors import OptimizerError
from optimizer.store import Store, StoredDevice

MISUSE = (MisuseError, SettingsError)
FAULTS = (OptimizerError, OSError)


def show(args: Namespace, terminal: Terminal) -> int:
    """Show the devices, the queue in agenda order, and who runs what."""
    with open_store(Settings.load()) as store:
        overview = find_overview(store, now=time.time())
    if terminal.as_json:
        terminal.tell(overview)
    else:
        _show(overview, terminal)
    return 0


def cordon(args: Namespace, terminal: Terminal) -> int:
    """Have a device leased no more; what runs on it goes on."""
    with open_store(Settings.load()) as store:
        device = _find(store, args.device)
        now = time.time()
        store.rule_device(device.name, "cordoned", why=args.why, by="person", now=now)
        runs = f", after {device.task}" if device.is_held(now) else ""
    terminal.say(f"{device.name} is cordoned{runs}; to free it: kernelevolve fleet uncordon")
    return 0


def drain(args: Namespace, terminal: Terminal) -> int:
    """Have a device leased no more, and what runs on it handed back."""
    with open_store(Settings.load()) as store:
        device = _find(store, args.device)
        now = time.time()
        store.rule_device(device.name, "draining", why=args.why, by="person", now=now)
        runs = f"; {device.task} is handed back" if device.is_held(now) else ""
    terminal.say(f"{device.name} is drained{runs}; to free it: kernelevolve fleet uncordon")
    return 0


def uncordon(args: Namespace, terminal: Terminal) -> int:
    """Have a device leased again, also one that a health check has cordoned."""
    with open_store(Settings.load()) as store:
        device = _find(store, args.device)
        store.uncordon_device(device.name, now=time.time())
    was = f"was {device.rule}: {device.why}" if device.rule else "was not cordoned"
    terminal.say(f"{device.name} may be leased; it {was}")
    return 0


def _find(store: Store, name: str) -> StoredDevice:
    devices = store.devices()
    found = find_device(devices, name)
    if found is None:
        known = ", ".join(device.name for device in devices) or "none: no daemon has run yet"
        msg = f"{name} names no one device; there are {known}"
        raise MisuseError(msg)
    return found


def _show(overview: Overview, terminal: Terminal) -> None:
    if not overview.devices:
        terminal.say("no device is known; a daemon notes its own: kernelevolve run --once")
        return
    table = make_table("device", "hardware", "state", "for", "what")
    for device in overview.devices:
        told = "; ".join(filter(None, (device.task, device.why)))
        table.add_row(
            device.name, device.hardware, device.state, f"{device.for_s / 60:.0f} min", told
        )
    terminal.show(table)
    if not overview.queue:
        terminal.say("nothing is queued")
        return
    table = make_table("goal", "runs on", "devices", "waited")
    for goal in overview.queue:
        table.add_row(
            f"{goal.operator} on {goal.hardware}",
            goal.runs_on or "",
            str(goal.devices),
            f"{goal.waited_s / 60:.0f} min",
        )
    terminal.show(table)
