"""Values of one tensor under each distribution that the judge draws from; needs torch.

`stated` is what the spec describes. The others stay inside the domain that the spec states and
look otherwise, so that nothing can be earned by knowing the usual values.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

import torch
from torch import Tensor

from operator_registry.spec import Distribution, Domain, Lengths, Normal, SortedUniqueIds, Uniform

DISTRIBUTIONS: tuple[Distribution, ...] = get_args(Distribution)
REACH = 4.0
"""Normal values lie within so many standard deviations, for hostile ones to begin there."""
_CHUNK = 16
"""Neighbours in a tensor of one dimension that share a hostile pattern."""
_RARE = 0.02
"""The share of infinite values or NaN where the domain admits them."""
_EDGES = 0.1
"""The share of hostile ids that are the first or last of their table."""
_USUAL = Domain()


@dataclass(frozen=True)
class Source:
    """Where values come from: a generator, and the distribution that they are drawn by."""

    generator: torch.Generator
    distribution: Distribution = "stated"
    domain: Domain = _USUAL
    greatest_scale: float = 1.0
    """The greatest factor that the spec puts on values."""

    def normal(self, values: Normal, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        """Return floating values around a mean.

        Hostile ones are not to be multiplied by a scale: they are at the domain's end already.
        """
        match self.distribution:
            case "stated":
                return self._gauss(shape, dtype) * values.std + values.mean
            case "flat":
                return self._unit(shape, dtype).mul_(4).sub_(2) * values.std + values.mean
            case "skewed":
                size = torch.exp2(self._unit(shape, dtype) * 10 - 8)
                sign = self._unit(shape, dtype).sub_(0.5).sign_()
                return size * sign * values.std + values.mean
            case "hostile":
                return self._hostile_normal(values, shape, dtype)

    def uniform(self, values: Uniform, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        """Return values in ``[low, high)``; integers where the dtype is one."""
        if dtype == torch.bool:
            return self._whole(0, 2, shape, skew=False).bool()
        if not dtype.is_floating_point:
            first = round(values.low)
            return self._whole(first, max(round(values.high), first + 1), shape, skew=True)
        low, high = float(values.low), float(values.high)
        unit = self._unit(shape, dtype)
        if self.distribution == "flat":
            unit = unit * 0.5 + 0.25
        elif self.distribution == "skewed":
            unit = unit**4
        drawn = unit * (high - low) + low
        if self.distribution != "hostile":
            return drawn
        last = torch.nextafter(torch.tensor(high, dtype=dtype), torch.tensor(low, dtype=dtype))
        ends = [low, float(last)] + ([0.0] if low < 0 < high else [])
        return self._patterned(drawn, ends)

    def lengths(self, values: Lengths, shape: Sequence[int]) -> Tensor:
        """Return segment lengths in ``[low, high]``."""
        low, high = values.low, values.high
        if self.distribution == "hostile":  # all at one end, but for one segment
            end, other = (low, high) if self._one(2) else (high, low)
            lengths = torch.full(tuple(shape), end, device=self.generator.device)
            if lengths.numel():
                lengths.view(-1)[self._one(lengths.numel())] = other
            return lengths
        return self._whole(low, high + 1, shape, skew=True)

    def sorted_ids(self, values: SortedUniqueIds, count: int) -> Tensor:
        """Return strictly increasing integers in ``[0, below)``."""
        room = values.below - count
        match self.distribution:
            case "skewed":  # a run without gaps
                drawn = torch.zeros(count, dtype=torch.int64, device=self.generator.device)
                drawn += self._one(room + 1)
            case "hostile":  # at both ends, with nothing between
                drawn = torch.zeros(count, dtype=torch.int64, device=self.generator.device)
                drawn[count // 2 :] = room
            case _:
                drawn = self.integers(0, room + 1, (count,)).sort().values
        return drawn + torch.arange(count, device=drawn.device)

    def permutation(self, count: int) -> Tensor:
        """Return each index below `count` once."""
        order = torch.arange(count, device=self.generator.device)
        match self.distribution:
            case "skewed":
                return order.roll(self._one(max(1, count)))
            case "hostile":
                return order.flip(0) if self._one(2) else order
            case _:
                return torch.randperm(count, generator=self.generator, device=self.generator.device)

    def ids(self, table: Tensor, shape: Sequence[int], hit_share: float) -> Tensor:
        """Return ids of which a share is in the table; the others lie among or above its ids."""
        if table.numel() == 0:
            return self.integers(0, 1000, shape)
        ordered = table.flatten().long().sort().values
        above = int(ordered[-1]) + 1
        others = self.integers(min(int(ordered[0]), 0), above, shape)
        place = torch.searchsorted(ordered, others)
        others = torch.where(ordered[place] == others, above, others)
        hits = ordered[self._whole(0, ordered.numel(), shape, skew=True)]
        if self.distribution == "flat":  # any share
            hit_share = float(self._unit((1,), torch.float64))
        elif self.distribution == "hostile":  # all found or none, and the table's ends
            hit_share = float(self._one(2))
            ends = torch.stack([ordered[0], ordered[-1], ordered[-1] + 1])
            edge = (
                torch.rand(tuple(shape), generator=self.generator, device=ordered.device) < _EDGES
            )
            hits = torch.where(edge, ends[self.integers(0, 2, shape)], hits)
        hit = torch.rand(tuple(shape), generator=self.generator, device=ordered.device) < hit_share
        return torch.where(hit, hits, others)

    def integers(self, low: int, high: int, shape: Sequence[int]) -> Tensor:
        """Return independent uniform integers in ``[low, high)``."""
        device = self.generator.device
        return torch.randint(low, high, tuple(shape), generator=self.generator, device=device)

    def _hostile_normal(self, values: Normal, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        reach = (abs(values.mean) + REACH * values.std) * self.greatest_scale
        greatest = self.domain.greatest or reach
        drawn = self._gauss(shape, dtype) * values.std + values.mean
        small = math.sqrt(torch.finfo(dtype).tiny)  # whose square is no denormal number yet
        found = self._patterned(drawn, [greatest, -greatest, 0.0, -0.0, small, -small])
        for special, admitted in (
            (math.inf, self.domain.infinite),
            (-math.inf, self.domain.infinite),
            (math.nan, self.domain.nan),
        ):
            if admitted == "as_reference":
                found = torch.where(self._unit(shape, dtype) < _RARE * self._one(2), special, found)
        return found

    def _patterned(self, drawn: Tensor, ends: Sequence[float]) -> Tensor:
        """Return values of which each row is all at one end, as drawn, or as drawn with one end.

        A row is of one pattern, so that no honest sum over it cancels.
        """
        shape = drawn.shape
        width = shape[-1] if drawn.dim() > 1 else _CHUNK
        rows = -(-drawn.numel() // width) if width else 0
        if not rows:
            return drawn
        whole = torch.nn.functional.pad(drawn.reshape(-1), (0, rows * width - drawn.numel()))
        grid = whole.view(rows, width)
        choices = torch.tensor(ends, dtype=drawn.dtype, device=drawn.device)
        end = choices[self.integers(0, len(ends), (rows, 1))]
        pattern = self.integers(0, 3, (rows, 1))
        place = self.integers(0, width, (rows, 1))
        spike = torch.arange(width, device=drawn.device) == place
        at_end = (pattern == 0) | ((pattern == 1) & spike)
        return torch.where(at_end, end, grid).reshape(-1)[: drawn.numel()].view(shape)

    def _whole(self, low: int, high: int, shape: Sequence[int], *, skew: bool) -> Tensor:
        """Return integers in ``[low, high)``: even, mostly small, or at the ends."""
        match self.distribution:
            case "skewed" if skew:
                unit = self._unit(shape, torch.float64)
                return (unit**4 * (high - low)).long().clamp_(max=high - low - 1) + low
            case "hostile":
                drawn = self.integers(low, high, shape)
                end = torch.tensor([low, high - 1], device=drawn.device)[self.integers(0, 2, shape)]
                return torch.where(self.integers(0, 2, shape).bool(), end, drawn)
            case _:
                return self.integers(low, high, shape)

    def _one(self, below: int) -> int:
        """Return one integer in ``[0, below)``."""
        return int(self.integers(0, below, (1,)))

    def _gauss(self, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        device = self.generator.device
        return torch.randn(
            tuple(shape), generator=self.generator, dtype=_wide(dtype), device=device
        )

    def _unit(self, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        device = self.generator.device
        return torch.rand(tuple(shape), generator=self.generator, dtype=_wide(dtype), device=device)


def _wide(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype == torch.float64 else torch.float32
