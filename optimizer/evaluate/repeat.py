"""Whether two runs on the same inputs gave the same outputs."""

from collections.abc import Sequence

import torch
from torch import Tensor

from knowledge.outcome import Incorrect
from operator_registry.registry import Operator
from optimizer.evaluate.cases import CheckedCase
from optimizer.evaluate.memory import bytes_of
from optimizer.evaluate.tray import Taken


def find_difference(
    operator: Operator, case: CheckedCase, number: int, first: Taken, second: Taken
) -> Incorrect | None:
    """Return in what two runs on a set differ, None where they do not.

    They may not by a bit, but for floating outputs of an operator that admits atomic additions,
    whose order is nobody's to choose.
    """
    atomics = operator.spec.precision.atomics
    standards = next(e.standards for e in case.expectations if number in e.sets)
    for place, name in enumerate(operator.spec.outputs):
        mine, other = first.tensors[place] or (), second.tensors[place] or ()
        tolerance = 0.0 if standards[place].exact else atomics * standards[place].scale
        if not _alike(mine, other, tolerance=tolerance):
            admitted = f" by more than {atomics:g} eps" if atomics else ""
            return Incorrect(reason=f"{name} differs{admitted} between two runs on the same inputs")
    return None


def _alike(mine: Sequence[Tensor], other: Sequence[Tensor], *, tolerance: float) -> bool:
    return len(mine) == len(other) and all(
        _same(a, b, tolerance=tolerance) for a, b in zip(mine, other, strict=True)
    )


def _same(mine: Tensor, other: Tensor, *, tolerance: float) -> bool:
    if mine.shape != other.shape or mine.dtype != other.dtype:
        return False
    if torch.equal(bytes_of(mine.contiguous()), bytes_of(other.contiguous())):
        return True
    if not tolerance or not mine.is_floating_point():
        return False
    near = (mine.double() - other.double()).abs() <= tolerance * torch.finfo(mine.dtype).eps
    return bool((near | (mine.isnan() & other.isnan()) | (mine == other)).all())
