"""The commands that look at GitHub: doctor."""

from argparse import Namespace

from daemon.bot import make_workspace
from daemon.cli.arguments import MisuseError
from daemon.cli.terminal import Terminal
from daemon.forge import ForgeError
from daemon.github.doctor import Doctor, Finding
from daemon.github.forge import GitHubForge
from daemon.github.setup import make_client
from daemon.origin import WorkspaceError
from daemon.settings import Settings, SettingsError

MISUSE = (MisuseError, SettingsError)
FAULTS = (WorkspaceError, ForgeError, OSError)
_SIGNS = {"good": "ok  ", "note": "note", "bad": "BAD "}


def doctor(args: Namespace, terminal: Terminal) -> int:
    """Say whether GitHub lets the daemon do its work, and what to change."""
    settings = Settings.load()
    if settings.forge != "github":
        msg = "the forge is not GitHub; set KERNELEVOLVE_FORGE=github"
        raise MisuseError(msg)
    workspace = make_workspace(settings)
    findings = Doctor(settings, GitHubForge(make_client(settings)), workspace).find()
    if terminal.as_json:
        terminal.tell({"findings": [finding.model_dump(mode="json") for finding in findings]})
    else:
        for finding in findings:
            _show(finding, terminal)
    return 1 if any(finding.state == "bad" for finding in findings) else 0


def _show(finding: Finding, terminal: Terminal) -> None:
    terminal.say(f"{_SIGNS[finding.state]} {finding.subject}: {finding.told}")
    if finding.fix:
        terminal.say(f"     -> {finding.fix}")
