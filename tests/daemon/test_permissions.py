from dataclasses import dataclass, field

import pytest

from daemon.forge import ForgeUnavailableError, NotThereError, Permission
from daemon.talk.permissions import Permissions, reaches
from tests.fakes import FakeClock


@dataclass
class Host:
    """Says what it is told to say, and counts how often."""

    level: Permission | Exception = "write"
    asked: list[str] = field(default_factory=list)

    def permission(self, login: str) -> Permission:
        self.asked.append(login)
        if isinstance(self.level, Exception):
            raise self.level
        return self.level


@pytest.mark.parametrize(
    ("level", "least", "may"),
    [
        ("none", "read", False),
        ("triage", "write", False),
        ("write", "write", True),
        ("maintain", "write", True),
        ("write", "maintain", False),
        ("admin", "maintain", True),
    ],
)
def test_levels_are_ordered(level: Permission, least: Permission, *, may: bool) -> None:
    assert reaches(level, least) is may


def test_a_yes_holds_for_a_minute() -> None:
    host, clock = Host(), FakeClock(1000)
    permissions = Permissions(host, clock)

    assert permissions.allow("wendy", "write")
    host.level = "none"
    clock.now_s += 59
    assert permissions.allow("Wendy", "write")
    clock.now_s += 1
    assert not permissions.allow("wendy", "write")
    assert len(host.asked) == 2


def test_a_no_holds_for_ten_seconds() -> None:
    host, clock = Host("read"), FakeClock(1000)
    permissions = Permissions(host, clock)

    assert not permissions.allow("wendy", "write")
    host.level = "write"
    clock.now_s += 9
    assert not permissions.allow("wendy", "write")
    clock.now_s += 1
    assert permissions.allow("wendy", "write")


def test_a_clock_that_is_set_back_makes_nothing_true() -> None:
    host, clock = Host(), FakeClock(1000)
    permissions = Permissions(host, clock)
    permissions.allow("wendy", "write")
    host.level = "none"

    clock.now_s = 500

    assert not permissions.allow("wendy", "write")


def test_whom_the_host_does_not_know_may_nothing() -> None:
    assert not Permissions(Host(NotThereError("x")), FakeClock()).allow("sam", "read")


def test_a_host_that_is_away_is_no_yes_and_is_asked_again() -> None:
    host = Host(ForgeUnavailableError("x"))
    permissions = Permissions(host, FakeClock())

    with pytest.raises(ForgeUnavailableError):
        permissions.allow("wendy", "write")

    host.level = "write"
    assert permissions.allow("wendy", "write")
