"""The parts by which people command the bot, put together, and the lanes that they run in."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from daemon.asking import FindRegistry
from daemon.command_runner import CommandRunner
from daemon.command_status import StatusComments
from daemon.config import Configured
from daemon.forge import CodeHost
from daemon.intake import Intake
from daemon.outbox import Outbox
from daemon.permissions import Permissions
from daemon.scene import Scenes
from daemon.steward import Duty
from optimizer.store import Store


@dataclass(frozen=True)
class CommandParts:
    """All that it takes from a comment to its answer."""

    intake: Intake
    stops: CommandRunner
    acknowledgements: Outbox
    commands: CommandRunner
    outbox: Outbox

    def lanes(self) -> Mapping[str, Sequence[Duty]]:
        """Return what runs beside each other.

        What must be quick, receipts and ``/stop``, waits neither for look-ups of what others want
        nor for the host to take what is not urgent. All run on in a pause: they know themselves
        what is then done.
        """
        return {
            "inbox": (
                Duty("intake", self.intake, while_paused=True),
                Duty("stops", self.stops, while_paused=True),
                Duty("acknowledgements", self.acknowledgements, while_paused=True),
            ),
            "commands": (Duty("commands", self.commands, while_paused=True),),
            "outbox": (Duty("outbox", self.outbox, while_paused=True),),
        }


def make_command_parts(  # noqa: PLR0913 - what the parts share
    host: CodeHost,
    store: Store,
    *,
    config: Configured,
    find_registry: FindRegistry,
    is_paused: Callable[[], bool],
    clock: Callable[[], float],
) -> CommandParts:
    """Return the parts.

    Args:
        host: The code host.
        store: Where everything that must not be lost is.
        config: The registry's configuration in force.
        find_registry: The registry as it was read last.
        is_paused: Whether nothing may be done but to answer ``/stop`` and ``/status``.
        clock: Seconds since 1970.
    """

    def make_runner(*, stops: bool) -> CommandRunner:
        permissions = Permissions(host, clock)
        return CommandRunner(
            host, store, config, permissions, find_registry, is_paused, clock, stops=stops
        )

    def make_outbox(*, urgent: bool) -> Outbox:
        def render(number: int) -> str:
            return StatusComments(store, Scenes(host).look, clock).render(number)

        return Outbox(host, store, render, is_paused, clock, urgent=urgent)

    return CommandParts(
        intake=Intake(host, store, config, clock),
        stops=make_runner(stops=True),
        acknowledgements=make_outbox(urgent=True),
        commands=make_runner(stops=False),
        outbox=make_outbox(urgent=False),
    )
