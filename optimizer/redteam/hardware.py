"""The hardware that the red team's judge believes in."""

from operator_registry.hardware import HardwareSpec

_CACHE_MB = {"cpu": 0.01, "cuda": 1.0}
"""So small that data which are cheap to check are far larger, and the floor of times speaks."""


def redteam_hardware(hardware: HardwareSpec) -> HardwareSpec:
    """Return a hardware with a smaller cache; it builds, runs and flushes as the one it is of."""
    limits = hardware.limits.model_copy(
        update={"last_level_cache_mb": _CACHE_MB.get(hardware.target, 1.0)}
    )
    return hardware.model_copy(update={"limits": limits})
