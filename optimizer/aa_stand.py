"""The A/A bench's process pairs: all alive, the kernel in each, ready to take fresh samples."""

import random
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from itertools import islice, repeat
from pathlib import Path
from statistics import median
from typing import Self

import torch

from optimizer.aa_kernel import candidate_of, operator_of, slower_work, work_of
from optimizer.binding import instances
from optimizer.errors import RunnerError
from optimizer.evaluate import protocol as p
from optimizer.evaluate.building import Built
from optimizer.evaluate.keeping import KeeperLender, KeptMemory
from optimizer.evaluate.memory import write_value
from optimizer.evaluate.process import Place, Process
from optimizer.evaluate.sandbox import ChildError
from optimizer.evaluate.statistics import quick
from optimizer.evaluate.summary import Reading
from optimizer.evaluate.timing import flush_bytes
from optimizer.evaluate.trial import Trial
from optimizer.evaluate.turns import take_turn
from optimizer.evaluate.workbench import Effort, Workbench
from optimizer.events import Tell
from optimizer.job import AaRequest, PhaseEvent
from optimizer.targets.target import Build

PEER = "spin/slower"
_SETS = 2
_DEADLINE_S = 60.0
_STARTED_AT_ONCE = {"cpu": 4, "cuda": 16}
_CACHE_BYTES = 1 << 21
"""On a processor, twice as much is written over before a sample: more than its inner caches hold.

The kernel's few inputs are cold then, and the hundred megabytes of a last-level cache would take
ten times as long as the kernel itself.
"""
_CALIBRATED, _CALIBRATION_SAMPLES = 8, 9
_MOST_FIXED = 0.15
"""What a call may cost beside its work, as a share of that: more is a disturbed calibration."""


class Stand:
    """The pairs of one run."""

    def __init__(self, request: AaRequest, tell: Tell, rng: random.Random) -> None:
        """Build the kernel and start the pairs.

        Raises:
            RunnerError: The device is not here, or a process can't be started.
        """
        self.run = secrets.token_hex(4)
        self._request, self._tell, self._rng = request, tell, rng
        self._stack = ExitStack()
        target = request.hardware.target
        self.operator, self.candidate = operator_of(target), candidate_of(target)
        self._faster = work_of(target)
        self._cases: dict[int, p.Case] = {}
        self._prepared: set[tuple[int, int]] = set()
        bench = Workbench(
            self.operator, request.hardware, folder=request.state_folder / "aa", effort=Effort()
        )
        self.bench = self._stack.enter_context(closing(bench))
        with self._stack:
            self._processes = self._start(self._build())
            self._fixed = self._calibrate()
            self._stack = self._stack.pop_all()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End all processes."""
        self._stack.close()

    def sample(self, pair: int, gain: float, *, swapped: bool) -> dict[str, list[Reading]]:
        """Return fresh readings of a pair: in each round both sides take one, in random order.

        Args:
            pair: Its number, from 0.
            gain: How many times slower the baseline truly is.
            swapped: The pair's second process plays the candidate.

        Raises:
            RunnerError: A process failed.
        """
        mine, theirs = (2 * pair + 1, 2 * pair) if swapped else (2 * pair, 2 * pair + 1)
        slower = self._faster
        if gain != 1:
            slower = slower_work(self._faster, gain, fixed=self._fixed)
        sides = {p.CANDIDATE: (mine, self._faster), PEER: (theirs, slower)}
        found: dict[str, list[Reading]] = {name: [] for name in sides}
        for process, work in sides.values():
            self._prepare(process, work)
        rounds = self._request.rounds if gain == 1 else self._request.trial_rounds
        for number in range(rounds):
            for name in self._rng.sample(list(sides), len(sides)):
                found[name].append(self._turn(*sides[name], number % _SETS))
        return found

    def _turn(self, process: int, work: int, number: int) -> Reading:
        bound = (self._case(work), number, p.CANDIDATE)
        try:
            turn = take_turn(self._processes[process], bound, outputs=None, deadline_s=_DEADLINE_S)
        except ChildError as error:
            msg = f"process {process} of the A/A bench failed: {error}"
            raise RunnerError(msg) from error
        return turn.reading

    def _prepare(self, process: int, work: int) -> None:
        if (process, work) in self._prepared:
            return
        case = self._case(work)
        held = self._processes[process]
        held.take(case)
        held.tell(p.Prepare(case=case.key, subject=p.CANDIDATE), p.Prepared, deadline_s=_DEADLINE_S)
        self._prepared.add((process, work))

    def _case(self, work: int) -> p.Case:
        """Return the case of an amount of work; all share their inputs."""
        if work not in self._cases:
            any_case = next(iter(self._cases.values()), None)
            sets = any_case.sets if any_case else tuple(self._draw(n) for n in range(_SETS))
            self._cases[work] = p.Case(key=f"w{work}", attributes={"work": work}, sets=sets)
        return self._cases[work]

    def _draw(self, number: int) -> tuple[p.Stored, ...]:
        elements = self.operator.spec.workloads[0].sizes["n"]
        folder = self.bench.shared.folder("inputs")
        return (write_value(folder, f"x{number}", torch.randn(elements)),)

    def _build(self) -> Built:
        spec, plan = self.operator.spec, self.candidate.plan
        wanted = instances(
            spec,
            plan,
            self.candidate.chosen,
            sizes=spec.workloads[0].sizes,
            dtypes={},
            attributes={"work": work_of(self._request.hardware.target)},
        )
        (built,) = self.bench.builder.build(
            [Build(code=self.candidate.code, instances=tuple(wanted))]
        )
        if not isinstance(built, Built):
            msg = f"the A/A bench's kernel can't be built: {built}"
            raise RunnerError(msg)
        return built

    def _start(self, built: Built) -> list[Process]:
        """Start all processes, some at a time, and load the kernel into each."""
        places = self._places()
        processes: list[Process] = []
        at_once = _STARTED_AT_ONCE[self.bench.place.device]
        wanted = 2 * self._request.pairs
        # A process dies with the thread that started it: these live as long as the processes.
        threads = self._stack.enter_context(ThreadPoolExecutor(at_once))

        def start(place: Place) -> Process:
            process = Process(place)
            self._stack.callback(process.kill)
            process.greet()
            self._load(process, built)
            return process

        while len(processes) < wanted:
            self._tell(PhaseEvent(phase="compare", detail=f"{len(processes)} of {wanted} started"))
            processes += threads.map(start, islice(places, min(at_once, wanted - len(processes))))
        return processes

    def _load(self, process: Process, built: Built) -> None:
        hardware = self._request.hardware
        run_s = self.bench.run_s(self.candidate)
        trial = Trial(self.operator, hardware, self.candidate, process, run_s)
        failure = trial.load(built)
        if failure is not None:
            msg = f"the A/A bench's kernel can't be loaded: {failure}"
            raise RunnerError(msg)

    def _places(self) -> Iterator[Place]:
        """Yield a place for each process; all flush the cache by the same memory."""
        place = self.bench.place
        if isinstance(place.lender, KeeperLender):
            memory = place.lender.lend(flush_bytes(place.cache_bytes))
            if isinstance(memory, KeptMemory):
                # A context takes most of what the device has for one process of so many.
                while True:
                    yield replace(place, lender=None, flush_file=Path(memory.hand_again()))
            yield from repeat(replace(place, lender=None))
        place = replace(place, cache_bytes=min(place.cache_bytes, _CACHE_BYTES))
        file = self.bench.shared.folder("flush") / "buffer"
        with file.open("wb") as stream:
            stream.truncate(2 * place.cache_bytes)
        yield from repeat(replace(place, flush_file=file))

    def _calibrate(self) -> float:
        """Return what a call costs beside its work, in units of work."""
        work = work_of(self._request.hardware.target)
        times = {amount: self._time_of(amount) for amount in (work, 2 * work)}
        unit_ms = max(times[2 * work] - times[work], 1e-9) / work
        return min(max(0.0, times[work] / unit_ms - work), _MOST_FIXED * work)

    def _time_of(self, work: int) -> float:
        times = []
        for process in range(min(_CALIBRATED, len(self._processes))):
            self._prepare(process, work)
            samples = [self._turn(process, work, n % _SETS) for n in range(_CALIBRATION_SAMPLES)]
            times.append(quick([sample.device_ms for sample in samples]))
        return median(times)
