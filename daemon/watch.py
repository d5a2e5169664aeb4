"""The registry at its origin: what is new there since the last look.

What has been looked at is remembered only when its goals are queued: a kill between the two makes
the next look find the same change again.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from daemon.logs import find_log
from daemon.marks import Marks
from daemon.origin import OriginUnavailableError, UnknownRevisionError
from daemon.planner import REGISTRY_ENTRIES, Pair, published_digests, registry_texts
from daemon.workspace import Workspace
from operator_registry.fault import RegistryError
from operator_registry.registry import Registry, parse_registry

log = find_log(__name__)
_PROCESSED = "registry/processed"
_BROKEN = "registry/broken"
_ORIGIN = "registry/origin"


class OtherRegistryError(Exception):
    """The state folder belongs to another registry."""


@dataclass(frozen=True)
class Unchanged:
    """The head was looked at before."""

    base: str
    revision: str


@dataclass(frozen=True)
class Changed:
    """The head is new, and it can be read."""

    base: str
    revision: str
    before: Registry | None
    """What was looked at last; None for nothing, or nothing that is there any more."""
    after: Registry


@dataclass(frozen=True)
class Broken:
    """The head can't be read; what was looked at before stays in force."""

    base: str
    revision: str
    error: RegistryError
    is_news: bool
    """Whether this is the first look at it."""


@dataclass(frozen=True)
class Watch:
    """Looks at one branch of the origin."""

    workspace: Workspace
    memory: Marks
    folder: str
    """Where ``registry.yaml`` lies in the repository."""
    base: str
    """The branch; empty for the origin's default."""

    def look(self) -> Unchanged | Changed | Broken:
        """Return what is new. Nothing is fetched where the head has not moved.

        Raises:
            OriginUnavailableError: The origin can't be reached now.
            UnknownRevisionError: It has no such branch.
            OtherRegistryError: The state folder belongs to another origin.
        """
        self._claim_folder()
        base, head = self._find_head()
        # What is remembered may be a daemon's of another machine, whose clone we lack.
        if not self.workspace.holds(head):
            self.workspace.unlock()
            head = self.workspace.fetch(base)
        if head == self.memory.recall(_PROCESSED):
            return Unchanged(base, head)
        try:
            after = self.parse(head)
        except RegistryError as error:
            is_news = self.memory.recall(_BROKEN) != head
            self.memory.mark(_BROKEN, head)
            return Broken(base, head, error, is_news)
        return Changed(base, head, self.current(), after)

    def accept(self, changed: Changed) -> None:
        """Remember that the goals of a change are queued."""
        self.memory.mark(_PROCESSED, changed.revision)
        self.memory.mark(_BROKEN, "")

    def processed(self) -> str | None:
        """Return the revision whose goals were queued last."""
        return self.memory.recall(_PROCESSED)

    def current(self) -> Registry | None:
        """Return the registry whose goals were queued last; None where there is none any more."""
        processed = self.processed()
        if processed is None:
            return None
        try:
            return self.parse(processed)
        except (RegistryError, UnknownRevisionError, OriginUnavailableError):
            log.warning("last revision is gone, so that everything is new", revision=processed)
            return None

    def parse(self, revision: str) -> Registry:
        """Return the registry of a revision that the clone holds.

        Raises:
            RegistryError: It has faults.
            UnknownRevisionError: The clone does not hold the commit.
        """
        files = self.workspace.files(revision, self.folder.strip("/"), under=REGISTRY_ENTRIES)
        return parse_registry(registry_texts(files))

    def published(self, revision: str) -> Mapping[Pair, str]:
        """Return for which operators, in which version, on which hardware there are kernels."""
        return published_digests(self.workspace.files(revision, "kernels", named="operator.json"))

    def _claim_folder(self) -> None:
        origin = self.workspace.origin
        known = self.memory.recall(_ORIGIN)
        if known is None:
            self.memory.mark(_ORIGIN, origin)
        elif known != origin:
            msg = f"this state belongs to the registry {known}; set KERNELEVOLVE_STATE for {origin}"
            raise OtherRegistryError(msg)

    def _find_head(self) -> tuple[str, str]:
        heads = self.workspace.find_heads()
        base = self.base or heads.default
        if base not in heads.branches:
            msg = f"{self.workspace.origin} has no branch {base or 'yet'}; push one"
            raise UnknownRevisionError(msg)
        return base, heads.branches[base]
