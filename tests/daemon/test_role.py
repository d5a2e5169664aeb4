from pathlib import Path

import pytest

from daemon.role import Role, RoleTakenError, hold_role
from optimizer.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(f"sqlite:///{tmp_path / 'store.sqlite'}")
    store.migrate()
    return store


def test_one_process_has_the_role(tmp_path: Path, store: Store) -> None:
    with (
        hold_role(store, tmp_path, clock=lambda: 0.0),
        pytest.raises(RoleTakenError, match="another kernelevolve works in"),
        hold_role(store, tmp_path, clock=lambda: 0.0),
    ):
        pass


def test_the_role_is_free_again_afterwards(tmp_path: Path, store: Store) -> None:
    for _ in range(2):
        with hold_role(store, tmp_path, clock=lambda: 0.0) as role:
            assert role.renew()


def test_the_lease_of_another_machine_counts_until_it_ends(tmp_path: Path, store: Store) -> None:
    store.take_lease("scheduler", "elsewhere", ttl_s=100, now=0)

    with (
        pytest.raises(RoleTakenError, match="this store's scheduler"),
        hold_role(store, tmp_path, clock=lambda: 50.0),
    ):
        pass
    with hold_role(store, tmp_path, clock=lambda: 101.0):
        pass


def test_who_was_away_too_long_loses_the_role(tmp_path: Path, store: Store) -> None:
    now = [0.0]
    with hold_role(store, tmp_path, clock=lambda: now[0]) as role:
        now[0] = 1000.0
        store.take_lease("scheduler", "elsewhere", ttl_s=100, now=now[0])

        assert not role.renew()


class Slow:
    """Leases of a store that takes longer to answer than they last, and gives them once."""

    def __init__(self, now: list[float]) -> None:
        self.now, self.given = now, 0

    def take_lease(self, name: str, holder: str, *, ttl_s: float, now: float) -> bool:
        self.now[0] += ttl_s * (self.given == 0)
        self.given += 1
        return self.given == 1

    def drop_lease(self, name: str, holder: str) -> None:
        raise AssertionError


def test_a_lease_that_ended_before_the_answer_came_is_asked_for_again() -> None:
    now = [0.0]
    role = Role(Slow(now), "me", lambda: now[0])

    assert not role.renew()


def test_a_killed_holder_on_this_machine_blocks_nobody(tmp_path: Path, store: Store) -> None:
    with hold_role(store, tmp_path, clock=lambda: 0.0) as role:
        killed = role.holder
    store.take_lease("scheduler", killed, ttl_s=100, now=0)

    with hold_role(store, tmp_path, clock=lambda: 1.0):
        pass
