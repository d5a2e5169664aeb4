"""Puts the lending of devices together, as the settings say."""

import socket
from collections.abc import Callable, Sequence

from daemon.fleet.found import count_side_by_side, local_devices, own_cores
from daemon.fleet.lending import Lending
from daemon.fleet.pool import Pool
from daemon.host import Host
from daemon.jobs import RunsJobs
from daemon.settings import Settings
from optimizer.store import NewDevice, Store


def make_lending(
    settings: Settings, host: Host, store: Store, *, holder: str, clock: Callable[[], float]
) -> Lending:
    """Return what lends the devices of this machine, and of a cluster where there is one.

    What an earlier holder of the same role had is free again.

    Raises:
        RunnerError: The cluster can't be reached.
    """
    name = socket.gethostname()
    own = local_devices(host, name, cpus=settings.cpus, cores=own_cores())
    lending = Lending(
        store=store,
        holder=holder,
        clock=clock,
        look_around=_with_cluster(own, settings.ray),
        artefacts=settings.state / "artefacts",
        host=name,
        ttl_s=settings.lease_s,
    )
    store.free_devices_of(holder, now=clock())
    lending.look()
    return lending


def make_pool(settings: Settings, jobs: RunsJobs, lending: Lending) -> Pool | None:
    """Return what has jobs done side by side; None where no two can be."""
    if not settings.ray and count_side_by_side(lending.look_around()) <= 1:
        return None
    return Pool(jobs, lending)


def _with_cluster(own: Sequence[NewDevice], address: str) -> Callable[[], Sequence[NewDevice]]:
    if not address:
        return lambda: own
    # Ray takes a second to load, and most daemons have no use for it.
    from optimizer.runners.ray import Cluster  # noqa: PLC0415

    cluster = Cluster(address)
    return lambda: [*own, *cluster.devices()]
