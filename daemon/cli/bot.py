"""The commands of the daemon: run, serve, status, pr."""

import sys
import time
from argparse import Namespace
from datetime import UTC, datetime

from daemon.bot import make_config, make_forge, make_workspace, open_bot, open_store
from daemon.cli.arguments import MisuseError
from daemon.cli.costs import show_costs
from daemon.cli.stop import heeding_signals
from daemon.cli.terminal import Terminal, make_table
from daemon.duties import make_lanes
from daemon.endings import describe_end
from daemon.forge import Forge, ForgeError, PullRequest
from daemon.gate import Gate
from daemon.host import detect_host
from daemon.jobs import Jobs
from daemon.logs import configure_logs, find_log
from daemon.origin import WorkspaceError
from daemon.pause import find_pause, pause, resume
from daemon.report import Report
from daemon.role import RoleTakenError
from daemon.serving import serve as serve_until
from daemon.settings import Settings, SettingsError
from daemon.status import Status, find_status
from daemon.watch import OtherRegistryError
from optimizer.errors import OptimizerError
from optimizer.store import Store

MISUSE = (MisuseError, SettingsError, OtherRegistryError)
FAULTS = (WorkspaceError, ForgeError, OptimizerError, RoleTakenError, OSError)
_STAND_BY_S = 0.5
"""A stand-by asks so often whether the role is free."""
log = find_log(__name__)


def run(args: Namespace, terminal: Terminal) -> int:
    """Make one turn of the daemon: all that is queued and that this machine can do."""
    settings = Settings.load()
    configure_logs(settings.log, sys.stderr)
    with (
        heeding_signals() as stop,
        open_bot(settings, jobs=Jobs(), is_stopped=stop.is_set) as bot,
    ):
        report = bot.cycle.run()
        reason = find_pause(bot.store)
    if terminal.as_json:
        terminal.tell(report)
    else:
        show_report(report, terminal)
        if reason is not None:
            terminal.say(f"paused: {reason}; to go on: kernelevolve resume")
    return 1 if report.errors else 0


def serve(args: Namespace, terminal: Terminal) -> int:
    """Be the daemon until SIGTERM or SIGINT; 1 where another one has taken its place.

    As a stand-by: once there is no other one.
    """
    settings = Settings.load()
    configure_logs(settings.log, sys.stderr)
    with heeding_signals() as stop:
        wait = (lambda: not stop.wait(_STAND_BY_S)) if args.stand_by else None
        if wait is not None:
            log.info("standing by", registry=settings.registry)
        try:
            with open_bot(settings, jobs=Jobs(), is_stopped=stop.is_set, wait=wait) as bot:
                log.info("daemon started", registry=settings.registry, every_s=settings.interval_s)
                serve_until(bot, make_lanes(bot), stop=stop)
                is_ours = bot.role.renew()
        except RoleTakenError:
            if wait is None or not stop.is_set():
                raise
            is_ours = True  # told to stop while it stood by
    log.info("daemon stopped")
    return 0 if is_ours else 1


def pause_all(args: Namespace, terminal: Terminal) -> int:
    """Have nothing searched and nothing written until `resume_all`, whatever is restarted."""
    with open_store(Settings.load()) as store:
        pause(store, " ".join(args.reason))
        terminal.say(f"paused: {find_pause(store)}; to go on: kernelevolve resume")
    return 0


def resume_all(args: Namespace, terminal: Terminal) -> int:
    """End the pause."""
    with open_store(Settings.load()) as store:
        reason = find_pause(store)
        resume(store)
    terminal.say("nothing is paused" if reason is None else f"no longer paused: {reason}")
    return 0


def show_report(report: Report, terminal: Terminal) -> None:
    """Show what a turn did."""
    for planned in report.planned:
        terminal.say(f"queued: {planned}")
    for end in report.ends:
        terminal.say(f"ended: {end.operator} on {end.hardware}: {describe_end(end)}")
    for held in report.held:
        terminal.say(f"held: {held.operator} on {held.hardware}: {held.why}")
    for error in report.errors:
        terminal.complain(f"error: {error}")
    if report.stopped:
        terminal.say("stopped: what was running is handed back")
    elif not (report.ends or report.held or report.errors):
        terminal.say("nothing to do")


def show_status(args: Namespace, terminal: Terminal) -> int:
    """Show the queue, what holds it up, and how past goals ended; or what searches cost."""
    if args.costs:
        return show_costs(terminal)
    settings = Settings.load()
    with open_store(settings) as store:
        host = detect_host(has_runners=bool(settings.actions_workflow))
        status = find_status(store, host, gate=_find_gate(settings, store))
    if terminal.as_json:
        terminal.tell(status)
    else:
        _show_status(status, terminal)
    return 1 if status.broken else 0


def _find_gate(settings: Settings, store: Store) -> Gate | None:
    """Return what a daemon of these settings asks before a search; None where there can be none."""
    try:
        config = make_config(settings, make_workspace(settings), store)
    except SettingsError:
        return None
    return Gate(config, store, time.time)


def _show_status(status: Status, terminal: Terminal) -> None:
    if status.registry is None:
        terminal.say("the daemon has not run yet; start it with: kernelevolve run --once")
        return
    terminal.say(f"registry {status.registry} at {(status.processed or 'nothing yet')[:12]}")
    if status.paused is not None:
        terminal.say(f"paused: {status.paused}; to go on: kernelevolve resume")
    if status.broken:
        terminal.complain(f"its head {status.broken[:12]} is broken; see: kernelevolve run --once")
    if status.waiting:
        table = make_table("goal", "state", "trials", "waited", "why")
        for goal in status.waiting:
            table.add_row(
                f"{goal.operator} on {goal.hardware}",
                goal.state,
                str(goal.trials or ""),
                f"{goal.waited_s / 60:.0f} min",
                goal.obstacle or "; ".join(goal.why),
            )
        terminal.show(table)
    for past in status.ended:
        at = f"{datetime.fromtimestamp(past.at, UTC):%Y-%m-%d %H:%M}"
        end = past.end
        terminal.say(f"{at} {end.operator} on {end.hardware}: {describe_end(end)}")
    if not (status.waiting or status.ended):
        terminal.say("nothing is queued, and nothing ever was")


def list_pull_requests(args: Namespace, terminal: Terminal) -> int:
    """List the pull requests, newest first."""
    found = _forge().pull_requests()
    if terminal.as_json:
        terminal.tell({"pull_requests": [p.model_dump(mode="json") for p in found]})
        return 0
    table = make_table("#", "state", "title", "branch", "updated")
    for p in found:
        table.add_row(str(p.number), p.state, p.title, p.head, p.updated_at)
    if found:
        terminal.show(table)
    else:
        terminal.say("no pull requests")
    return 0


def show_pull_request(args: Namespace, terminal: Terminal) -> int:
    """Show a pull request."""
    found = [p for p in _forge().pull_requests() if p.number == args.number]
    if not found:
        msg = f"there is no pull request #{args.number}; see: kernelevolve pr list"
        raise MisuseError(msg)
    if terminal.as_json:
        terminal.tell(found[0])
    else:
        draw_pull_request(found[0], terminal)
    return 0


def close_pull_request(args: Namespace, terminal: Terminal) -> int:
    """Close a pull request: the kernel is not proposed again until its operator changes."""
    closed = _forge().close_pull_request(args.number)
    if terminal.as_json:
        terminal.tell(closed)
    else:
        terminal.say(f"pull request #{closed.number} is {closed.state}")
    return 0


def draw_pull_request(p: PullRequest, terminal: Terminal) -> None:
    """Show a pull request as it reads on a code host."""
    terminal.say(f"#{p.number} {p.title}")
    terminal.say(f"{p.state}: {p.head} ({p.head_sha[:12]}) into {p.base}; {', '.join(p.labels)}")
    terminal.say("")
    terminal.show_markdown(p.body)


def _forge() -> Forge:
    settings = Settings.load()
    return make_forge(settings, make_workspace(settings))
