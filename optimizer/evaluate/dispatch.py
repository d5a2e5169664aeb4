"""What runs inside PyTorch, seen and bent at its dispatcher."""

from collections.abc import Mapping
from typing import Final

import torch
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode

_NARROW: Final = (torch.float32, torch.float16, torch.bfloat16)


class CallLog(TorchDispatchMode):
    """Notes the names of the library functions that run inside."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # torch's
        self.names: set[str] = set()

    def __torch_dispatch__(
        self,
        func: OpOverload,
        types: object,
        args: tuple[object, ...] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        """Note the name and go on."""
        self.names.add(str(func))
        return func(*args, **(kwargs or {}))


class Widened(TorchDispatchMode):
    """Computes in float64 what the code inside casts to a narrower floating dtype."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # torch's

    def __torch_dispatch__(
        self,
        func: OpOverload,
        types: object,
        args: tuple[object, ...] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        """Replace the dtype and go on."""
        wide = dict(kwargs or {})
        if wide.get("dtype") in _NARROW:
            wide["dtype"] = torch.float64
        return func(*args, **wide)
