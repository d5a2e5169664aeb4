"""A small computation with a known answer, by which a device shows that it is well."""

import torch

_ELEMENTS = 4096
_MODULUS = 65521


def probe_answer(factor: int) -> int:
    """Return what `probe` gives on a device that is well."""
    return sum(place * factor % _MODULUS for place in range(_ELEMENTS))


def probe(factor: int, device: str) -> int:
    """Return the answer as a device computes it; an error of an earlier call shows here too.

    Raises:
        RuntimeError: The device, or this process's context on it, is out of order.
    """
    places = torch.arange(_ELEMENTS, dtype=torch.int64, device=device)
    return int((places * factor % _MODULUS).sum().item())
