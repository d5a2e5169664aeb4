"""Puts the daemon's parts together, as the settings say."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from daemon.actions.runner import is_away
from daemon.config.watch import ConfigWatch, load_ceilings
from daemon.cycle import Cycle
from daemon.fleet.pool import LeasedJobs
from daemon.fleet.setup import make_lending, make_pool
from daemon.forge import Forge
from daemon.gate import Gate
from daemon.github.forge import GitHubForge
from daemon.github.setup import find_origin, make_client, make_credentials
from daemon.host import detect_host
from daemon.jobs import Progress, RunsJobs
from daemon.local_forge import LocalForge
from daemon.pause import find_pause
from daemon.planner import Work
from daemon.pulls.branches import Branches
from daemon.pulls.publish import Publisher
from daemon.pulls.pull_request import Site
from daemon.pulls.reverify import Reverifier
from daemon.role import Role, hold_role
from daemon.routing import Routes, make_away
from daemon.settings import Settings, SettingsError
from daemon.tidying import Tidying
from daemon.watch import Watch
from daemon.web.health import Health
from daemon.workspace import Workspace
from optimizer.store import Store
from optimizer.store.artefacts import Artefacts

WORK = "work"
"""The name of the loop that searches and publishes."""


@dataclass(frozen=True)
class Bot:
    """The daemon's parts, while this process is the daemon."""

    settings: Settings
    cycle: Cycle
    jobs: Routes
    """Does jobs here, or has a runner of the code host do them."""
    store: Store
    forge: Forge
    workspace: Workspace
    branches: Branches
    config: ConfigWatch
    gate: Gate
    role: Role
    health: Health
    clock: Callable[[], float]
    """Seconds since 1970."""

    def is_paused(self) -> bool:
        """Return whether all is paused, by this host or by the registry's configuration.

        A registry that has none yet is not: whoever writes to the bot there is answered.
        """
        is_absent = self.config.is_there() is False
        on_hold = self.config.find_hold() is not None and not is_absent
        return on_hold or find_pause(self.store) is not None


@contextmanager
def open_bot(  # noqa: PLR0913 - what makes this process one daemon and no other
    settings: Settings,
    *,
    jobs: RunsJobs,
    is_stopped: Callable[[], bool],
    on_progress: Callable[[Work, Progress], None] = lambda _work, _event: None,
    clock: Callable[[], float] = time.time,
    wait: Callable[[], bool] | None = None,
) -> Iterator[Bot]:
    """Be the daemon of a state folder.

    Args:
        settings: Its settings.
        jobs: Does the jobs on this machine.
        is_stopped: Asked several times a second; what runs is handed back once it says yes.
        on_progress: Called with what jobs tell.
        clock: Seconds since 1970.
        wait: Where another process is the daemon: waits a moment and returns whether to go on
            standing by. None for an error at once.

    Raises:
        SettingsError: No registry is set.
        RoleTakenError: Another process is that daemon.
        StoreError: The database can't be opened.
    """
    workspace = make_workspace(settings)
    forge = make_forge(settings, workspace)
    health = Health(time.monotonic)
    with (
        open_store(settings) as store,
        hold_role(store, settings.state, clock=clock, ttl_s=settings.lease_s, wait=wait) as role,
    ):
        store.release_all()  # whoever claimed them is gone: this process has the role

        branches = make_branches(settings, workspace, forge, store, clock=clock)
        config = make_config(settings, workspace, store)
        gate = Gate(config, store, clock)
        site = make_site(forge, workspace)

        def make_publisher(base: str) -> Publisher:
            return Publisher(branches, forge, base, site, config.in_force)

        ended = threading.Event()

        def is_ending() -> bool:
            return is_stopped() or ended.is_set() or not role.renew()

        def keep_going() -> bool:
            if not is_away():  # who waits for another machine is no sign of this loop's life
                health.beat(WORK)
            return not is_ending() and find_pause(store) is None

        host = detect_host(has_runners=bool(settings.actions_workflow))
        lending = make_lending(settings, host, store, holder=role.holder, clock=clock)
        pool = make_pool(settings, jobs, lending)
        routes = Routes(
            host=host,
            here=LeasedJobs(jobs, lending),
            lending=lending,
            pool=pool,
            away=make_away(
                settings,
                forge,
                store,
                find_ref=lambda: settings.base or workspace.find_heads().default,
                is_ending=is_ending,
            ),
        )
        reverifier = Reverifier(
            branches=branches,
            store=store,
            jobs=routes,
            find_obstacle=routes.find_obstacle,
            is_going=routes.is_going,
            gate=gate,
            state=settings.state,
            keep_going=keep_going,
            trusted_keys=settings.trusted,
        )
        tidying = Tidying(
            store=store,
            artefacts=Artefacts(settings.state / "artefacts"),
            cap_bytes=int(settings.artefacts_gb * 1e9),
            clock=clock,
        )
        cycle = Cycle(
            store=store,
            watch=Watch(workspace, store, settings.folder, settings.base),
            make_publisher=make_publisher,
            jobs=routes,
            host=routes.host,
            find_machine_obstacle=lambda hardware: (
                routes.find_obstacle(hardware) or routes.find_hindrance(hardware)
            ),
            state=settings.state,
            store_url=settings.store_url,
            signing_key=settings.signing_key,
            accept_weak_sandbox=settings.accept_weak_sandbox,
            warm_start=settings.warm_start,
            model=settings.model,
            holder=role.holder,
            clock=clock,
            gate=gate,
            keep_going=keep_going,
            on_progress=on_progress,
            is_away=routes.is_going,
            replay=reverifier.run,
            tidy=tidying.run,
            lending=lending,
            pool=pool,
        )
        try:
            yield Bot(
                settings=settings,
                cycle=cycle,
                jobs=routes,
                store=store,
                forge=forge,
                workspace=workspace,
                branches=branches,
                config=config,
                gate=gate,
                role=role,
                health=health,
                clock=clock,
            )
        finally:
            ended.set()
            routes.close()
            if isinstance(forge, GitHubForge):
                forge.client.close()


@contextmanager
def open_cycle(
    settings: Settings,
    *,
    jobs: RunsJobs,
    is_stopped: Callable[[], bool],
    on_progress: Callable[[Work, Progress], None] = lambda _work, _event: None,
) -> Iterator[Cycle]:
    """Be the daemon of a state folder, for single turns.

    Raises:
        SettingsError: No registry is set.
        RoleTakenError: Another process is that daemon.
        StoreError: The database can't be opened.
    """
    with open_bot(settings, jobs=jobs, is_stopped=is_stopped, on_progress=on_progress) as bot:
        yield bot.cycle


@contextmanager
def open_store(settings: Settings) -> Iterator[Store]:
    """Open the database, brought up to date.

    Raises:
        StoreError: It can't be opened.
    """
    settings.state.mkdir(parents=True, exist_ok=True)
    with Store(settings.store_url) as store:
        store.migrate()
        yield store


def make_workspace(settings: Settings) -> Workspace:
    """Return the clone of the registry.

    Raises:
        SettingsError: No registry is set, or no way into it.
    """
    folder = settings.state / "registry.git"
    if settings.forge == "github":
        origin = find_origin(settings)
        return Workspace(origin, folder, make_credentials(settings, origin))
    if not settings.registry:
        msg = "no registry is set; set KERNELEVOLVE_REGISTRY to the URL or path of its repository"
        raise SettingsError(msg)
    return Workspace(settings.registry, folder)


def make_config(settings: Settings, workspace: Workspace, store: Store) -> ConfigWatch:
    """Return what looks at the registry's configuration.

    Raises:
        SettingsError: The file of ceilings can't be read.
    """
    return ConfigWatch(
        workspace=workspace,
        memory=store,
        base=settings.base,
        ceilings=load_ceilings(settings.ceilings),
        is_required=settings.onboarding and settings.forge != "local",
    )


def make_branches(
    settings: Settings,
    workspace: Workspace,
    forge: Forge,
    store: Store,
    *,
    clock: Callable[[], float],
) -> Branches:
    """Return our branches at the origin."""
    name, email = settings.author_name, settings.author_email
    host = forge if isinstance(forge, GitHubForge) else None
    return Branches(
        workspace, store, name, email, me=lambda: host.me if host else None, clock=clock
    )


def make_site(forge: Forge, workspace: Workspace) -> Site:
    """Return where pull requests are read."""
    if not isinstance(forge, GitHubForge):
        return Site()
    return Site(web=workspace.origin.removesuffix(".git"), hears_commands=True)


def make_forge(settings: Settings, workspace: Workspace) -> Forge:
    """Return the code host: one that implements `CodeHost`, where it is GitHub.

    Raises:
        SettingsError: The settings do not say who we are there.
    """
    if settings.forge == "github":
        return GitHubForge(make_client(settings))
    return LocalForge(settings.forge_folder, workspace)
