"""The inputs that a worker holds, and whether anybody has written into them."""

from dataclasses import dataclass, field

import torch

from optimizer.evaluate.memory import Value, bytes_of, read_value, tensors_of
from optimizer.evaluate.protocol import Case


@dataclass
class HeldInputs:
    """Cases by key, with each set's inputs on a device, twice: one copy is never handed out."""

    device: str
    cases: dict[str, Case] = field(default_factory=dict)
    _values: dict[str, list[list[Value]]] = field(default_factory=dict)
    _pristine: dict[str, list[list[Value]]] = field(default_factory=dict)

    def take(self, case: Case) -> None:
        """Copy a case's inputs onto the device."""
        self.cases[case.key] = case
        for held in (self._values, self._pristine):
            held[case.key] = [[read_value(v, self.device) for v in one] for one in case.sets]

    def drop(self, key: str) -> None:
        """Forget a case."""
        for held in (self.cases, self._values, self._pristine):
            held.pop(key, None)

    def values(self, key: str, number: int) -> list[Value]:
        """Return the inputs of a set, in the spec's order."""
        return self._values[key][number]

    def mend(self, key: str) -> tuple[int, ...]:
        """Return the places of the inputs that were written into, as they were once more."""
        changed = set()
        for mine, first in zip(self._values[key], self._pristine[key], strict=True):
            for place, (value, wanted) in enumerate(zip(mine, first, strict=True)):
                for tensor, whole in zip(tensors_of(value), tensors_of(wanted), strict=True):
                    if not torch.equal(bytes_of(tensor), bytes_of(whole)):
                        tensor.copy_(whole)
                        changed.add(place)
        return tuple(sorted(changed))
