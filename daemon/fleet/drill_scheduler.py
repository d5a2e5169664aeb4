"""A scheduler of the fleet drill: ``python -m daemon.fleet.drill_scheduler FILE``.

It is the daemon but for its jobs, which are threads with judges that only wait. Two are started:
one works, the other stands by until the first is killed.
"""

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from daemon.bot import open_bot
from daemon.fleet.simulated_jobs import SimulatedJobs
from daemon.logs import configure_logs, find_log
from daemon.settings import Settings
from operator_registry.record import Record
from optimizer.runners.ray import Cluster
from optimizer.store import Store

_STAND_BY_S = 0.1
STARTED = "scheduler started"
log = find_log("daemon.fleet.drill_scheduler")  # run as a program it would be `__main__`


class Orders(Record):
    """What a scheduler of a drill is told."""

    registry: str
    state: Path
    ray: str
    trials: int = Field(gt=0)
    """Of each goal."""
    slow: dict[str, float]
    """See `SimulatedJobs`."""

    @property
    def settings(self) -> Settings:
        """Return the settings of the daemon that it is."""
        return Settings(registry=self.registry, state=self.state, ray=self.ray, log="json")


def main(arguments: Sequence[str]) -> int:
    """Work until no goal is left."""
    (file,) = arguments
    orders = Orders.from_json(Path(file).read_text(encoding="utf-8"))
    settings = orders.settings
    configure_logs("json", sys.stderr)
    with Cluster(orders.ray) as cluster, Store(settings.store_url) as store:
        jobs = SimulatedJobs(store, cluster, orders.trials, orders.slow, settings.state / "samples")
        with open_bot(settings, jobs=jobs, is_stopped=lambda: False, wait=_wait) as bot:
            log.info(STARTED)
            while bot.store.pending_goals():
                bot.cycle.run()
    return 0


def _wait() -> bool:
    time.sleep(_STAND_BY_S)
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
