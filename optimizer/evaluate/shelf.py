"""Where one call of a candidate leaves its outputs, and what the judge takes from there.

It is memory that the judge lends the worker; where none can be lent, files into which the worker
copies.
"""

import random
from collections.abc import Sequence

from operator_registry.spec import OperatorSpec
from optimizer.errors import CallError, PlanError
from optimizer.evaluate import protocol as p
from optimizer.evaluate.cases import CheckedCase
from optimizer.evaluate.guards import Guard
from optimizer.evaluate.memory import members_of, read_output, scrub
from optimizer.evaluate.process import Process
from optimizer.evaluate.tray import (
    ALIGNMENT,
    MOST_SHIFT,
    Forms,
    Layout,
    Memory,
    Taken,
    lay_out,
    take,
)


class Shelf:
    """The place of one case's outputs in one process."""

    def __init__(
        self, process: Process, spec: OperatorSpec, case: CheckedCase, *, sized: bool
    ) -> None:
        """Lend the process what the case needs.

        Args:
            process: It holds the candidate, and has the case's inputs.
            spec: The operator.
            case: The case.
            sized: See `lay_out`.

        Raises:
            ChildError: The process did not answer.
            RunnerError: There is no room for the outputs.
        """
        self._case = case
        self._poisons = process.place.guards.up(Guard.POISON)
        self._careful = process.place.guards.up(Guard.CANARIES)
        self._poisoned = process.place.guards.up(Guard.POISON)
        self._layouts = _lay_out(spec, case, sized=sized)
        self._memory: Memory | None = None
        if self._layouts:
            nbytes = self._layouts[0].nbytes + MOST_SHIFT
            self._memory = process.lend(case.case, self._layouts[0].offsets, nbytes=nbytes)
        self.shift = 0
        """By how much outputs lie further back, until the next `move`."""
        self._byte = 0

    def move(self, rng: random.Random) -> None:
        """Choose another place for the next call's outputs."""
        self.shift = ALIGNMENT * rng.randrange(MOST_SHIFT // ALIGNMENT)

    def files(self, number: int) -> tuple[p.Stored, ...]:
        """Return the files that the worker copies a set's outputs into; none if it need not."""
        return () if self._memory is not None else self._case.outputs[number]

    def clear(self, number: int, byte: int) -> None:
        """Fill what a set's outputs will be written into, and all around, with a byte.

        Raises:
            RunnerError: It can't be reached any more.
        """
        byte = byte if self._poisons else 0
        self._byte = byte if self._poisoned else 0
        if self._memory is None:
            scrub(self._case.outputs[number], self._byte)
        else:
            self._memory.fill(self.shift, self._layouts[number].nbytes, self._byte)

    def take(self, number: int, forms: Forms) -> Taken:
        """Return a copy of a set's outputs; the candidate has answered.

        Raises:
            RunnerError: They can't be reached any more.
        """
        if self._memory is None:
            return take_files(self._case.outputs[number], forms)
        layout = self._layouts[number]
        byte = self._byte if self._careful else None
        return take(self._memory, layout, forms, shift=self.shift, fill=byte)


def _lay_out(spec: OperatorSpec, case: CheckedCase, *, sized: bool) -> list[Layout]:
    try:
        return lay_out(spec, case.sizes, case.workload.dtypes, sized=sized)
    except (PlanError, CallError):
        return []  # the candidate can't make such outputs either, and will say so


def take_files(files: Sequence[p.Stored], forms: Forms) -> Taken:
    """Return a copy of the outputs that a worker copied into files."""
    found = []
    for stored in files:
        read = [t for t in map(read_output, members_of(stored)) if t is not None]
        found.append(tuple(read) if len(read) == len(members_of(stored)) else None)
    return Taken(forms, tuple(found))
