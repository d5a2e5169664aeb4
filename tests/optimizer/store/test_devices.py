import pytest

from optimizer.store import NewDevice, Store, StoredDevice

GPU, CPU = (NewDevice(name=f"a/{name}", host="a", hardware=name) for name in ("gpu", "cpu"))


@pytest.fixture(autouse=True)
def seen(store: Store) -> None:
    store.note_devices(["a"], [GPU, CPU], now=1)


def lease(store: Store, holder: str, *, now: float = 2) -> StoredDevice | None:
    return store.lease_device([GPU.name], holder, task="x", ttl_s=10, now=now)


def states(store: Store, now: float = 3) -> dict[str, str]:
    return {device.hardware: device.state(now) for device in store.devices()}


def test_one_device_has_one_holder(store: Store) -> None:
    assert lease(store, "me") is not None
    assert lease(store, "you") is None
    assert states(store) == {"gpu": "leased", "cpu": "idle"}


def test_a_lease_ends_when_nobody_prolongs_it(store: Store) -> None:
    lease(store, "dead")

    assert lease(store, "you", now=13) is not None


def test_a_prolonged_lease_goes_on(store: Store) -> None:
    lease(store, "me")

    assert store.renew_device(GPU.name, "me", ttl_s=10, now=11)
    assert lease(store, "you", now=13) is None


def test_who_has_lost_a_device_is_told_so(store: Store) -> None:
    lease(store, "slow")
    lease(store, "you", now=13)

    assert not store.renew_device(GPU.name, "slow", ttl_s=10, now=14)
    store.free_device(GPU.name, "slow", now=14)
    assert states(store, now=14)["gpu"] == "leased"


def test_the_first_free_one_of_several_is_lent(store: Store) -> None:
    lease(store, "me")

    found = store.lease_device([GPU.name, CPU.name], "you", task="x", ttl_s=10, now=3)

    assert found is not None
    assert found.hardware == "cpu"


def test_a_cordoned_device_gets_no_new_lease_and_keeps_the_old_one(store: Store) -> None:
    lease(store, "me")
    store.rule_device(GPU.name, "cordoned", why="hot", by="person", now=3)

    assert store.renew_device(GPU.name, "me", ttl_s=10, now=3)
    store.free_device(GPU.name, "me", now=3)
    assert lease(store, "you") is None
    assert states(store)["gpu"] == "cordoned"


def test_what_runs_on_a_drained_device_is_told_to_end(store: Store) -> None:
    lease(store, "me")
    store.rule_device(GPU.name, "draining", why="repair", by="person", now=3)

    assert not store.renew_device(GPU.name, "me", ttl_s=10, now=3)
    assert states(store)["gpu"] == "draining"
    store.free_device(GPU.name, "me", now=3)
    assert states(store)["gpu"] == "cordoned"


def test_a_health_check_takes_back_nothing_that_a_person_said(store: Store) -> None:
    store.rule_device(GPU.name, "draining", why="repair", by="person", now=3)

    assert not store.uncordon_device(GPU.name, now=4, by="health")
    assert not store.rule_device(GPU.name, "cordoned", why="hot", by="health", now=4)
    (device,) = [device for device in store.devices() if device.name == GPU.name]
    assert (device.rule, device.why) == ("draining", "repair")


def test_all_leases_of_a_holder_are_given_back_and_no_others(store: Store) -> None:
    lease(store, "me#1")

    store.free_devices_of("m", now=3)
    assert states(store)["gpu"] == "leased"
    store.free_devices_of("me", now=3)
    assert states(store)["gpu"] == "idle"


def test_a_freed_device_is_lent_again(store: Store) -> None:
    store.rule_device(GPU.name, "cordoned", why="hot", by="health", now=3)

    assert store.uncordon_device(GPU.name, now=4)
    assert lease(store, "me", now=5) is not None


def test_what_is_seen_no_longer_is_forgotten_but_not_what_was_said_of_it(store: Store) -> None:
    store.rule_device(GPU.name, "cordoned", why="hot", by="person", now=3)
    store.note_devices(["b"], [], now=4)
    assert len(store.devices()) == 2

    store.note_devices(["a"], [], now=4)
    assert [device.hardware for device in store.devices()] == ["gpu"]
    store.note_devices(["a"], [GPU, CPU], now=5)

    assert states(store) == {"gpu": "cordoned", "cpu": "idle"}


def test_a_look_changes_no_lease(store: Store) -> None:
    lease(store, "me")

    store.note_devices(["a"], [GPU, CPU], now=3)

    assert states(store)["gpu"] == "leased"


def test_what_nobody_knows_can_be_ruled_by_nobody(store: Store) -> None:
    assert not store.rule_device("a/none", "cordoned", why="", by="person", now=3)
    assert not store.uncordon_device("a/none", now=3)


def test_all_of_a_holders_devices_are_freed_at_once(store: Store) -> None:
    lease(store, "dead")
    store.free_devices_of("dead", now=3)

    assert states(store) == {"gpu": "idle", "cpu": "idle"}
