"""What becomes of a command: done at once, under way, or refused; and why, in plain words."""

from dataclasses import dataclass

from daemon.forge import Reaction
from optimizer.store import CommandState


@dataclass(frozen=True)
class Deed:
    """What has become of a command."""

    state: CommandState
    told: str
    """In plain words; texts of strangers in it are escaped where it is shown."""
    reaction: Reaction | None = None
    goal_key: str | None = None


def done(told: str) -> Deed:
    """Return the end of a command that did what it should."""
    return Deed("done", told, "+1")


def under_way(told: str, *, goal_key: str | None = None) -> Deed:
    """Return the state of a command whose end comes later."""
    return Deed("running", told, goal_key=goal_key)


def refused(told: str) -> Deed:
    """Return the end of a command that can't be done, or not by this person."""
    return Deed("refused", told, "-1")


def failed(told: str) -> Deed:
    """Return the end of a command that went wrong."""
    return Deed("failed", told, "confused")


def misunderstood(told: str) -> Deed:
    """Return the end of a line that is no command."""
    return Deed("misunderstood", told, "confused")
