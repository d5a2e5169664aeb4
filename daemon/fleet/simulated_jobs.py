"""Jobs of a drill: real searches, in threads of this process, before judges that only wait."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from daemon.jobs import JobRefusedError, Progress, Task
from operator_registry.record import Record
from optimizer.errors import OptimizerError
from optimizer.job import OptimizeRequest, PhaseEvent, Result, TrialEvent
from optimizer.optimize import Workshop, optimize
from optimizer.runners.access import RayAccess
from optimizer.runners.post import JudgeRequest
from optimizer.runners.ray import Cluster
from optimizer.runners.remote import RemoteRunner
from optimizer.runners.simulated import JUDGE, SLOWNESS, VERSION, NumberedProposer
from optimizer.search.search import Clock
from optimizer.store import Store


@dataclass(frozen=True)
class SimulatedJobs:
    """Does searches as `python -m optimizer` does, but for the process and the judge."""

    store: Store
    cluster: Cluster
    trials: int
    slow: dict[str, float]
    """By the end of a device's name, how many times as long a trial takes there."""
    samples: Path

    def run(
        self,
        task: Task,
        request: Record,
        *,
        on_progress: Callable[[Progress], None] = lambda _: None,
        keep_going: Callable[[], bool] = lambda: True,
    ) -> Result | None:
        """Return the search's result; see `daemon.jobs.Jobs.run`.

        Raises:
            JobRefusedError: The search could not be made.
        """
        assert isinstance(request, OptimizeRequest)  # noqa: S101 - a drill asks for no others
        assert request.device is not None  # noqa: S101 - the pool leases one for each job
        access = request.device.access
        assert isinstance(access, RayAccess)  # noqa: S101 - the drill's are all in its cluster
        slowness = next((x for end, x in self.slow.items() if request.device.name.endswith(end)), 1)
        asked = JudgeRequest(
            operator=request.operator,
            hardware=request.hardware,
            judge_version=VERSION,
            effort={SLOWNESS: slowness},
        )
        posts = self.cluster.at(access)
        try:
            with RemoteRunner(posts, asked, samples=self.samples, judge=JUDGE) as runner:
                workshop = Workshop(
                    store=self.store,
                    runner=runner,
                    make_proposers=lambda: (NumberedProposer(self.trials),),
                    judge_version=VERSION,
                    clock=Clock(time.monotonic, time.time),
                    tell=lambda event: _pass_on(event, on_progress),
                    stopped=lambda: not keep_going(),
                    missing_walls=tuple,
                )
                return optimize(request, workshop)
        except OptimizerError as error:
            raise JobRefusedError(type(error).__name__, str(error)) from error


def _pass_on(event: Record, on_progress: Callable[[Progress], None]) -> None:
    if isinstance(event, PhaseEvent | TrialEvent):
        on_progress(event)
