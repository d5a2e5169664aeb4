"""How a job gets at the device that was leased for it."""

from typing import Annotated, Literal

from pydantic import Field

from operator_registry.record import Record


class LocalAccess(Record):
    """A device of this machine."""

    kind: Literal["local"] = "local"
    gpu: str = ""
    """What CUDA shall see of all GPUs, as ``GPU-UUID``; empty for a processor."""
    cores: tuple[int, ...] = ()
    """The cores that are this device; empty for all that there are."""


class RayAccess(Record):
    """A device of a host in a Ray cluster."""

    kind: Literal["ray"] = "ray"
    address: str
    """The cluster's."""
    needs: dict[str, float]
    """The resources by which Ray finds it, such as ``{"h200/rack1-gpu0": 1}``."""


Access = Annotated[LocalAccess | RayAccess, Field(discriminator="kind")]


class LentDevice(Record):
    """A device that a job may use, alone, until it ends."""

    name: str
    access: Access
