"""Whether an operator's own checks tell a result from none: probes that must be rejected.

A probe is an output that nothing was computed for. Where each output of an operator can be had by
one of them, whatever is drawn, its checks prove nothing, and nothing of it is ever confirmed.
"""

import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import torch
from pydantic import ValidationError
from torch import Tensor

from knowledge.admission import Admission
from operator_registry.registry import Operator
from operator_registry.spec import TargetName
from operator_registry.workloads import most_elements
from optimizer.errors import OptimizerError
from optimizer.evaluate.cases import CaseMaker, CheckedCase, Expectation, Request
from optimizer.evaluate.checking import Agreement, Member, check
from optimizer.evaluate.draws import SEED_BITS, distributions_under, draw_requests
from optimizer.evaluate.guards import ALL_UP
from optimizer.evaluate.memory import read_value, tensors_of

SIZES = 8
MOST_ELEMENTS = 1 << 16
"""Of the inputs at drawn sizes; public ones count up to as many times sixteen."""
_PUBLIC_FACTOR = 16
KEPT_BITS: Mapping[torch.dtype, int] = {
    torch.float64: 24,
    torch.float32: 11,
    torch.float16: 4,
    torch.bfloat16: 4,
}
"""Significant bits of the next narrower format: float32, TF32, and float8 e4m3."""
Given = Sequence[Tensor] | None
"""What a probe offers as an output: its tensors over all sets; None where it has none to offer."""


class DegenerateOperatorError(OptimizerError):
    """The operator's checks accept what nobody computed; its owner must state a better spec."""

    @classmethod
    def of(cls, admission: Admission) -> Self:
        """Return the error of an operator that is not admitted."""
        return cls(f"{admission.operator} is degenerate, so nothing is proven: {admission.reason}")


@dataclass(frozen=True)
class Trap:
    """A case, and another of the same sizes that was drawn before it under other seeds."""

    case: CheckedCase
    earlier: CheckedCase


def admit(maker: CaseMaker, target: TargetName, *, seed: int) -> Admission:
    """Return what comes of probing an operator.

    Args:
        maker: Draws the operator's cases.
        target: Whose public workloads and dtypes count.
        seed: Decides sizes and values.

    Raises:
        RunnerError: The reference fails.
    """
    operator = maker.operator
    traps = _make_traps(maker, target, seed=seed)
    try:
        fooled = {
            name: tuple(
                probe
                for probe, offer in probes_of(operator).items()
                if _is_taken(traps, place, offer)
            )
            for place, name in enumerate(operator.spec.outputs)
        }
    finally:
        for trap in traps:
            trap.case.discard()
            trap.earlier.discard()
    return Admission(
        operator=operator.name, operator_digest=operator.digest, cases=len(traps), fooled=fooled
    )


Offer = Callable[[Trap, Expectation, int], Given]


def probes_of(operator: Operator) -> dict[str, Offer]:
    """Return the probes by name; each offers one output of one case."""
    found: dict[str, Offer] = {
        "zeros": lambda trap, expectation, place: [
            _empty(member).zero_() for member in expectation.standards[place].members
        ],
        "ones": lambda trap, expectation, place: [
            _empty(member).fill_(1) for member in expectation.standards[place].members
        ],
        "the outputs of an earlier seed": _offer_earlier,
        "the mean of an earlier seed's outputs": _offer_mean,
        "the oracle in the next narrower format": _offer_narrowed,
    }
    for number, name in enumerate(operator.spec.inputs):
        found[f"the input {name}"] = _offer_input(number)
    return found


def narrowed(value: Tensor, bits: int) -> Tensor:
    """Return a float64 tensor rounded to so many significant bits."""
    fraction, exponent = torch.frexp(value)
    rounded = torch.ldexp(torch.round(fraction * 2.0**bits), exponent - bits)
    return torch.where(value.isfinite(), rounded, value)


def find_admission(path: Path) -> Admission | None:
    """Return what was found before; None where nothing was, or the file is no longer readable."""
    try:
        return Admission.from_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


def keep_admission(path: Path, admission: Admission) -> None:
    """Write down what was found, for the next judge of this operator."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(f".{os.getpid()}.new")
    fresh.write_text(admission.to_json(), encoding="utf-8")
    fresh.replace(path)


def _make_traps(maker: CaseMaker, target: TargetName, *, seed: int) -> list[Trap]:
    spec = maker.operator.spec
    rng = random.Random(seed)  # noqa: S311 - the seed is what stays secret
    requests = draw_requests(
        spec,
        target,
        seed=rng.getrandbits(SEED_BITS),
        count=SIZES,
        most=MOST_ELEMENTS,
        distributions=distributions_under(ALL_UP),
    )
    requests += [
        Request(workload, (rng.getrandbits(SEED_BITS),))
        for workload in spec.workloads_on(target)
        if most_elements(spec, workload.sizes) <= _PUBLIC_FACTOR * MOST_ELEMENTS
    ]
    earlier = [
        Request(r.workload, tuple(rng.getrandbits(SEED_BITS) for _ in r.seeds), r.scale)
        for r in requests
    ]
    made = maker.make([*earlier, *requests])
    pairs = zip(made[len(earlier) :], made[: len(earlier)], strict=True)
    return [Trap(case, other) for case, other in pairs]


def _is_taken(traps: Sequence[Trap], place: int, offer: Offer) -> bool:
    """Return whether every case takes what a probe offers for a result, and not for want of any."""
    told = False
    for trap in traps:
        for expectation in trap.case.expectations:
            standard = expectation.standards[place]
            given = offer(trap, expectation, place)
            if given is None or not isinstance(check(given, standard), Agreement):
                return False
            told = told or any(member.oracle.numel() for member in standard.members)
    return told


def _offer_earlier(trap: Trap, expectation: Expectation, place: int) -> Given:
    found = _same_sets(trap.earlier, expectation)
    if found is None:
        return None
    members = expectation.standards[place].members
    return [
        other.oracle.to(mine.dtype)
        for mine, other in zip(members, found.standards[place].members, strict=False)
    ]


def _offer_mean(trap: Trap, expectation: Expectation, place: int) -> Given:
    values = [
        member.oracle.double().flatten()
        for earlier in trap.earlier.expectations
        for member in earlier.standards[place].members
    ]
    together = torch.cat(values) if values else torch.zeros(0)
    finite = together[together.isfinite()]
    mean = float(finite.mean()) if finite.numel() else 0.0
    members = expectation.standards[place].members
    return [_empty(m).fill_(mean if m.dtype.is_floating_point else round(mean)) for m in members]


def _offer_narrowed(trap: Trap, expectation: Expectation, place: int) -> Given:
    members = expectation.standards[place].members
    if any(member.dtype not in KEPT_BITS for member in members):
        return None
    return [narrowed(m.oracle.double(), KEPT_BITS[m.dtype]).to(m.dtype) for m in members]


def _offer_input(number: int) -> Offer:
    def offer(trap: Trap, expectation: Expectation, place: int) -> Given:
        sets = trap.case.case.sets
        members = expectation.standards[place].members
        device = str(members[0].oracle.device) if members else "cpu"
        return [
            tensor
            for which in expectation.sets
            for tensor in tensors_of(read_value(sets[which][number], device))
        ]

    return offer


def _same_sets(earlier: CheckedCase, expectation: Expectation) -> Expectation | None:
    same: Iterator[Expectation] = (e for e in earlier.expectations if e.sets == expectation.sets)
    return next(same, None)


def _empty(member: Member) -> Tensor:
    return torch.empty(member.shape, dtype=member.dtype, device=member.oracle.device)
