"""The worker: holds a candidate, or an operator's peers, and runs what the judge asks for.

It runs in a child process (`optimizer.evaluate.sandbox`). A process that holds a candidate is told
neither the reference nor the seeds nor what is expected; it stores outputs in the judge's files.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import torch

from operator_registry.record import Record
from optimizer.evaluate import looks
from optimizer.evaluate import protocol as p
from optimizer.evaluate.beside import Beside
from optimizer.evaluate.guards import ALL_UP, Guards, without
from optimizer.evaluate.held import HeldInputs
from optimizer.evaluate.host_build import SOURCE
from optimizer.evaluate.lent import Lent
from optimizer.evaluate.loads import load_host_run, load_kernels
from optimizer.evaluate.memory import Value, store_values
from optimizer.evaluate.peers import PeerAbsentError, Peers, uncaptured
from optimizer.evaluate.probing import probe
from optimizer.evaluate.timing import Call, Clock, make_clock
from optimizer.evaluate.ward import Ward
from optimizer.executor import Executor
from optimizer.host_python import HostPython

Given = TypeVar("Given")
BUSY_PATIENCE = 3.0
"""How many times the budget a measurement may take where other processes disturb it."""
Bound = tuple[str, int, str]
"""A case's key, the number of a set, and a subject's name."""


class OutOfTurnError(Exception):
    """The judge asked for something before what it needs: a fault of the judge."""


@dataclass
class Worker:
    """Answers the judge's messages, one after another."""

    _device: str = "cpu"
    _guards: Guards = ALL_UP
    _clock: Clock | None = None
    _held: HeldInputs = field(default_factory=lambda: HeldInputs("cpu"))
    _calls: dict[Bound, Call] = field(default_factory=dict)
    _priming: dict[Bound, int] = field(default_factory=dict)
    _warm: dict[str, int] = field(default_factory=dict)
    """By case, how many of its sets, the first, a subject may be called on when it is not timed."""
    _executor: Callable[..., tuple[Value, ...]] | None = None
    _peers: Peers | None = None
    _beside: Beside | None = None
    _lent: Lent = field(default_factory=lambda: Lent("cpu", torch.empty))
    _ward: Ward = field(default_factory=Ward)
    _armed: Bound | None = None

    def __call__(self, text: str) -> str:
        """Return the answer to a message."""
        return self._answer(p.MESSAGES.validate_json(text)).to_json()

    def _answer(self, message: p.Message) -> Record:  # noqa: C901, PLR0911, PLR0912 - one case a message
        match message:
            case p.Hello():
                return self._greet(message)
            case p.Probe(factor=factor):
                return p.Probed(sum=probe(factor, self._device))
            case p.LoadCandidate():
                return self._load_candidate(message)
            case p.LoadPeers():
                self._peers = Peers(message.operator, self._device)
                return p.Done()
            case p.Take(case=case):
                self._held.take(case)
                return p.Done()
            case p.Lend():
                self._lent.take(message)
                return p.Done()
            case p.Drop(case=key):
                self._held.drop(key)
                self._lent.drop(key)
                self._calls = {k: v for k, v in self._calls.items() if k[0] != key}
                return p.Done()
            case p.Prepare():
                return self._prepare(message)
            case p.Run():
                return self._run(message)
            case p.Measure():
                return self._measure(message)
            case p.Arm(case=key):
                self._lent.arm(key, shift=message.shift)
                return self._arm(
                    (key, message.set, message.subject), roll=message.roll, rolled=message.rolled
                )
            case p.WarmUp():
                return self._warm_up()
            case p.Burst():
                return self._burst(message)
            case p.Fire():
                return self._fire(message)
            case p.Observe():
                return self._observe(message)
            case p.Weigh():
                return self._weigh(message)
            case p.Count():
                return self._count(message)

    def _greet(self, hello: p.Hello) -> Record:
        self._device = hello.device
        self._guards = without(hello.guards_down)
        self._held = HeldInputs(hello.device, self._guards)
        self._ward = Ward(self._guards)
        self._lent.serve(hello.device, self._ward)
        if hello.cache_bytes:
            self._clock = make_clock(
                hello.device,
                hello.cache_bytes,
                flush_file=hello.flush_file,
                guards=self._guards,
            )
        torch.zeros(1, device=hello.device).add_(1).item()
        torch.set_grad_enabled(mode=False)
        return p.Done()

    def _load_candidate(self, load: p.LoadCandidate) -> Record:
        self._calls.clear()
        self._priming.clear()
        self._beside = Beside(load.reference) if load.reference is not None else None
        self._executor = (
            self._load_host(load)
            if load.plan.language == "python"
            else Executor(
                load.spec,
                load.plan,
                load.chosen,
                kernels=load_kernels(load),
                device=self._device,
                allocate=self._ward,
                allocate_output=self._lent.allocate,
            )
        )
        return p.Done()

    def _load_host(self, load: p.LoadCandidate) -> HostPython:
        code = (Path(load.folder) / SOURCE).read_text(encoding="utf-8")
        return HostPython(
            load.spec,
            load.chosen,
            load_host_run(load, code),
            device=self._device,
            allocate=self._lent.allocate,
        )

    def _prepare(self, message: p.Prepare) -> Record:
        try:
            self._warm[message.case] = message.sets or self._sets(message.case)
            first_ms = None
            for number in range(self._warm[message.case]):
                bound = (message.case, number, message.subject)
                began = time.perf_counter()
                call = self._bind(bound)
                call()
                if first_ms is None:
                    self._synchronize()
                    first_ms = 1e3 * (time.perf_counter() - began)
                if self._clock is not None:
                    self._priming[bound] = self._clock.calibrate(call)
            self._synchronize()
        except PeerAbsentError as error:
            return p.Prepared(absent=str(error))
        self._ward.release()
        return p.Prepared(first_ms=first_ms)

    def _bind(self, bound: Bound) -> Call:
        key, number, subject = bound
        if subject == p.CANDIDATE:
            return self._call_on(key, self._held.values(key, number))
        if bound not in self._calls:
            peers = _given(self._peers, "peers")
            inputs, attributes = self._held.values(key, number), self._held.cases[key].attributes
            self._calls[bound] = peers.bind(subject, inputs, attributes)
        return self._calls[bound]

    def _call_on(self, case: str, inputs: Sequence[Value]) -> Call:
        """Return a call of the candidate on inputs that lie where they lie now."""
        executor, begin = _given(self._executor, "a candidate"), self._lent.begin
        attributes = self._held.cases[case].attributes
        if self._beside is not None:
            self._beside.expect(inputs, attributes)

        def call() -> tuple[Value, ...]:
            begin(case)
            return executor(*inputs, **attributes)

        return call

    def _run(self, message: p.Run) -> Record:
        key, number = message.case, message.set
        call = (
            self._bind((key, number, message.subject))
            if message.seat is None
            else self._call_on(key, self._held.seat(key, number, message.seat))
        )
        self._lent.arm(key, shift=message.shift)
        self._ward.watch(message.poison)
        try:
            outputs = call()
            self._synchronize()
        finally:
            intact = self._ward.unwatch()
        forms = store_values(outputs, message.outputs)
        changed, trampled = self._held.mend(key)
        return p.Ran(outputs=forms, changed=changed, trampled=trampled, overrun=not intact)

    def _measure(self, message: p.Measure) -> Record:
        samples: list[p.Sample] = []
        began = time.monotonic()
        while len(samples) < message.most:
            quiet = sum(sample.preemptions == 0 for sample in samples)
            # On a busy machine it goes on for a while, until enough samples were left in peace.
            patience_s = message.budget_s * (1 if quiet >= message.least else BUSY_PATIENCE)
            if len(samples) >= message.least and time.monotonic() - began > patience_s:
                break
            number = len(samples) % self._warm.get(message.case, self._sets(message.case))
            self._arm((message.case, number, message.subject))
            self._warm_up()
            sample, _ = self._sample()
            samples.append(sample)
        changed, trampled = self._held.mend(message.case)
        return p.Samples(samples=tuple(samples), changed=changed, trampled=trampled)

    def _arm(self, bound: Bound, *, roll: int = 0, rolled: Sequence[int] = ()) -> Record:
        self._ward.release()
        if bound[2] == p.CANDIDATE:
            self._held.turn(bound[0])
        self._bind(bound)
        self._held.roll(bound[0], bound[1], roll, places=rolled)
        self._armed = bound
        _given(self._clock, "a clock").arm()
        return p.Done()

    def _fire(self, message: p.Fire) -> Record:
        sample, outputs = self._sample()
        if message.outputs is None:
            return p.Fired(sample=sample)
        return p.Fired(sample=sample, outputs=store_values(outputs, message.outputs))

    def _warm_up(self) -> Record:
        case, number, subject = _given(self._armed, "a sample to take")
        other = self._bind((case, (number + 1) % self._warm.get(case, self._sets(case)), subject))
        _given(self._clock, "a clock").warm_up(other)
        self._ward.release()
        return p.Done()

    def _burst(self, message: p.Burst) -> Record:
        sets = self._warm.get(message.case, self._sets(message.case))
        calls = [self._bind((message.case, n, message.subject)) for n in range(sets)]
        for number in range(message.calls):
            calls[number % sets]()
        self._synchronize()
        return p.Done()

    def _observe(self, message: p.Observe) -> Record:
        call = self._bind((message.case, message.set, message.subject))
        return looks.observe(call, device=self._device)

    def _weigh(self, message: p.Weigh) -> Record:
        call = self._bind((message.case, 0, uncaptured(message.subject)))
        inputs = self._held.values(message.case, 0)
        self._ward.release()
        self._lent.twice = False
        weighed = looks.weigh(call, inputs, lent=self._lent.holds, device=self._device)
        self._lent.twice = True
        self._ward.release()
        return weighed

    def _count(self, message: p.Count) -> Record:
        looks.count(self._bind((message.case, message.set, message.subject)))
        return p.Done()

    def _sample(self) -> tuple[p.Sample, tuple[Value, ...]]:
        bound = _given(self._armed, "a sample to take")
        clock = _given(self._clock, "a clock")
        usual = self._priming.get((bound[0], 0, bound[2]), 1)
        priming = self._priming.get(bound, usual)
        sample, outputs = clock.fire(self._bind(bound), priming=priming)
        if sample.dry:
            self._priming[bound] = clock.deepen(priming)
        return sample, outputs

    def _sets(self, case: str) -> int:
        return len(self._held.cases[case].sets)

    def _synchronize(self) -> None:
        if self._device == "cuda":
            torch.cuda.synchronize()


def _given(value: Given | None, what: str) -> Given:
    if value is None:
        msg = f"the worker holds no {what.removeprefix('a ')} yet"
        raise OutOfTurnError(msg)
    return value
