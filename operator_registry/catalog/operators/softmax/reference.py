"""Softmax of each row: ``y = exp(x - max(x)) / sum(exp(x - max(x)))``."""

import torch
from torch import Tensor


def softmax(x: Tensor) -> Tensor:
    """Return the softmax of each row."""
    return torch.softmax(x, dim=-1)


def explicit(x: Tensor) -> Tensor:
    """Return the same by its parts, in float32 at least, for a compiler to fuse."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    raised = torch.exp(wide - wide.amax(dim=-1, keepdim=True))
    return (raised / raised.sum(dim=-1, keepdim=True)).to(x.dtype)
