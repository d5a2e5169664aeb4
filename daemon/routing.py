"""Who does a job: this machine, a host of its fleet, or else a runner of the code host."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from daemon.actions.runner import ActionsJobs, Away, find_hardware
from daemon.actions.yard import Yard
from daemon.fleet.lending import Lending
from daemon.fleet.pool import Pool
from daemon.forge import Forge
from daemon.github.forge import GitHubForge
from daemon.host import Host
from daemon.jobs import Progress, RunsJobs, Task
from daemon.marks import Marks
from daemon.settings import Settings, SettingsError
from operator_registry.hardware import HardwareSpec
from operator_registry.record import Record
from optimizer.job import Result


@dataclass(frozen=True)
class Routes:
    """Sends each job to where it can be done."""

    host: Host
    here: RunsJobs
    away: Away | None = None
    lending: Lending | None = None
    pool: Pool | None = None
    """Has jobs done side by side; None where there is a single device."""

    def run(
        self,
        task: Task,
        request: Record,
        *,
        on_progress: Callable[[Progress], None] = lambda _: None,
        keep_going: Callable[[], bool] = lambda: True,
    ) -> Result | None:
        """Return the job's result, or None where it has none yet; see `Jobs.run` and `Away.run`.

        Raises:
            JobError: The job has no result.
        """
        return self._pick(request).run(
            task, request, on_progress=on_progress, keep_going=keep_going
        )

    def is_going(self, key: str) -> bool:
        """Return whether the search of a goal is under way, or its end waits to be asked for."""
        return any(other.is_going(key) for other in (self.away, self.pool) if other is not None)

    def find_obstacle(self, hardware: HardwareSpec) -> str | None:
        """Return why there is no device of a hardware, here or anywhere; None where there is."""
        if self.pool is not None and self.pool.knows(hardware):
            return None
        return self.host.find_obstacle(hardware)

    def find_hindrance(self, hardware: HardwareSpec) -> str | None:
        """Return why no device of a hardware is to be had now, where that may pass by itself."""
        if self.lending is None:
            return None
        if self.pool is None and not self.host.is_here(hardware):
            return None  # runners of the code host have devices that nobody here keeps a list of
        if obstacle := self.lending.find_obstacle(hardware):
            return obstacle
        return self.lending.find_user(hardware) if self.pool is None else None

    def close(self) -> None:
        """Wait for what waits for jobs."""
        for other in (self.away, self.pool):
            if other is not None:
                other.close()

    def _pick(self, request: Record) -> RunsJobs:
        hardware = find_hardware(request)
        if self.pool is not None and hardware is not None and self.pool.knows(hardware):
            return self.pool
        if self.away is None or hardware is None or self.host.is_here(hardware):
            return self.here
        return self.away


def make_away(
    settings: Settings,
    forge: Forge,
    memory: Marks,
    *,
    find_ref: Callable[[], str],
    is_ending: Callable[[], bool],
) -> Away | None:
    """Return what has jobs done by the code host's runners; None where none are to be asked.

    Raises:
        SettingsError: The code host has no runners.
    """
    if not settings.actions_workflow:
        return None
    if not isinstance(forge, GitHubForge):
        msg = (
            "KERNELEVOLVE_ACTIONS_WORKFLOW: only GitHub has runners; set KERNELEVOLVE_FORGE=github"
        )
        raise SettingsError(msg)
    yard = Yard(forge, memory, settings.actions_workflow, find_ref, time.monotonic)
    return Away(ActionsJobs(yard, is_ending), settings.actions_at_once)
