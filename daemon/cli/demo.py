"""The demo: a registry of its own, a commit to it, a search, a proof and a pull request."""

import tempfile
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from daemon.bot import make_forge, make_workspace, open_cycle
from daemon.cli.arguments import MisuseError, find_hardware, find_operator
from daemon.cli.bot import FAULTS as BOT_FAULTS
from daemon.cli.bot import draw_pull_request
from daemon.cli.stop import heeding_signals
from daemon.cli.terminal import Terminal
from daemon.endings import describe_end
from daemon.jobs import Jobs
from daemon.logs import configure_logs
from daemon.origin import Signature
from daemon.report import Report
from daemon.settings import Settings, SettingsError
from daemon.workspace import Workspace, make_origin
from operator_registry.fault import RegistryError
from operator_registry.registry import CATALOG, load_registry

MISUSE = (MisuseError, SettingsError)
FAULTS = (RegistryError, *BOT_FAULTS)
_BUDGET_S = 130


def demo(args: Namespace, terminal: Terminal) -> int:
    """Show the whole path on this machine; 1 where no faster kernel was proven."""
    catalogue = load_registry(CATALOG)
    hardware = find_hardware(catalogue, "cpu").name
    operator = find_operator(catalogue, args.operator).name
    folder = Path(tempfile.mkdtemp(prefix="kernelevolve-demo-"))
    settings = Settings(registry=str(folder / "origin.git"), state=folder / "state")
    with _logging_to(folder / "daemon.log"):
        origin = _make_registry(folder, hardware)
        _step(terminal, f"1. A registry with no operators yet: {settings.registry}")
        title = f"{operator} on {hardware}"
        _turn(settings, title, terminal)
        _step(terminal, f"2. An engineer commits operator {operator}: {CATALOG / 'operators'}")
        _add_operator(origin, operator)
        _step(terminal, f"3. The daemon sees the commit and searches on {hardware}")
        report = _turn(settings, title, terminal)
    return _show_outcome(report, settings, terminal)


def _turn(settings: Settings, title: str, terminal: Terminal) -> Report:
    with (
        heeding_signals() as stop,
        terminal.progress(title) as on_progress,
        open_cycle(
            settings,
            jobs=Jobs(),
            is_stopped=stop.is_set,
            on_progress=lambda _, event: on_progress(event),
        ) as cycle,
    ):
        report = cycle.run()
    for planned in report.planned:
        terminal.say(f"   goal: {planned}")
    for end in report.ends:
        terminal.say(f"   {end.operator}: {end.trials} trials; {describe_end(end)}")
    for error in report.errors:
        terminal.complain(f"   error: {error}")
    if report == Report():
        terminal.say("   the daemon looks: nothing to do")
    return report


def _show_outcome(report: Report, settings: Settings, terminal: Terminal) -> int:
    workspace = make_workspace(settings)
    shown = make_forge(settings, workspace).pull_requests()
    if not shown:
        terminal.complain("no faster kernel was proven on this machine; see the lines above")
        return 1
    pull_request = shown[0]
    _step(terminal, f"4. The pull request on branch {pull_request.head}")
    terminal.say("")
    draw_pull_request(pull_request, terminal)
    path = "/".join(("kernels", *pull_request.head.split("/")[1:]))
    kernel = settings.state.parent / path
    for name, content in workspace.files(pull_request.head_sha, path).items():
        (kernel / name).parent.mkdir(parents=True, exist_ok=True)
        (kernel / name).write_bytes(content)
    _step(terminal, "5. Try it")
    terminal.say(f"   kernelevolve verify {kernel}")
    terminal.say(f"   python -c 'import optimizer; print(optimizer.load(\"{kernel}\"))'")
    here = f"KERNELEVOLVE_REGISTRY={settings.registry} KERNELEVOLVE_STATE={settings.state}"
    terminal.say(f"   {here} kernelevolve pr list")
    return 0 if any(end.verdict == "better" for end in report.ends) else 1


def _step(terminal: Terminal, text: str) -> None:
    terminal.say("")
    terminal.say(text)


def _make_registry(folder: Path, hardware: str) -> Workspace:
    make_origin(folder / "origin.git")
    origin = Workspace(str(folder / "origin.git"), folder / "engineer.git")
    files = {
        "registry.yaml": f"schema: 1\nhardware: [{hardware}]\nbudget_s: {_BUDGET_S}\n".encode(),
        f"hardware/{hardware}.yaml": (CATALOG / "hardware" / f"{hardware}.yaml").read_bytes(),
    }
    first = origin.commit(None, "", files, message="A registry", by=_engineer())
    origin.push("main", first, expected=None)
    return origin


def _add_operator(origin: Workspace, operator: str) -> None:
    folder = CATALOG / "operators" / operator
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    head = origin.fetch("main")
    where = f"operators/{operator}"
    sha = origin.commit(head, where, files, message=f"Add {operator}", by=_engineer())
    origin.push("main", sha, expected=head)


def _engineer() -> Signature:
    return Signature("An engineer", "engineer@localhost", datetime.now(UTC).isoformat())


@contextmanager
def _logging_to(file: Path) -> Iterator[None]:
    with file.open("a", encoding="utf-8") as stream:
        configure_logs("json", stream)
        yield
