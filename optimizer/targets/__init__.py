"""Ways to build and run device code."""

from collections.abc import Callable, Mapping

from operator_registry.hardware import HardwareSpec
from operator_registry.spec import TargetName
from optimizer.targets.cpu import CpuTarget
from optimizer.targets.target import Target

TARGETS: Mapping[TargetName, Callable[[HardwareSpec], Target]] = {
    "cpu": lambda hardware: CpuTarget(hardware.compile.arch),
}
"""How to build and run for each kind of device."""


def make_target(hardware: HardwareSpec) -> Target:
    """Return the way to build and run for a hardware.

    Raises:
        KeyError: There is none for this kind of device yet.
    """
    return TARGETS[hardware.target](hardware)
