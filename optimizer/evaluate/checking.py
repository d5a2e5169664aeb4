"""Whether an output agrees with the reference, by the error rule of the design; pure torch.

For each output, in the max-norm and the 2-norm, and so for each row where the policy names row
axes: ``error <= max(c * reference_error, k * eps(dtype) * scale)``. Errors are taken against a
float64 oracle and `scale` is the oracle's own norm. Integers and what is only moved are exact.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from operator_registry.spec import PrecisionPolicy


@dataclass(frozen=True)
class Expected:
    """What one output must be; a list of tensors has one entry for each member."""

    name: str
    reference: tuple[Tensor, ...]
    """The reference's own output, in the dtype that is wanted."""
    oracle: tuple[Tensor, ...]
    """The same computed in float64; for integers the reference again."""
    listed: bool = False
    row_dims: tuple[int, ...] = ()
    """Dimensions along which the rule holds for each row by itself."""
    exact: bool = False
    """True where the reference only moves values: then each must arrive as it is."""


@dataclass(frozen=True)
class Agreement:
    """The output is correct: its worst error and the reference's, relative to the scale."""

    error: float = 0.0
    reference_error: float = 0.0


@dataclass(frozen=True)
class Mismatch:
    """The output is wrong; the worst element where one can be named."""

    output: str
    reason: str
    member: int = 0
    index: tuple[int, ...] | None = None
    got: str = ""
    wanted: str = ""


def check(
    got: Sequence[Tensor], expected: Expected, policy: PrecisionPolicy
) -> Agreement | Mismatch:
    """Return whether an output agrees, or the worst way in which it does not."""
    fault = _find_form_fault(got, expected)
    if fault is not None:
        return Mismatch(expected.name, fault)
    if expected.exact or not expected.reference or not expected.reference[0].is_floating_point():
        return _check_exact(got, expected)
    return _check_close(got, expected, policy)


def is_moved(expected: Expected, *, least: int = 1000) -> bool:
    """Return whether the reference seems only to move values.

    True where it hits the float64 oracle in each of at least `least` elements: rounding
    arithmetic does not do that.
    """
    elements = sum(member.numel() for member in expected.reference)
    floating = all(member.is_floating_point() for member in expected.reference)
    pairs = zip(expected.reference, expected.oracle, strict=True)
    return elements >= least and floating and all(_same(r.double(), o).all() for r, o in pairs)


def _find_form_fault(got: Sequence[Tensor], expected: Expected) -> str | None:
    if len(got) != len(expected.reference):
        return f"has {len(got)} members, wanted {len(expected.reference)}"
    for place, (mine, wanted) in enumerate(zip(got, expected.reference, strict=True)):
        where = f"member {place} has" if expected.listed else "has"
        if mine.shape != wanted.shape:
            return f"{where} the shape {tuple(mine.shape)}, wanted {tuple(wanted.shape)}"
        if mine.dtype != wanted.dtype:
            return f"{where} the dtype {mine.dtype}, wanted {wanted.dtype}".replace("torch.", "")
    return None


def _check_exact(got: Sequence[Tensor], expected: Expected) -> Agreement | Mismatch:
    for member, (mine, wanted) in enumerate(zip(got, expected.reference, strict=True)):
        same = _same(mine, wanted)
        if not bool(same.all()):
            wrong = int((~same).sum())
            flat = int(torch.argmax((~same).flatten().to(torch.uint8)))
            reason = f"{wrong} of {mine.numel()} elements differ, where each must be exact"
            return _mismatch(expected, reason, got, member, flat)
    return Agreement()


def _same(a: Tensor, b: Tensor) -> Tensor:
    """Return where two tensors are equal, NaN being equal to NaN."""
    equal = a == b
    return equal | (a.isnan() & b.isnan()) if a.is_floating_point() else equal


@dataclass(frozen=True)
class _Compared:
    """One member in float64: errors and magnitudes, zero where nothing can be asked."""

    error: Tensor
    reference_error: Tensor
    scale: Tensor


def _check_close(
    got: Sequence[Tensor], expected: Expected, policy: PrecisionPolicy
) -> Agreement | Mismatch:
    members = []
    for member, mine in enumerate(got):
        compared = _compare(mine, expected.reference[member], expected.oracle[member])
        if isinstance(compared, int):
            reason = "is not finite where it must be, or finite where it must not be"
            return _mismatch(expected, reason, got, member, compared)
        members.append(compared)
    eps = torch.finfo(got[0].dtype).eps
    for verdict in _excesses(members, expected, policy, eps):
        reason, member, flat = verdict
        return _mismatch(expected, reason, got, member, flat)
    return _agreement(members)


def _compare(mine: Tensor, reference: Tensor, oracle: Tensor) -> _Compared | int:
    """Return the errors of a member, or the flat index of an element of the wrong kind."""
    wide = mine.double()
    finite = oracle.isfinite()
    # Where the reference itself overflows its dtype, a kernel may do so or not.
    asked = finite & reference.isfinite()
    wrong = torch.where(finite, asked & ~wide.isfinite(), ~_same(wide, oracle))
    if bool(wrong.any()):
        return int(torch.argmax(wrong.flatten().to(torch.uint8)))
    zero = torch.zeros((), dtype=torch.float64)
    return _Compared(
        error=torch.where(asked, (wide - oracle).abs(), zero),
        reference_error=torch.where(asked, (reference.double() - oracle).abs(), zero),
        scale=torch.where(asked, oracle.abs(), zero),
    )


def _excesses(
    members: Sequence[_Compared], expected: Expected, policy: PrecisionPolicy, eps: float
) -> Iterator[tuple[str, int, int]]:
    """Yield a reason, a member and a flat index for each way in which the rule is broken."""
    for norm in ("max", "2"):
        error, reference_error, scale = (
            _whole([getattr(m, part) for m in members], norm)
            for part in ("error", "reference_error", "scale")
        )
        allowed = max(policy.c * reference_error, policy.k * eps * scale)
        if error > allowed:
            member = max(range(len(members)), key=lambda m: _whole([members[m].error], "max"))
            reason = f"the error's {norm}-norm is {error:.3g}, allowed is {allowed:.3g}"
            yield reason, member, int(members[member].error.argmax())
    if expected.row_dims:
        for place, compared in enumerate(members):
            yield from _row_excesses(compared, place, expected.row_dims, policy, eps)


def _row_excesses(
    compared: _Compared, member: int, row_dims: tuple[int, ...], policy: PrecisionPolicy, eps: float
) -> Iterator[tuple[str, int, int]]:
    if compared.error.numel() == 0:
        return
    rest = [d for d in range(compared.error.dim()) if d not in row_dims]
    for norm in ("max", "2"):
        error, reference_error, scale = (
            _by_row(part, rest, norm)
            for part in (compared.error, compared.reference_error, compared.scale)
        )
        allowed = torch.maximum(policy.c * reference_error, policy.k * eps * scale)
        excess = error - allowed
        worst = int(excess.argmax())
        if float(excess.flatten()[worst]) > 0:
            row = torch.zeros_like(excess, dtype=torch.bool)
            row.view(-1)[worst] = True
            flat = int(torch.where(row, compared.error, -1.0).argmax())
            reason = (
                f"in one row the error's {norm}-norm is {float(error.flatten()[worst]):.3g}, "
                f"allowed is {float(allowed.flatten()[worst]):.3g}"
            )
            yield reason, member, flat


def _by_row(part: Tensor, rest: list[int], norm: str) -> Tensor:
    if not rest:
        return part
    if norm == "max":
        return part.amax(dim=rest, keepdim=True)
    return part.square().sum(dim=rest, keepdim=True).sqrt()


def _whole(parts: Sequence[Tensor], norm: str) -> float:
    if norm == "max":
        return max((float(part.max()) for part in parts if part.numel()), default=0.0)
    return math.sqrt(sum(float(part.square().sum()) for part in parts))


def _agreement(members: Sequence[_Compared]) -> Agreement:
    scale = _whole([m.scale for m in members], "max")
    if scale == 0:
        return Agreement()
    return Agreement(
        error=_whole([m.error for m in members], "max") / scale,
        reference_error=_whole([m.reference_error for m in members], "max") / scale,
    )


def _mismatch(
    expected: Expected, reason: str, got: Sequence[Tensor], member: int, flat: int
) -> Mismatch:
    index = tuple(int(i) for i in torch.unravel_index(torch.tensor(flat), got[member].shape))
    return Mismatch(
        output=expected.name,
        reason=reason,
        member=member,
        index=(member, *index) if expected.listed else index,
        got=_text(got[member].flatten()[flat]),
        wanted=_text(expected.oracle[member].flatten()[flat]),
    )


def _text(element: Tensor) -> str:
    value = element.item()
    return f"{value:.9g}" if isinstance(value, float) else str(value)
