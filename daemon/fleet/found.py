"""Which devices there are: those of this machine, and what they are good for. Pure."""

import os
from collections.abc import Collection, Sequence

from pydantic import TypeAdapter

from daemon.host import Host, is_kind
from operator_registry.hardware import HardwareSpec
from optimizer.runners.access import Access, LentDevice, LocalAccess
from optimizer.store import NewDevice, StoredDevice

_ACCESS: TypeAdapter[Access] = TypeAdapter(Access)
_CPU = "x86-64"
_SHORT = 8
"""Digits of a GPU's UUID that tell it from all others of a host."""


def local_devices(host: Host, name: str, *, cpus: int, cores: Collection[int]) -> list[NewDevice]:
    """Return the devices of this machine.

    Args:
        host: What it is.
        name: What it is called.
        cpus: How many devices its cores make; 1 for the processor as a whole.
        cores: Those that this process may use.
    """
    found = [
        _local(name, f"gpu-{gpu.uuid[4:][:_SHORT]}", gpu.name, gpu.arch, LocalAccess(gpu=gpu.uuid))
        for gpu in host.gpus
    ]
    parts = _split(sorted(cores), cpus) if cpus > 1 else [()]
    for place, part in enumerate(parts):
        called = f"cpu{place}" if part else "cpu"
        found.append(
            _local(name, called, f"cpu-{host.cpu_arch}", host.cpu_arch, LocalAccess(cores=part))
        )
    return found


def own_cores() -> frozenset[int]:
    """Return the cores that this process may use."""
    return frozenset(os.sched_getaffinity(0))


def fits(device: NewDevice, hardware: HardwareSpec) -> bool:
    """Return whether results for a hardware can be made on a device."""
    if device.hardware == hardware.name:
        return True
    if device.arch.startswith(_CPU):
        return hardware.target == "cpu" and hardware.compile.arch == device.arch
    return hardware.target != "cpu" and is_kind(hardware, device.hardware, device.arch)


def is_elsewhere(device: NewDevice) -> bool:
    """Return whether a device is lent through a cluster."""
    return not isinstance(access_of(device).access, LocalAccess)


def access_of(device: NewDevice) -> LentDevice:
    """Return a device as a job is told of it."""
    return LentDevice(name=device.name, access=_ACCESS.validate_json(device.access))


def disturbs(one: NewDevice, other: NewDevice) -> bool:
    """Return whether two devices can't be used side by side, as one would spoil the other's times.

    A processor as a whole is also what builds and judges for the GPUs beside it.
    """
    return one.host == other.host and (_is_whole(one) or _is_whole(other))


def count_side_by_side(devices: Sequence[NewDevice]) -> int:
    """Return how many of some devices can be used at once."""
    hosts = {device.host for device in devices}
    parts = {host: sum(d.host == host and not _is_whole(d) for d in devices) for host in hosts}
    return sum(max(1, parts[host]) for host in hosts)


def without_disturbed(devices: Sequence[StoredDevice], *, now: float) -> tuple[StoredDevice, ...]:
    """Return the devices that are not used, and beside which nothing disturbing is."""
    held = [device for device in devices if device.is_held(now)]
    return tuple(
        device
        for device in devices
        if not device.is_held(now) and not any(disturbs(device, other) for other in held)
    )


def _local(host: str, called: str, hardware: str, arch: str, access: LocalAccess) -> NewDevice:
    return NewDevice(
        name=f"{host}/{called}", host=host, hardware=hardware, arch=arch, access=access.to_json()
    )


def _is_whole(device: NewDevice) -> bool:
    access = access_of(device).access
    return isinstance(access, LocalAccess) and not access.gpu and not access.cores


def _split(cores: Sequence[int], parts: int) -> list[tuple[int, ...]]:
    """Return the cores in parts of equal size, each of neighbours; what is left over is unused."""
    size = max(1, len(cores) // parts)
    return [tuple(cores[at : at + size]) for at in range(0, size * parts, size)][: len(cores)]
