"""The worker of the peers: its process loads PyTorch's compiler before it is first asked."""

import torch._dynamo
import torch._inductor.compile_fx  # noqa: F401 - loaded for its time, not for its names

from optimizer.evaluate.worker import Worker

__all__ = ["Worker"]
