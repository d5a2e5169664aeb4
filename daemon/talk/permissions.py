"""Who may do what: asked of the code host when it is to be done, and not trusted for long."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, get_args

from daemon.forge import NotThereError, Permission

_YES_S = 60.0
_NO_S = 10.0
"""Whoever has just been given a permission tries again soon."""
_LEVELS: tuple[Permission, ...] = get_args(Permission)
_MOST_KNOWN = 1000


class Knows(Protocol):
    """Who can say what people may do: `daemon.forge.CodeHost`."""

    def permission(self, login: str) -> Permission:
        """Return what somebody may do, asked now."""
        ...


@dataclass
class Permissions:
    """What people may do in the repository, as the code host says."""

    host: Knows
    clock: Callable[[], float]
    _known: dict[str, tuple[float, Permission]] = field(default_factory=dict, init=False)

    def allow(self, login: str, least: Permission) -> bool:
        """Return whether somebody may do at least so much.

        Raises:
            ForgeError: The code host does not say: whoever asks must then take it for a no.
        """
        now = self.clock()
        at, level = self._known.get(login.lower(), (-_YES_S, "none"))
        if reaches(level, least):
            if 0 <= now - at < _YES_S:
                return True
        elif 0 <= now - at < _NO_S:
            return False
        level = self._ask(login)
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[login.lower()] = (now, level)
        return reaches(level, least)

    def _ask(self, login: str) -> Permission:
        try:
            return self.host.permission(login)
        except NotThereError:
            return "none"


def reaches(level: Permission, least: Permission) -> bool:
    """Return whether a permission is at least another."""
    return _LEVELS.index(level) >= _LEVELS.index(least)
