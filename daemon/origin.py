"""An origin in git's words: names that may be handed to git, heads, signatures, errors.

WorkspaceError
├── OriginUnavailableError   the origin can't be reached now: try again later
├── BranchMovedError         somebody else pushed to the branch: it is not overwritten
├── TooLargeError            more than is read of strangers
└── UnknownRevisionError     no such revision, repository or branch
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

URL = re.compile(r"^(/|\./|\.\./|~/|file:///|https?://|ssh://|git@)[^\x00-\x20\x7f]*$")
BRANCH = re.compile(r"^(?!.*\.\.)[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*$")
REVISION = re.compile(r"^(?!.*\.\.)[A-Za-z0-9_][A-Za-z0-9._/~^@{}-]*$")
SHA = re.compile(r"^[0-9a-f]{40}([0-9a-f]{24})?$")

_CONFIGURATION = {
    "core.hooksPath": "/dev/null",  # a hook of the user's own must not run on the bot's pushes
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "30",
}


def _environment(protocols: str, configuration: Mapping[str, str]) -> dict[str, str]:
    made = {
        "GIT_ALLOW_PROTOCOL": protocols,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_COUNT": str(len(configuration)),
    }
    for number, (name, value) in enumerate(configuration.items()):
        made |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return made


ENVIRONMENT = _environment("file:http:https:ssh", _CONFIGURATION)
"""Variables of every git that we start: few protocols, no prompt, no hooks, no endless wait."""


def environment_with(secrets: Mapping[str, str], origin: str) -> dict[str, str]:
    """Return the variables of a git that is let into an origin.

    Nobody else's configuration is read, so that no helper and no rewritten address learns of it,
    and the way to another host is not followed. Nothing of it comes onto the disk, nor onto a
    command line.

    Args:
        secrets: Git's configuration with what lets it in.
        origin: A URL; its protocol is the only one.
    """
    strict = {"credential.helper": "", "http.followRedirects": "false"}
    made = _environment(origin.split(":", 1)[0], _CONFIGURATION | strict | dict(secrets))
    nobodys = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_ASKPASS": ""}
    return made | nobodys


class WorkspaceError(Exception):
    """The root of what the workspace raises."""


class OriginUnavailableError(WorkspaceError):
    """The origin can't be reached now."""

    def __init__(self, origin: str, reason: str) -> None:
        super().__init__(f"{origin} can't be reached: {reason}")
        self.origin = origin


class BranchMovedError(WorkspaceError):
    """The branch is not where it was when we looked: nothing was pushed."""

    def __init__(self, branch: str) -> None:
        super().__init__(f"somebody else pushed to {branch}: it is left as it is")
        self.branch = branch


class TooLargeError(WorkspaceError):
    """The files of a revision are larger together than is read of them."""

    def __init__(self, most_bytes: int) -> None:
        super().__init__(f"its files take more than {most_bytes // 1024} KiB together")
        self.most_bytes = most_bytes


class UnknownRevisionError(WorkspaceError):
    """There is no such revision, branch or repository."""


@dataclass(frozen=True)
class Heads:
    """What an origin's branches point at."""

    default: str
    """The origin's own default branch; empty where the repository is empty."""
    branches: Mapping[str, str]


@dataclass(frozen=True)
class Signature:
    """Who makes a commit, and when (ISO 8601)."""

    name: str
    email: str
    at: str

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables by which git is told."""
        own = {"NAME": self.name, "EMAIL": self.email, "DATE": self.at}
        return {f"GIT_{who}_{key}": v for who in ("AUTHOR", "COMMITTER") for key, v in own.items()}


def require(pattern: re.Pattern[str], text: str) -> None:
    """Refuse a text that is not plainly a URL, a branch or a revision.

    Raises:
        UnknownRevisionError: It is not.
    """
    # GitPython's own guards have been got round more than once, so that no
    # other text gets as far as its command line.
    if not pattern.match(text) or text.endswith((".lock", ".", "\n")):
        msg = f"{text!r} is no name that is handed to git"
        raise UnknownRevisionError(msg)


def read_heads(text: str) -> Heads:
    """Return what ``git ls-remote --symref`` printed."""
    default = ""
    branches: dict[str, str] = {}
    for line in text.splitlines():
        value, _, name = line.partition("\t")
        if value.startswith("ref: ") and name == "HEAD":
            default = value.removeprefix("ref: refs/heads/")
        elif name.startswith("refs/heads/"):
            branches[name.removeprefix("refs/heads/")] = value
    return Heads(default=default, branches=branches)


def first_line(text: str) -> str:
    """Return the first line that git said, for a message."""
    lines = [line.strip() for line in text.replace("stderr:", "").strip(" '\n").splitlines()]
    return next((line for line in lines if line), "git gave no reason")
