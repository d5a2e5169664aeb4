"""What a worker does only to look at a call: nothing that is timed comes after it.

The profiler's library is heavy, so it is imported here, and only once it is wanted.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from optimizer.evaluate import protocol as p
from optimizer.evaluate.memory import Value, tensors_of
from optimizer.evaluate.timing import Call


def observe(call: Call, *, device: str) -> p.Observed:
    """Return what PyTorch's profiler sees of a call."""
    from optimizer.profilers.launches import trace  # noqa: PLC0415 - heavy, see above

    return p.Observed(trace=trace(call, device=device))


def weigh(
    call: Call, inputs: Sequence[Value], *, lent: Callable[[Tensor], bool], device: str
) -> p.Weighed:
    """Return how much memory a call takes.

    Args:
        call: The call.
        inputs: What it reads.
        lent: Whether a tensor lies in memory that the judge lent, which no allocator counts.
        device: Where it runs.
    """
    from optimizer.profilers import memory  # noqa: PLC0415 - heavy, see above

    taken, outputs = memory.weigh(call, device=device)
    tensors = _flat(outputs)
    held = taken.traced_bytes + sum(tensor.nbytes for tensor in tensors if lent(tensor))
    return p.Weighed(
        peak_bytes=held + sum(tensor.nbytes for tensor in _flat(inputs)),
        workspace_bytes=max(0, held - sum(tensor.nbytes for tensor in tensors)),
        held_bytes=held,
        resident_bytes=taken.resident_bytes,
    )


def count(call: Call) -> None:
    """Mark a second call for the tool that runs this process and counts what its device does."""
    call()
    torch.cuda.synchronize()
    torch.cuda.profiler.start()  # type: ignore[no-untyped-call] # torch's
    call()
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()  # type: ignore[no-untyped-call] # torch's


def _flat(values: Sequence[Value]) -> list[Tensor]:
    return [tensor for value in values for tensor in tensors_of(value)]
