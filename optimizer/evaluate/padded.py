"""Memory with canaries: a tensor between two margins that nobody may write to."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from optimizer.evaluate.memory import bytes_of

MARGIN_BYTES = 1 << 14
"""On each side: more than a block of any kernel that forgets its mask."""
_BLOCK_BYTES = 1 << 16
_SEED_BITS = 63


@dataclass(frozen=True)
class Padded:
    """Flat memory, of which all but a part in the middle must stay as it is."""

    memory: Tensor
    """Of bytes."""
    start: int
    size: int
    front: Tensor
    """What the margins held at first; for a tensor with gaps, `front` is all of the memory."""
    back: Tensor
    gapped: Tensor | None = None
    """The tensor, where it does not fill its part without gaps."""

    def view(self, dtype: torch.dtype, shape: Sequence[int]) -> Tensor:
        """Return the tensor in the middle."""
        if self.gapped is not None:
            return self.gapped
        middle = self.memory[self.start : self.start + self.size]
        return middle.view(dtype).view(tuple(shape))

    def is_intact(self) -> bool:
        """Return whether the margins are as they were, and the gaps too.

        Where there are gaps, the tensor itself must hold again what it held at first.
        """
        if self.gapped is not None:
            return bool(torch.equal(self.memory, self.front))
        return bool(
            torch.equal(self.memory[: self.start], self.front)
            and torch.equal(self.memory[self.start + self.size :], self.back)
        )


def make_padded(
    size: int, *, device: str | torch.device, seed: int, shift: int = 0, margin: int = MARGIN_BYTES
) -> Padded:
    """Return memory for a tensor, filled with random bytes.

    Args:
        size: Bytes of the tensor.
        device: Where it lies.
        seed: Of the bytes.
        shift: By how many bytes the tensor begins beside a multiple of 64.
        margin: Bytes on each side, a multiple of 64.
    """
    start = margin + shift
    memory = torch.empty(start + size + margin, dtype=torch.uint8, device=device)
    spoil(memory, seed)
    return Padded(memory, start, size, memory[:start].clone(), memory[start + size :].clone())


def make_gapped(value: Tensor, *, seed: int) -> Padded:
    """Return a copy of a tensor of which no two rows, or elements, are neighbours in memory."""
    # A row gets a few elements more than it needs; of a single row every second element is used.
    *outer, last = value.shape
    shape = (*outer, last + 3) if outer else (last, 2)
    size = torch.Size(shape).numel() * value.element_size()
    padded = make_padded(size, device=value.device, seed=seed)
    whole = padded.view(value.dtype, shape)
    gapped = whole[..., :last] if outer else whole[:, 0]
    gapped.copy_(value)
    return Padded(
        padded.memory, padded.start, padded.size, padded.memory.clone(), padded.back, gapped
    )


def spoil(memory: Tensor, seed: int) -> None:
    """Fill a contiguous tensor with random bytes, the same ones for the same seed."""
    flat = bytes_of(memory)
    generator = torch.Generator().manual_seed(seed % (1 << _SEED_BITS))
    block = torch.randint(0, 256, (_BLOCK_BYTES,), dtype=torch.uint8, generator=generator)
    block = block.to(flat.device)
    whole = flat.numel() - flat.numel() % _BLOCK_BYTES
    flat[:whole].view(-1, _BLOCK_BYTES).copy_(block.expand(whole // _BLOCK_BYTES, -1))
    flat[whole:].copy_(block[: flat.numel() - whole])
