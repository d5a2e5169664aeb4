"""Whether an output agrees with the reference, by the error rule of the design; pure torch.

For each output, in the max-norm and the 2-norm, and so for each row where the policy names row
axes: ``error <= max(c * reference_error, k * eps(dtype) * scale)``. Errors are taken against a
float64 oracle and `scale` is the oracle's own norm. Integers and what is only moved are exact.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from operator_registry.spec import PrecisionPolicy

Norm = Literal["max", "2"]
NORMS: tuple[Norm, ...] = ("max", "2")


@dataclass(frozen=True)
class Agreement:
    """The output is correct: its worst error and the reference's, relative to the scale."""

    error: float = 0.0
    reference_error: float = 0.0


@dataclass(frozen=True)
class Mismatch:
    """The output is wrong; the worst element where one can be named."""

    reason: str
    member: int = 0
    index: tuple[int, ...] | None = None
    got: str = ""
    wanted: str = ""


@dataclass(frozen=True)
class Member:
    """One tensor of an output, and how far it may stray in each row."""

    shape: torch.Size
    dtype: torch.dtype
    oracle: Tensor
    """In float64; for what must be exact, the reference's own output."""
    unasked: Tensor | None
    """Where the oracle or the reference is not finite, so that no error is taken; None: nowhere."""
    row_allowed: Mapping[Norm, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Standard:
    """What an output must be, with all worked out that does not depend on the candidate.

    Several tensors are judged as one: the members of a list, and the draws of a small workload,
    whose own norms would say little.
    """

    members: tuple[Member, ...]
    exact: bool
    row_dims: tuple[int, ...] = ()
    allowed: Mapping[Norm, float] = field(default_factory=dict)
    scale: float = 0.0
    reference_error: float = 0.0


def make_standard(
    references: Sequence[Tensor],
    oracles: Sequence[Tensor],
    policy: PrecisionPolicy,
    *,
    row_dims: tuple[int, ...] = (),
    exact: bool = False,
) -> Standard:
    """Return the standard of an output.

    Args:
        references: The reference's own output, in the wanted dtype; several tensors for a list.
        oracles: The same computed in float64. Not read where the output must be exact.
        policy: The operator's precision policy.
        row_dims: Dimensions along which the rule holds for each row by itself.
        exact: The reference only moves values, so that each must arrive as it is.
    """
    if exact or not all(r.is_floating_point() for r in references):
        moved = tuple(Member(r.shape, r.dtype, r, None) for r in references)
        return Standard(moved, exact=True)
    errors, scales, members = [], [], []
    for reference, oracle in zip(references, oracles, strict=True):
        unasked = ~(oracle.isfinite() & reference.isfinite())
        error = (reference.double() - oracle).abs_().masked_fill_(unasked, 0.0)
        scale = oracle.abs().masked_fill_(unasked, 0.0)
        errors.append(error)
        scales.append(scale)
        rows: Mapping[Norm, Tensor] = {}
        if row_dims and reference.numel():
            k_eps = policy.k * torch.finfo(reference.dtype).eps
            rows = _allowed_by_row(error, scale, row_dims, c=policy.c, k_eps=k_eps)
        mask = unasked if bool(unasked.any()) else None
        members.append(Member(reference.shape, reference.dtype, oracle, mask, rows))
    eps = torch.finfo(references[0].dtype).eps if references else 0.0
    allowed: Mapping[Norm, float] = {
        norm: max(policy.c * _whole(errors, norm), policy.k * eps * _whole(scales, norm))
        for norm in NORMS
    }
    scale_max, error_max = _whole(scales, "max"), _whole(errors, "max")
    relative = error_max / scale_max if scale_max else 0.0
    return Standard(
        tuple(members),
        exact=False,
        row_dims=row_dims,
        allowed=allowed,
        scale=scale_max,
        reference_error=relative,
    )


def is_moved(references: Sequence[Tensor], oracles: Sequence[Tensor], *, least: int = 1000) -> bool:
    """Return whether the reference seems only to move values.

    True where it hits the float64 oracle in each of at least `least` floating elements: rounding
    arithmetic does not do that.
    """
    floating = [r for r in references if r.is_floating_point()]
    if sum(member.numel() for member in floating) < least:
        return False
    pairs = zip(references, oracles, strict=True)
    return all(_same(r.double(), o).all() for r, o in pairs if r.is_floating_point())


def find_form_fault(got: Sequence[Tensor], wanted: Sequence[Member]) -> str | None:
    """Return what is wrong with the number, shapes and dtypes of an output's tensors."""
    if len(got) != len(wanted):
        return f"has {len(got)} members, wanted {len(wanted)}"
    for place, (mine, member) in enumerate(zip(got, wanted, strict=True)):
        where = "" if len(got) == 1 else f"member {place} "
        if mine.shape != member.shape:
            return f"{where}has the shape {tuple(mine.shape)}, wanted {tuple(member.shape)}"
        if mine.dtype != member.dtype:
            return f"{where}has the dtype {_name(mine.dtype)}, wanted {_name(member.dtype)}"
    return None


def check(got: Sequence[Tensor], standard: Standard) -> Agreement | Mismatch:
    """Return whether an output meets its standard, or the worst way in which it does not."""
    fault = find_form_fault(got, standard.members)
    if fault is not None:
        return Mismatch(fault)
    return _check_exact(got, standard) if standard.exact else _check_close(got, standard)


def _check_exact(got: Sequence[Tensor], standard: Standard) -> Agreement | Mismatch:
    for place, (mine, member) in enumerate(zip(got, standard.members, strict=True)):
        same = _same(mine, member.oracle)
        if not bool(same.all()):
            wrong = int((~same).sum())
            reason = f"{wrong} of {mine.numel()} elements differ, where each must be exact"
            return _mismatch(reason, got, standard, place, _first(~same))
    return Agreement()


def _check_close(got: Sequence[Tensor], standard: Standard) -> Agreement | Mismatch:
    errors = []
    for place, (mine, member) in enumerate(zip(got, standard.members, strict=True)):
        error, odd = _errors(mine, member)
        if odd is not None:
            reason = "is not finite where it must be, or finite where it must not be"
            return _mismatch(reason, got, standard, place, odd)
        errors.append(error)
    for norm in NORMS:
        found, allowed = _whole(errors, norm), standard.allowed[norm]
        if found > allowed:
            place = max(range(len(errors)), key=lambda i: _whole(errors[i : i + 1], "max"))
            reason = f"the error's {norm}-norm is {found:.3g}, allowed is {allowed:.3g}"
            return _mismatch(reason, got, standard, place, int(errors[place].argmax()))
    for place, error in enumerate(errors):
        bad = _find_bad_row(error, standard.members[place], standard.row_dims)
        if bad is not None:
            return _mismatch(bad[0], got, standard, place, bad[1])
    error_max = _whole(errors, "max")
    relative = error_max / standard.scale if standard.scale else 0.0
    return Agreement(relative, standard.reference_error)


def _errors(mine: Tensor, member: Member) -> tuple[Tensor, int | None]:
    """Return the absolute errors, and an element of the wrong kind if there is one."""
    wide = mine.double()
    error = (wide - member.oracle).abs_()
    if member.unasked is not None:
        wanted = member.unasked & ~member.oracle.isfinite()
        wrong = wanted & ~_same(wide, member.oracle)
        if bool(wrong.any()):
            return error, _first(wrong)
        error.masked_fill_(member.unasked, 0.0)
    if error.numel() and not math.isfinite(float(error.max())):
        return error, _first(~error.isfinite())
    return error, None


def _find_bad_row(
    error: Tensor, member: Member, row_dims: tuple[int, ...]
) -> tuple[str, int] | None:
    for norm, allowed in member.row_allowed.items():
        found = _by_row(error, row_dims, norm)
        excess = found - allowed
        if float(excess.max()) > 0:
            worst = int(excess.argmax())
            row = torch.zeros_like(excess, dtype=torch.bool)
            row.view(-1)[worst] = True
            reason = (
                f"in one row the error's {norm}-norm is {float(found.flatten()[worst]):.3g}, "
                f"allowed is {float(allowed.flatten()[worst]):.3g}"
            )
            return reason, int(torch.where(row, error, -1.0).argmax())
    return None


def _allowed_by_row(
    error: Tensor, scale: Tensor, row_dims: tuple[int, ...], *, c: float, k_eps: float
) -> Mapping[Norm, Tensor]:
    return {
        norm: torch.maximum(
            c * _by_row(error, row_dims, norm), k_eps * _by_row(scale, row_dims, norm)
        )
        for norm in NORMS
    }


def _by_row(part: Tensor, row_dims: tuple[int, ...], norm: Norm) -> Tensor:
    rest = [d for d in range(part.dim()) if d not in row_dims]
    if not rest:
        return part
    if norm == "max":
        return part.amax(dim=rest, keepdim=True)
    norms: Tensor = torch.linalg.vector_norm(part, dim=rest, keepdim=True)
    return norms


def _whole(parts: Sequence[Tensor], norm: Norm) -> float:
    if norm == "max":
        return max((float(part.max()) for part in parts if part.numel()), default=0.0)
    return math.hypot(*(float(torch.linalg.vector_norm(part)) for part in parts))


def _same(a: Tensor, b: Tensor) -> Tensor:
    """Return where two tensors are equal, NaN being equal to NaN."""
    equal = a == b
    return equal | (a.isnan() & b.isnan()) if a.is_floating_point() else equal


def _first(true: Tensor) -> int:
    return int(torch.argmax(true.flatten().to(torch.uint8)))


def _mismatch(
    reason: str, got: Sequence[Tensor], standard: Standard, member: int, flat: int
) -> Mismatch:
    shape = got[member].shape
    index = tuple(int(i) for i in torch.unravel_index(torch.tensor(flat), shape)) if shape else ()
    wanted = standard.members[member].oracle.flatten()[flat]
    return Mismatch(reason, member, index, _text(got[member].flatten()[flat]), _text(wanted))


def _text(element: Tensor) -> str:
    value = element.item()
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
