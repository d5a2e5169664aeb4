"""Which devices a node of a cluster has, as Ray describes it."""

import pytest

from optimizer.runners.access import RayAccess
from optimizer.runners.ray import find_devices

NODE = {"NodeManagerAddress": "10.0.0.5", "NodeManagerHostname": "far", "Alive": True}


def names(**resources: float) -> list[tuple[str, str]]:
    node = NODE | {"Resources": {name.replace("__", "/"): n for name, n in resources.items()}}
    return [(device.name, device.hardware) for device in find_devices(node, "head:1")]


def test_a_host_names_its_devices_itself() -> None:
    assert names(CPU=8, h200__gpu0=1, h200__gpu1=1) == [
        ("10.0.0.5/gpu0", "h200"),
        ("10.0.0.5/gpu1", "h200"),
    ]


def test_alike_devices_may_share_a_name() -> None:
    assert names(mi300x__gpu=2) == [("10.0.0.5/gpu-0", "mi300x"), ("10.0.0.5/gpu-1", "mi300x")]


def test_else_its_gpus_are_asked_for_by_their_kind() -> None:
    resources = {"GPU": 2.0, "accelerator_type:H200": 1.0, "node:10.0.0.5": 1.0}

    found = find_devices(NODE | {"Resources": resources}, "head:1")

    assert [device.name for device in found] == ["10.0.0.5/h200-0", "10.0.0.5/h200-1"]
    access = RayAccess.from_json(found[0].access)
    assert access.needs == {"GPU": 1, "node:10.0.0.5": 0.001}


def test_a_host_without_either_has_none() -> None:
    assert names(CPU=8, memory=1e9) == []


def test_gpus_of_this_machine_are_lent_without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "far")

    assert find_devices(NODE | {"Resources": {"GPU": 2, "accelerator_type:H200": 1}}, "x") == []
