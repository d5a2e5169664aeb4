"""The inputs that a worker holds, where they lie for a run, and whether anybody wrote there."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from optimizer.evaluate.guards import ALL_UP, Guard, Guards
from optimizer.evaluate.memory import Value, bytes_of, read_value, tensors_of
from optimizer.evaluate.padded import Padded, make_gapped, make_padded
from optimizer.evaluate.protocol import Case, Seat

SHIFT_ROOM = 4096
"""Bytes by which inputs may be moved inside their slot."""
ALIGNMENT = 64
"""Elements by which a turn moves them: what an aligned kernel needs stays true."""


@dataclass
class _Slot:
    """Memory in which one set's inputs lie at a time."""

    memory: list[list[Padded]]
    """For each input, for each member."""
    occupant: tuple[int, Seat] | None = None
    values: list[Value] = field(default_factory=list)
    rolled: bool = False
    """Some of the values stand in another order than they were drawn in."""
    lent: list[list[Padded]] = field(default_factory=list)
    """Where the values lie: in `memory`, or beside it where they are strided."""


@dataclass
class HeldInputs:
    """Cases by key, with each set's inputs on a device.

    One copy is never handed out. A run finds its inputs in a slot: the same slot may hold another
    set next time, and the same set may lie in another slot, or beside its usual address.
    """

    device: str
    guards: Guards = ALL_UP
    cases: dict[str, Case] = field(default_factory=dict)
    _pristine: dict[str, list[list[Value]]] = field(default_factory=dict)
    _slots: dict[str, list[_Slot]] = field(default_factory=dict)
    _turns: dict[str, tuple[int, int]] = field(default_factory=dict)
    _rng: random.Random = field(default_factory=random.SystemRandom)

    def take(self, case: Case) -> None:
        """Copy a case's inputs onto the device."""
        self.cases[case.key] = case
        sets = [[read_value(value, self.device) for value in one] for one in case.sets]
        self._pristine[case.key] = sets
        self._slots[case.key] = [_Slot(self._reserve(sets)) for _ in sets]

    def drop(self, key: str) -> None:
        """Forget a case."""
        for held in (self.cases, self._pristine, self._slots, self._turns):
            held.pop(key, None)

    def turn(self, key: str) -> None:
        """Let each of a case's sets lie elsewhere from now on, in the place of another set."""
        if self.guards.up(Guard.FRESH):
            self._turns[key] = (self._rng.randrange(1 << 16), self._rng.randrange(1 << 16))
            for slot in self._slots[key]:
                slot.occupant = None

    def values(self, key: str, number: int) -> list[Value]:
        """Return the inputs of a set at its present place, in the spec's order."""
        turn, shift = self._turns.get(key, (0, 0))
        return self.seat(key, number, Seat(slot=number + turn, shift=shift * ALIGNMENT))

    def seat(self, key: str, number: int, seat: Seat) -> list[Value]:
        """Return the inputs of a set, copied to where a run shall find them."""
        slot = self._slots[key][seat.slot % len(self._slots[key])]
        if slot.occupant != (number, seat):
            pristine = self._pristine[key][number]
            slot.lent = [
                [
                    make_gapped(first, seed=self._seed())
                    if place in seat.strided and first.dim()
                    else self._moved(memory, first, seat.shift)
                    for memory, first in zip(members, tensors_of(value), strict=True)
                ]
                for place, (members, value) in enumerate(zip(slot.memory, pristine, strict=True))
            ]
            slot.values = [
                _filled(lent, value) for lent, value in zip(slot.lent, pristine, strict=True)
            ]
            slot.occupant, slot.rolled = (number, seat), False
        return slot.values

    def roll(self, key: str, number: int, by: int, *, places: Sequence[int]) -> None:
        """Move the values of some inputs of a set on, around the end: new values, the same memory.

        Args:
            key: The case.
            number: The set, at its present place.
            by: How far; by 0 they stand as they were drawn.
            places: Which inputs: those whose values may stand in any order.
        """
        values = self.values(key, number)
        turn, _ = self._turns.get(key, (0, 0))
        slot = self._slots[key][(number + turn) % len(self._slots[key])]
        if not self.guards.up(Guard.FRESH) or not (by or slot.rolled):
            return
        for place in places:
            drawn = tensors_of(self._pristine[key][number][place])
            for tensor, whole in zip(tensors_of(values[place]), drawn, strict=True):
                tensor.copy_(whole.flatten().roll(by).view_as(whole))
        slot.rolled = by != 0

    def mend(self, key: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return which inputs were written into, and beside which, as they were once more."""
        changed, trampled = set(), set()
        for slot in self._slots[key]:
            if slot.occupant is None or slot.rolled:
                continue
            pristine = self._pristine[key][slot.occupant[0]]
            for place, (value, wanted) in enumerate(zip(slot.values, pristine, strict=True)):
                for tensor, whole in zip(tensors_of(value), tensors_of(wanted), strict=True):
                    if not _same_bytes(tensor, whole):
                        tensor.copy_(whole)
                        changed.add(place)
                if not all(padded.is_intact() for padded in slot.lent[place]):
                    trampled.add(place)
                    slot.occupant = None
            if slot.occupant is None:
                slot.memory = self._reserve(self._pristine[key])
        return self._seen(Guard.INPUTS, changed), self._seen(Guard.CANARIES, trampled)

    def _seen(self, guard: Guard, places: set[int]) -> tuple[int, ...]:
        return tuple(sorted(places)) if self.guards.up(guard) else ()

    def _reserve(self, sets: Sequence[Sequence[Value]]) -> list[list[Padded]]:
        """Return memory that any of the sets fits into, with room to be moved."""
        return [
            [
                make_padded(
                    max(t.numel() * t.element_size() for t in members) + SHIFT_ROOM,
                    device=self.device,
                    seed=self._seed(),
                )
                for members in zip(*map(tensors_of, values), strict=True)
            ]
            for values in zip(*sets, strict=True)
        ]

    def _moved(self, memory: Padded, tensor: Tensor, shift: int) -> Padded:
        """Return the part of a slot's memory that a tensor takes, with all else around it."""
        item, size = tensor.element_size(), tensor.numel() * tensor.element_size()
        start = memory.start + shift * item % SHIFT_ROOM
        flat = memory.memory
        return Padded(flat, start, size, flat[:start].clone(), flat[start + size :].clone())

    def _seed(self) -> int:
        return self._rng.getrandbits(48)


def _filled(lent: Sequence[Padded], value: Value) -> Value:
    members = tensors_of(value)
    seated = [p.view(t.dtype, t.shape) for p, t in zip(lent, members, strict=True)]
    for mine, wanted in zip(seated, members, strict=True):
        mine.copy_(wanted)
    return seated[0] if isinstance(value, Tensor) else seated


def _same_bytes(tensor: Tensor, whole: Tensor) -> bool:
    return bool(torch.equal(bytes_of(tensor.contiguous()), bytes_of(whole)))
