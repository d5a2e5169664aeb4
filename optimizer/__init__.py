"""Searches for faster kernels, and proves each win."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optimizer.loading import load

__all__ = ["load"]


def __getattr__(name: str) -> object:
    """Import `load` when it is first asked for: it needs torch, which most of us do not."""
    if name == "load":
        from optimizer.loading import load  # noqa: PLC0415

        return load
    msg = f"module 'optimizer' has no attribute {name!r}"
    raise AttributeError(msg)
