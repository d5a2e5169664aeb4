"""Bias and GELU: ``h = x + bias; y = h * sigmoid(2 u), u = sqrt(2 / pi) * (h + 0.044715 h^3)``."""

import math

import torch
from torch import Tensor
from torch.nn import functional


def gelu_bias(x: Tensor, bias: Tensor) -> Tensor:
    """Return the tanh form of GELU after the bias."""
    return functional.gelu(x + bias, approximate="tanh")


def sigmoid_form(x: Tensor, bias: Tensor) -> Tensor:
    """Return the same by ``(1 + tanh(u)) / 2 = sigmoid(2 u)``, in float32 at least."""
    h = x.to(torch.promote_types(x.dtype, torch.float32)) + bias
    return (h * torch.sigmoid(2 * math.sqrt(2 / math.pi) * (h + 0.044715 * h * h * h))).to(x.dtype)
