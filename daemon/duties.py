"""Which stewards there are, and what each does in which order."""

from collections.abc import Mapping, Sequence

from daemon.bot import Bot
from daemon.steward import Duty


def make_lanes(bot: Bot) -> Mapping[str, Sequence[Duty]]:
    """Return the stewards by name; none where the code host has no people on it."""
    return {}
