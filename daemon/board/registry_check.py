"""A check beside pull requests that change the registry: parsed and told about, never run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from daemon.board.registry_change import Judged, Side, judge_change
from daemon.config.file import CONFIG_PATH, BotConfig, cap, read_config
from daemon.config.watch import ConfigWatch, read_revision_config
from daemon.forge import Check, PullRequest
from daemon.logs import find_log
from daemon.marks import Marks
from daemon.origin import Heads, TooLargeError, WorkspaceError
from daemon.pause import find_pause
from daemon.planner import REGISTRY_ENTRIES, registry_texts
from operator_registry.fault import Fault, RegistryError
from operator_registry.registry import Registry, parse_registry

log = find_log(__name__)
NAME = "kernelevolve / registry"
_MOST_AT_ONCE = 5
"""Commits that are looked at in one round: a flood of them must not keep what comes after."""
_MOST_BYTES = 16 * 1024 * 1024


class Host(Protocol):
    """What the code host is asked: a part of `daemon.forge.CodeHost`."""

    def pull_requests(self, *, head: str | None = None) -> tuple[PullRequest, ...]:
        """Return the pull requests of every state."""
        ...

    def show_check(self, check: Check) -> None:
        """Show a check, in the place of the one of the same name and commit."""
        ...


class Requests(Protocol):
    """The git side: `daemon.workspace.Workspace`."""

    def find_heads(self) -> Heads:
        """Return the origin's branches."""
        ...

    def fetch(self, branch: str) -> str:
        """Bring a branch into the clone and return its head."""
        ...

    def fetch_request(self, number: int) -> str:
        """Bring a pull request's head into the clone and return it."""
        ...

    def holds(self, revision: str) -> bool:
        """Return whether the clone holds a commit."""
        ...

    def find_fork(self, one: str, other: str) -> str | None:
        """Return the last commit that both hold."""
        ...

    def tree(self, revision: str, path: str) -> str | None:
        """Return the hash of what is at a path."""
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
class RegistryCheck:
    """Looks at each new head of a pull request to the base branch."""

    host: Host
    workspace: Requests
    marks: Marks
    config: ConfigWatch
    folder: str
    """Where ``registry.yaml`` lies in the repository."""
    base: str = ""
    """The branch; empty for the origin's default."""

    def run(self) -> None:
        """Check what has not been checked yet, but while all is paused or nobody has agreed to us.

        A configuration that is broken keeps nobody from being told whether a change mends it.

        Raises:
            ForgeError: The code host can't be asked now, or refuses.
            WorkspaceError: The origin can't be reached now, or one of the heads can't be read; the
                others are checked first.
        """
        is_asleep = self.config.find_hold() is not None and not self.config.find_faults()
        if is_asleep or find_pause(self.marks) is not None:
            return
        base = self.base or self.workspace.find_heads().default
        fresh = [
            request
            for request in self.host.pull_requests()
            if request.state == "open"
            and request.base == base
            and self.marks.recall(_checked(request)) != request.head_sha
        ]
        if not fresh:
            return
        base_sha = self.workspace.fetch(base)
        failures: list[WorkspaceError] = []
        for request in fresh[:_MOST_AT_ONCE]:
            try:
                self._check(request, base_sha)
            except WorkspaceError as error:
                log.warning("head can't be checked", number=request.number, error=str(error))
                failures.append(error)
        if failures:
            raise failures[0]

    def _check(self, request: PullRequest, base_sha: str) -> None:
        head = request.head_sha
        if not self.workspace.holds(head) and self.workspace.fetch_request(request.number) != head:
            return  # it has moved again: the next round knows its new head
        fork = self.workspace.find_fork(base_sha, head)
        if fork is not None and self._touches(fork, head):
            judged = self._judge(fork, head)
            self.host.show_check(_make_check(head, judged))
            log.info("registry checked", number=request.number, sha=head, title=judged.title)
        self.marks.mark(_checked(request), head)

    def _touches(self, fork: str, head: str) -> bool:
        prefix = f"{self.folder.strip('/')}/" if self.folder else ""
        paths = (*(f"{prefix}{entry}" for entry in REGISTRY_ENTRIES), CONFIG_PATH)
        return any(self.workspace.tree(fork, p) != self.workspace.tree(head, p) for p in paths)

    def _judge(self, fork: str, head: str) -> Judged:
        try:
            return judge_change(self._read(fork), self._read(head))
        except TooLargeError as error:
            return Judged("failure", "it is too large", f"{error}.")

    def _read(self, revision: str) -> Side:
        text, faults = read_revision_config(self.workspace, revision)
        config = BotConfig() if not text else read_config(text).record
        in_force = None if faults or config is None else cap(config, self.config.ceilings)
        try:
            return Side(self._parse(revision), in_force, faults)
        except RegistryError as error:
            return Side(None, in_force, (*self._placed(error.faults), *faults))

    def _parse(self, revision: str) -> Registry:
        files: Mapping[str, bytes] = self.workspace.files(
            revision, self.folder.strip("/"), under=REGISTRY_ENTRIES, most_bytes=_MOST_BYTES
        )
        return parse_registry(registry_texts(files))

    def _placed(self, faults: Sequence[Fault]) -> tuple[Fault, ...]:
        """Return faults with the paths that people see them under."""
        if not self.folder:
            return tuple(faults)
        folder = self.folder.strip("/")
        return tuple(f.model_copy(update={"path": f"{folder}/{f.path}"}) for f in faults)


def _make_check(head: str, judged: Judged) -> Check:
    return Check(
        name=NAME,
        head_sha=head,
        status="completed",
        conclusion=judged.conclusion,
        title=judged.title,
        summary=judged.summary,
        text=judged.text,
    )


def _checked(request: PullRequest) -> str:
    return f"registry_check/{request.number}"
