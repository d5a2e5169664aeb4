"""The configuration in force: the last good one at the base branch, below the host's ceilings.

A pull request can't change what holds for itself: nothing but the base branch is ever read. What
holds is remembered as the text of the file, so that it outlives the process and is read anew by a
later version of this program.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Protocol

from daemon.config.file import CONFIG_PATH, BotConfig, Ceilings, cap, read_ceilings, read_config
from daemon.logs import find_log
from daemon.marks import Marks
from daemon.origin import Heads, TooLargeError, UnknownRevisionError
from daemon.settings import SettingsError
from operator_registry.document import LARGEST_FILE_BYTES
from operator_registry.fault import Fault

log = find_log(__name__)
_GOOD = "config/good"
_BROKEN = "config/broken"
_LOOKED = "config/looked"
_PATH = PurePosixPath(CONFIG_PATH)
_MOST_BYTES = 2 * LARGEST_FILE_BYTES


class Revisions(Protocol):
    """Files at revisions of the origin: `daemon.workspace.Workspace`."""

    def find_heads(self) -> Heads:
        """Return the origin's branches."""
        ...

    def holds(self, revision: str) -> bool:
        """Return whether the clone holds a commit."""
        ...

    def fetch(self, branch: str) -> str:
        """Bring a branch into the clone and return its head."""
        ...

    def files(
        self,
        revision: str,
        folder: str = "",
        *,
        under: Sequence[str] = (),
        named: str = "",
        most_bytes: int | None = None,
    ) -> dict[str, bytes]:
        """Return the files of a revision, by their path below `folder`."""
        ...


@dataclass(frozen=True)
class ConfigWatch:
    """Looks at the configuration of one origin, and says what of it is in force."""

    workspace: Revisions
    memory: Marks
    base: str = ""
    """The branch that is read; empty for the origin's default."""
    ceilings: Ceilings = field(default_factory=Ceilings)
    is_required: bool = False
    """Nothing is done for a registry that has no configuration."""

    def run(self) -> None:
        """Look at the base branch's head, wherever it is now.

        Raises:
            OriginUnavailableError: The origin can't be reached now.
            UnknownRevisionError: It has no such branch.
        """
        heads = self.workspace.find_heads()
        base = self.base or heads.default
        if base not in heads.branches:
            msg = f"there is no branch {base or 'yet'}; push one"
            raise UnknownRevisionError(msg)
        head = heads.branches[base]
        if head != self.memory.recall(_LOOKED):
            self.look(head if self.workspace.holds(head) else self.workspace.fetch(base))

    def look(self, revision: str) -> None:
        """Let the configuration of a revision hold, if it is good; the last good one otherwise.

        Raises:
            UnknownRevisionError: The clone does not hold the commit.
        """
        if revision == self.memory.recall(_LOOKED):
            return
        text, faults = read_revision_config(self.workspace, revision)
        if faults:
            told = "\n".join(map(str, faults))
            if told != self.memory.recall(_BROKEN):
                log.error("configuration is broken", revision=revision, faults=told.splitlines())
            self.memory.mark(_BROKEN, told)
        else:
            if text != self.memory.recall(_GOOD):
                log.info("configuration holds", revision=revision, there=bool(text))
            self.memory.mark(_GOOD, text)
            self.memory.mark(_BROKEN, "")
        self.memory.mark(_LOOKED, revision)

    def in_force(self) -> BotConfig:
        """Return what holds now; `pause` is set wherever `find_hold` gives a reason."""
        good = self.memory.recall(_GOOD)
        config = (read_config(good).record if good else None) or BotConfig()
        return cap(config.model_copy(update={"pause": self.find_hold() is not None}), self.ceilings)

    def find_hold(self) -> str | None:
        """Return why nothing may be done for this registry; None where something may."""
        good = self.memory.recall(_GOOD)
        if good is None:
            if self.find_faults():
                return f"{CONFIG_PATH} is broken, and none before it was good"
            return f"nobody has looked for {CONFIG_PATH} yet"
        if not good:
            return f"there is no {CONFIG_PATH} yet" if self.is_required else None
        config = read_config(good).record
        if config is None:
            return f"{CONFIG_PATH} was written for another version of this program"
        return f"{CONFIG_PATH} says `pause: true`" if config.pause else None

    def is_there(self) -> bool | None:
        """Return whether there is a configuration; None where nobody has looked yet."""
        good = self.memory.recall(_GOOD)
        return True if self.find_faults() else None if good is None else bool(good)

    def find_faults(self) -> tuple[str, ...]:
        """Return what is wrong with the configuration at the base branch, if anything is."""
        return tuple((self.memory.recall(_BROKEN) or "").splitlines())


def read_revision_config(workspace: Revisions, revision: str) -> tuple[str, tuple[Fault, ...]]:
    """Return the configuration's text at a revision, empty where there is none, and its faults.

    Raises:
        UnknownRevisionError: The clone does not hold the commit.
    """
    other = _PATH.with_suffix(".yaml")
    names = (_PATH.name, other.name)
    try:
        files = workspace.files(revision, str(_PATH.parent), under=names, most_bytes=_MOST_BYTES)
    except TooLargeError:
        message = f"is larger than {LARGEST_FILE_BYTES // 1024} KiB"
        return "", (Fault(path=CONFIG_PATH, line=1, message=message, remedy="shorten it"),)
    if _PATH.name in files:
        # An empty file is no absent one: it says nothing, and so is a fault.
        text = files[_PATH.name].decode("utf-8", errors="surrogateescape")
        return text, read_config(text).faults
    if other.name in files:
        fault = Fault(
            path=str(other),
            line=1,
            message="is not read under this name",
            remedy=f"rename it to {_PATH.name}",
        )
        return "", (fault,)
    return "", ()


def load_ceilings(path: Path | None) -> Ceilings:
    """Return what no configuration may go beyond on this host; None for no ceilings.

    Raises:
        SettingsError: The file is away, or has faults.
    """
    if path is None:
        return Ceilings()
    try:
        text = read_file(path)
    except OSError as error:
        msg = f"KERNELEVOLVE_CEILINGS can't be read: {error}"
        raise SettingsError(msg) from error
    reading = read_ceilings(text, str(path))
    if reading.faults or reading.record is None:
        raise SettingsError("\n".join(map(str, reading.faults)))
    return reading.record


def read_file(path: Path) -> str:
    """Return a file's text; what is no UTF-8 comes back as lone surrogates, to be told of."""
    with path.open("rb") as file:
        return file.read(LARGEST_FILE_BYTES + 1).decode("utf-8", errors="surrogateescape")
