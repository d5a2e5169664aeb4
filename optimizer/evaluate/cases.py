"""Cases: inputs, and what is expected of them. The expectation stays in the judge's own memory."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from torch import Tensor

from operator_registry.registry import Operator
from operator_registry.spec import Distribution, Workload
from optimizer.errors import RunnerError
from optimizer.evaluate import protocol as p
from optimizer.evaluate.checking import Standard, is_moved, make_standard
from optimizer.evaluate.guards import Guard
from optimizer.evaluate.memory import SharedFolder, members_of, reserve, take_file
from optimizer.evaluate.process import ORACLE, Place, Process
from optimizer.evaluate.sandbox import ChildError

POOLED_ELEMENTS = 2048
"""Draws of a smaller output are judged together: its own norms would say little."""
_DEADLINE_S = 120.0
_MAGNITUDE_ONLY = 1e8
"""As a `k`: whatever is finite and not far greater than the output agrees in float32."""


@dataclass(frozen=True)
class Expectation:
    """What one or more sets of a case must give, output by output."""

    sets: tuple[int, ...]
    standards: tuple[Standard, ...]


@dataclass(frozen=True)
class CheckedCase:
    """A case with what the judge alone knows of it."""

    case: p.Case
    workload: Workload
    seeds: tuple[int, ...]
    scale: float
    distribution: Distribution
    sizes: tuple[dict[str, p.Size], ...]
    """For each set, as far as the inputs show them."""
    output_sizes: tuple[dict[str, p.Size], ...]
    expectations: tuple[Expectation, ...]
    outputs: tuple[tuple[p.Stored, ...], ...]
    """The judge's files for each set's outputs."""

    def discard(self) -> None:
        """Remove the case's files from shared memory."""
        for values in (*self.case.sets, *self.outputs):
            for value in values:
                for file in members_of(value):
                    Path(file.path).unlink(missing_ok=True)


@dataclass(frozen=True)
class Request:
    """A case to be made."""

    workload: Workload
    seeds: tuple[int, ...]
    scale: float = 1.0
    distribution: Distribution = "stated"


@dataclass(frozen=True)
class _Raw:
    """A case as the oracle made it: the tensors of each output of each set."""

    request: Request
    made: p.MadeCase
    references: tuple[tuple[tuple[Tensor, ...], ...], ...]
    oracles: tuple[tuple[tuple[Tensor, ...], ...], ...]


@dataclass
class CaseMaker:
    """Lets the oracle draw cases, and keeps what is expected out of everybody's reach."""

    operator: Operator
    place: Place
    shared: SharedFolder
    _process: Process | None = None
    _earlier_s: float = 0.0
    _moved: frozenset[int] | None = None
    _numbers: Iterator[int] = field(default_factory=count)

    def make(self, requests: Sequence[Request]) -> list[CheckedCase]:
        """Return the cases.

        Which outputs are only moved, and so must be exact, is decided by the first cases made.

        Raises:
            RunnerError: The reference fails, so that nothing can be expected.
        """
        raws = [self._draw(request) for request in requests]
        if self._moved is None:
            self._moved = _moved_outputs(raws)
        return [self._finish(raw, self._moved) for raw in raws]

    @property
    def busy_s(self) -> float:
        """Return the seconds that the oracle has spent on answers, and those before it."""
        return self._earlier_s + (self._process.busy_s if self._process is not None else 0.0)

    def close(self) -> None:
        """End the oracle's process."""
        if self._process is not None:
            self._process.kill()
            self._earlier_s += self._process.busy_s
            self._process = None

    def _draw(self, request: Request) -> _Raw:
        message = p.MakeCase(
            operator=self.operator,
            workload=request.workload,
            device=self.place.device,
            key=f"c{next(self._numbers)}",
            seeds=request.seeds,
            scales=(request.scale,) * len(request.seeds),
            distribution=request.distribution,
            inputs_folder=str(self.shared.folder("inputs")),
            expected_folder=str(self.shared.folder("expected")),
        )
        try:
            made = self._ask(message)
        except ChildError as error:
            self.close()
            sizes = ", ".join(f"{k}={v}" for k, v in request.workload.sizes.items())
            msg = f"the reference of {self.operator.name} fails at {sizes}: {error}"
            raise RunnerError(msg) from error
        # Taken out of shared memory before any candidate is told of the case.
        references = tuple(tuple(self._take(o.reference) for o in one) for one in made.expected)
        oracles = tuple(tuple(self._take(o.oracle) for o in one) for one in made.expected)
        return _Raw(request, made, references, oracles)

    def _ask(self, message: p.MakeCase) -> p.MadeCase:
        """Return the oracle's answer; another oracle's where somebody kills the first."""
        oracle = self._oracle()
        try:
            return oracle.tell(message, p.MadeCase, deadline_s=_DEADLINE_S)
        except ChildError:
            if not oracle.was_killed:
                raise
        return self._oracle().tell(message, p.MadeCase, deadline_s=_DEADLINE_S)

    def _take(self, files: Sequence[p.TensorFile]) -> tuple[Tensor, ...]:
        """Return what was expected, on the device where it will be compared.

        It is there in the judge's own process, which no candidate shares.
        """
        return tuple(take_file(file).to(self.place.device) for file in files)

    def _oracle(self) -> Process:
        if self._process is None or not self._process.alive:
            self.close()
            self._process = Process(self.place, function=ORACLE)
            self._process.greet(timed=False)
        return self._process

    def _finish(self, raw: _Raw, moved: frozenset[int]) -> CheckedCase:
        made = raw.made
        sets = range(len(made.case.sets))
        small = all(
            sum(t.numel() for t in output) < POOLED_ELEMENTS
            for one in raw.references
            for output in one
        )
        groups = [tuple(sets)] if small else [(number,) for number in sets]
        return CheckedCase(
            case=made.case,
            workload=raw.request.workload,
            seeds=raw.request.seeds,
            scale=raw.request.scale,
            distribution=raw.request.distribution,
            sizes=made.sizes,
            output_sizes=made.output_sizes,
            expectations=tuple(self._expectation(raw, group, moved) for group in groups),
            outputs=tuple(self._reserve(made, number) for number in sets),
        )

    def _expectation(self, raw: _Raw, sets: tuple[int, ...], moved: frozenset[int]) -> Expectation:
        spec = self.operator.spec
        policy = spec.precision
        if not self.place.guards.up(Guard.PRECISION):
            policy = policy.model_copy(update={"k": _MAGNITUDE_ONLY})
        standards = []
        for place, tensor in enumerate(spec.outputs.values()):
            rows = spec.precision.row_axes
            standards.append(
                make_standard(
                    [t for number in sets for t in raw.references[number][place]],
                    [t for number in sets for t in raw.oracles[number][place]],
                    policy,
                    row_dims=tuple(d for d, axis in enumerate(tensor.shape) if axis in rows),
                    exact=place in moved,
                )
            )
        return Expectation(sets, tuple(standards))

    def _reserve(self, made: p.MadeCase, number: int) -> tuple[p.Stored, ...]:
        folder = self.shared.folder("outputs")
        stored: list[p.Stored] = []
        outputs = self.operator.spec.outputs.values()
        expected = made.expected[number]
        for place, (tensor, files) in enumerate(zip(outputs, expected, strict=True)):
            name = f"{made.case.key}-{number}-{place}"
            mine = reserve(folder, name, files.reference)
            stored.append(mine[0] if tensor.list_over is None else mine)
        return tuple(stored)


def _moved_outputs(raws: Sequence[_Raw]) -> frozenset[int]:
    """Return the places of the outputs that the reference only moves, in every case."""
    outputs = range(len(raws[0].references[0])) if raws else range(0)
    return frozenset(place for place in outputs if _only_moves(raws, place))


def _only_moves(raws: Sequence[_Raw], place: int) -> bool:
    references: list[Tensor] = []
    oracles: list[Tensor] = []
    for raw in raws:
        for reference, oracle in zip(raw.references, raw.oracles, strict=True):
            if oracle[place]:  # integers have none
                references += reference[place]
                oracles += oracle[place]
    return is_moved(references, oracles)
