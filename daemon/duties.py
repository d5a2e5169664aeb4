"""Which stewards there are, and what each does in which order.

One thread answers people and stops what they want stopped; another does what they ask for; a third
sees to all that may take minutes. So the first is never behind the others.
"""

from collections.abc import Mapping, Sequence

from daemon.board.config_notice import ConfigNotice
from daemon.board.dashboard_issue import Dashboard
from daemon.board.onboarding import Onboarding
from daemon.board.registry_check import RegistryCheck
from daemon.bot import Bot
from daemon.github.access import App
from daemon.github.deliveries import GitHubDeliveries
from daemon.github.forge import GitHubForge
from daemon.outbox import Outbox
from daemon.pulls.shepherd import Shepherd
from daemon.steward import Duty, Part
from daemon.talk.asking import FindRegistry
from daemon.talk.intake import Intake
from daemon.talk.permissions import Permissions
from daemon.talk.runner import CommandRunner
from daemon.talk.scene import Scenes
from daemon.talk.status import StatusComments
from daemon.web.redelivery import Redelivery
from operator_registry.registry import Registry

ANSWERS, COMMANDS, UPKEEP = "answers", "commands", "upkeep"
"""The stewards' names."""
_CONFIG_S = 30.0
_CHECK_S = 30.0
_SHEPHERD_S = 30.0
_BOARD_S = 60.0
_REDELIVERY_S = 3600.0


def make_lanes(bot: Bot) -> Mapping[str, Sequence[Duty]]:
    """Return the stewards' duties by their names; none where the code host has no people on it."""
    host = bot.forge
    if not isinstance(host, GitHubForge):
        return {}
    permissions = Permissions(host, bot.clock)

    def make_runner(*, stops: bool) -> CommandRunner:
        return CommandRunner(
            host=host,
            store=bot.store,
            config=bot.config.in_force,
            permissions=permissions,
            find_registry=_find_registry(bot),
            is_paused=bot.is_paused,
            clock=bot.clock,
            stops=stops,
        )

    def make_outbox(*, urgent: bool) -> Outbox:
        status = StatusComments(bot.store, lambda number: Scenes(host).look(number), bot.clock)
        return Outbox(host, bot.store, status.render, bot.is_paused, bot.clock, urgent=urgent)

    return {
        # What runs on while all is paused heeds the pause itself: `/stop` and `/status` are done.
        ANSWERS: (
            _always("intake", Intake(host, bot.store, bot.config.in_force, bot.clock)),
            _always("stops", make_runner(stops=True)),
            _always("acknowledgements", make_outbox(urgent=True), at_the_end=True),
        ),
        COMMANDS: (
            _always("commands", make_runner(stops=False)),
            _always("outbox", make_outbox(urgent=False)),
        ),
        UPKEEP: tuple(_make_upkeep(bot, host)),
    }


def _always(name: str, part: Part, *, every_s: float = 0.0, at_the_end: bool = False) -> Duty:
    return Duty(name, part, every_s, while_paused=True, while_on_hold=True, at_the_end=at_the_end)


def _make_upkeep(bot: Bot, host: GitHubForge) -> Sequence[Duty]:
    settings, watch = bot.settings, bot.cycle.watch
    notice = ConfigNotice(host, bot.store, bot.config, bot.clock)
    shepherd = Shepherd(
        host=host,
        branches=bot.branches,
        store=bot.store,
        find_registry=watch.current,
        config=bot.config.in_force,
        base=settings.base,
    )
    dashboard = Dashboard(
        host=host,
        store=bot.store,
        watch=watch,
        config=bot.config,
        gate=bot.gate,
        machine=bot.cycle.host,
        clock=bot.clock,
        find_faults=lambda: bot.health.report(paused=False).faults,
    )
    check = RegistryCheck(
        host=host,
        workspace=bot.workspace,
        marks=bot.store,
        config=bot.config,
        folder=settings.folder,
        base=settings.base,
    )
    duties = [
        # It reads alone; who did not look would not see that a pause is over.
        _always("configuration", bot.config, every_s=_CONFIG_S),
        Duty("configuration notice", notice, _CONFIG_S, while_on_hold=True),
        Duty("shepherd", shepherd, every_s=_SHEPHERD_S),
        Duty("registry check", check, _CHECK_S, while_on_hold=True),
        Duty("dashboard", dashboard, every_s=_BOARD_S),
    ]
    if settings.onboarding:
        onboarding = Onboarding(
            host=host,
            repository=bot.workspace,
            marks=bot.store,
            config=bot.config,
            find_registry=watch.current,
            clock=bot.clock,
            name=settings.author_name,
            email=settings.author_email,
        )
        duties.append(Duty("onboarding", onboarding, _BOARD_S, while_on_hold=True))
    if settings.takes_webhooks and isinstance(host.client.access, App):
        redelivery = Redelivery(GitHubDeliveries(host.client), bot.store, bot.clock)
        duties.append(_always("redelivery", redelivery, every_s=_REDELIVERY_S))
    return duties


def _find_registry(bot: Bot) -> FindRegistry:
    def find() -> tuple[str, Registry] | None:
        revision, registry = bot.cycle.watch.processed(), bot.cycle.watch.current()
        return None if revision is None or registry is None else (revision, registry)

    return find
