"""Which machine does a job: this one where it has the hardware, else a runner of the code host."""

from collections.abc import Callable
from dataclasses import dataclass

from daemon.actions_runner import Away, find_hardware
from daemon.host import Host
from daemon.jobs import Progress, RunsJobs, Task
from operator_registry.record import Record
from optimizer.job import Result


@dataclass(frozen=True)
class Routes:
    """Sends each job to where it can be done."""

    host: Host
    here: RunsJobs
    away: Away | None = None

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
        """Return whether the search of a goal runs on another machine."""
        return self.away is not None and self.away.is_going(key)

    def close(self) -> None:
        """Wait for what waits for other machines."""
        if self.away is not None:
            self.away.close()

    def _pick(self, request: Record) -> RunsJobs:
        hardware = find_hardware(request)
        if self.away is None or hardware is None or self.host.is_here(hardware):
            return self.here
        return self.away
