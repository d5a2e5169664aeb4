"""The worker: holds a candidate, or an operator's peers, and runs what the judge asks for.

It runs in a child process (`optimizer.evaluate.sandbox`). A process that holds a candidate is told
neither the reference nor the seeds nor what is expected; it stores outputs in the judge's files.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from operator_registry.record import Record
from optimizer.evaluate import protocol as p
from optimizer.evaluate.memory import (
    Value,
    bytes_of,
    form_of,
    map_file,
    members_of,
    read_value,
    tensors_of,
)
from optimizer.evaluate.peers import PeerAbsentError, Peers
from optimizer.evaluate.timing import Call, Clock, make_clock
from optimizer.executor import Executor
from optimizer.targets import make_target
from optimizer.targets.target import KernelTable

Bound = tuple[str, int, str]
"""A case's key, the number of a set, and a subject's name."""


@dataclass
class Worker:
    """Answers the judge's messages, one after another."""

    _device: str = "cpu"
    _clock: Clock | None = None
    _cases: dict[str, p.Case] = field(default_factory=dict)
    _inputs: dict[tuple[str, int], list[Value]] = field(default_factory=dict)
    _pristine: dict[tuple[str, int], list[Value]] = field(default_factory=dict)
    _calls: dict[Bound, Call] = field(default_factory=dict)
    _executor: Executor | None = None
    _peers: Peers | None = None
    _poison: int | None = None
    _armed: Bound | None = None

    def __call__(self, text: str) -> str:
        """Return the answer to a message."""
        return self._answer(p.MESSAGES.validate_json(text)).to_json()

    def _answer(self, message: p.Message) -> Record:  # noqa: C901, PLR0911 - one case a message
        match message:
            case p.Hello():
                return self._greet(message)
            case p.LoadCandidate():
                return self._load_candidate(message)
            case p.LoadPeers():
                self._peers = Peers(message.operator, self._device)
                return p.Done()
            case p.Take(case=case):
                return self._take(case)
            case p.Drop(case=key):
                return self._drop(key)
            case p.Prepare():
                return self._prepare(message)
            case p.Run():
                return self._run(message)
            case p.Measure():
                return self._measure(message)
            case p.Arm():
                return self._arm((message.case, message.set, message.subject))
            case p.Fire():
                return self._fire(message)

    def _greet(self, hello: p.Hello) -> Record:
        self._device = hello.device
        if hello.cache_bytes:
            self._clock = make_clock(hello.device, hello.cache_bytes)
        torch.zeros(1, device=hello.device).add_(1).item()
        torch.set_grad_enabled(mode=False)
        return p.Done()

    def _load_candidate(self, load: p.LoadCandidate) -> Record:
        self._calls.clear()
        self._executor = Executor(
            load.spec,
            load.plan,
            load.chosen,
            kernels=_load_kernels(load),
            device=self._device,
            allocate=self._allocate,
        )
        return p.Done()

    def _allocate(self, *args: Any, **kwargs: Any) -> Tensor:  # noqa: ANN401 - as `torch.empty`
        memory: Tensor = torch.empty(*args, **kwargs)
        if self._poison is not None:
            bytes_of(memory).fill_(self._poison)
        return memory

    def _take(self, case: p.Case) -> Record:
        self._cases[case.key] = case
        for number, values in enumerate(case.sets):
            self._inputs[case.key, number] = [read_value(v, self._device) for v in values]
            self._pristine[case.key, number] = [read_value(v, self._device) for v in values]
        return p.Done()

    def _drop(self, key: str) -> Record:
        self._cases.pop(key, None)
        self._inputs = {k: v for k, v in self._inputs.items() if k[0] != key}
        self._pristine = {k: v for k, v in self._pristine.items() if k[0] != key}
        self._calls = {k: v for k, v in self._calls.items() if k[0] != key}
        return p.Done()

    def _prepare(self, message: p.Prepare) -> Record:
        try:
            for number in range(len(self._cases[message.case].sets)):
                call = self._bind((message.case, number, message.subject))
                call()
                if self._clock is not None:
                    self._clock.calibrate(call)
            self._synchronize()
        except PeerAbsentError as error:
            return p.Prepared(absent=str(error))
        return p.Prepared()

    def _bind(self, bound: Bound) -> Call:
        if bound not in self._calls:
            key, number, subject = bound
            inputs, attributes = self._inputs[key, number], self._cases[key].attributes
            if subject == p.CANDIDATE:
                self._calls[bound] = self._candidate_call(inputs, attributes)
            else:
                assert self._peers is not None  # noqa: S101 - the judge loads before it asks
                self._calls[bound] = self._peers.bind(subject, inputs, attributes)
        return self._calls[bound]

    def _candidate_call(self, inputs: Sequence[Value], attributes: dict[str, Any]) -> Call:
        executor = self._executor
        assert executor is not None  # noqa: S101 - the judge loads before it asks
        return lambda: executor(*inputs, **attributes)

    def _run(self, message: p.Run) -> Record:
        self._poison = message.poison
        try:
            outputs = self._bind((message.case, message.set, message.subject))()
            self._synchronize()
        finally:
            self._poison = None
        changed = self._changed(message.case, message.set)
        return p.Ran(outputs=_store(outputs, message.outputs), changed=changed)

    def _changed(self, case: str, number: int) -> tuple[int, ...]:
        """Return which inputs were written to, and mend them."""
        inputs, pristine = self._inputs[case, number], self._pristine[case, number]
        changed = []
        for place, (mine, first) in enumerate(zip(inputs, pristine, strict=True)):
            for tensor, wanted in zip(tensors_of(mine), tensors_of(first), strict=True):
                if not torch.equal(bytes_of(tensor), bytes_of(wanted)):
                    tensor.copy_(wanted)
                    changed.append(place)
        return tuple(dict.fromkeys(changed))

    def _measure(self, message: p.Measure) -> Record:
        sets = len(self._cases[message.case].sets)
        samples: list[p.Sample] = []
        until = time.monotonic() + message.budget_s
        for number in count():
            late = time.monotonic() > until
            if number >= message.most or (late and number >= message.least):
                return p.Samples(samples=tuple(samples))
            self._arm((message.case, number % sets, message.subject))
            sample, _ = self._sample()
            samples.append(sample)
        raise AssertionError

    def _arm(self, bound: Bound) -> Record:
        self._bind(bound)
        self._armed = bound
        self._clock_or_fail().arm()
        return p.Done()

    def _fire(self, message: p.Fire) -> Record:
        sample, outputs = self._sample()
        if message.outputs is None:
            return p.Fired(sample=sample)
        return p.Fired(sample=sample, outputs=_store(outputs, message.outputs))

    def _sample(self) -> tuple[p.Sample, tuple[Value, ...]]:
        assert self._armed is not None  # noqa: S101 - the judge arms before it fires
        case, number, subject = self._armed
        other = (number + 1) % len(self._cases[case].sets)
        warm_up = self._bind((case, other, subject))
        return self._clock_or_fail().fire(self._calls[self._armed], warm_up)

    def _clock_or_fail(self) -> Clock:
        assert self._clock is not None  # noqa: S101 - the judge says hello first
        return self._clock

    def _synchronize(self) -> None:
        if self._device == "cuda":
            torch.cuda.synchronize()


def _load_kernels(load: p.LoadCandidate) -> KernelTable:
    if load.interpreted is None:
        return make_target(load.hardware).load(Path(load.folder))
    # Only here: it imports Triton, which takes a while and is of no use elsewhere.
    from optimizer.targets.interpreter import InterpreterTable  # noqa: PLC0415

    return InterpreterTable(load.interpreted)


def _store(
    outputs: tuple[Value, ...], files: tuple[p.Stored, ...]
) -> tuple[p.Form | tuple[p.Form, ...], ...]:
    """Copy outputs into the files that fit, and return the outputs' forms."""
    for output, stored in zip(outputs, files, strict=False):
        for tensor, file in zip(tensors_of(output), members_of(stored), strict=False):
            form = form_of(tensor)
            if (form.shape, form.dtype) == (file.shape, file.dtype):
                map_file(file).copy_(tensor)
    return tuple(
        form_of(output) if isinstance(output, Tensor) else tuple(map(form_of, output))
        for output in outputs
    )
