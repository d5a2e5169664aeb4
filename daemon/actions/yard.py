"""Where the code host's runners are asked, and what is remembered of what was asked of them."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from daemon.forge import WorkflowRun
from daemon.marks import Marks
from operator_registry.record import Record


class RunsWorkflows(Protocol):
    """What of a `daemon.forge.CodeHost` is needed here."""

    def dispatch(self, workflow: str, *, ref: str, inputs: dict[str, str]) -> None:
        """Start a workflow."""
        ...

    def workflow_runs(self, workflow: str) -> tuple[WorkflowRun, ...]:
        """Return a workflow's last runs."""
        ...

    def cancel_run(self, run_id: int) -> None:
        """Ask for a run's end."""
        ...

    def artefact(self, run_id: int, name: str) -> bytes | None:
        """Return the one file in a run's artefact."""
        ...


@dataclass(frozen=True)
class Patience:
    """How long what may take."""

    tick_s: float = 0.5
    """Whether to stop is asked so often."""
    look_s: float = 10.0
    """The code host is asked so often."""
    appear_s: float = 90.0
    """A dispatched run is listed by then, or the dispatch was lost."""
    start_s: float = 12 * 3600.0
    """A runner takes the run by then."""
    run_s: float = 6 * 3600.0
    """The workflow's own limit is less; this one is for a runner that is gone."""
    upload_s: float = 60.0
    """A run that has ended shows its artefact by then."""
    fetch_s: float = 3600.0
    """The artefact can be fetched by then, or it never can: it is too large, say."""


class Sent(Record):
    """What is remembered of a dispatch."""

    tag: str
    request: str
    """The fingerprint of what was asked."""
    run_id: int | None = None
    """Once it is known."""


@dataclass
class Yard:
    """Where runs are asked for and looked at: one workflow of one repository, for all jobs."""

    host: RunsWorkflows
    memory: Marks
    workflow: str
    """The file name, such as ``search.yml``."""
    find_ref: Callable[[], str]
    """The branch whose workflow is run."""
    clock: Callable[[], float]
    patience: Patience = Patience()
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _listed: tuple[float, tuple[WorkflowRun, ...]] | None = field(default=None, init=False)

    def runs(self, *, fresh: bool = False) -> tuple[WorkflowRun, ...]:
        """Return the workflow's last runs, asked for seldom, however many jobs look."""
        with self._lock:
            now = self.clock()
            if fresh or self._listed is None or now - self._listed[0] > self.patience.look_s / 2:
                self._listed = (now, self.host.workflow_runs(self.workflow))
            return self._listed[1]

    def runs_of(self, tag: str, *, fresh: bool = False) -> list[WorkflowRun]:
        """Return the runs of a tag, the oldest first."""
        found = (run for run in self.runs(fresh=fresh) if tag in run.name.split())
        return sorted(found, key=lambda run: run.id)
