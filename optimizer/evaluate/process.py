"""The judge's end of a worker process, and how such processes are started."""

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self, TypeVar

from pydantic import ValidationError

from knowledge.outcome import Failed, Stage, TimedOut
from operator_registry.record import Record
from optimizer.errors import RunnerError
from optimizer.evaluate import protocol as p
from optimizer.evaluate.census import Census, take_census
from optimizer.evaluate.guards import ALL_UP, Guards
from optimizer.evaluate.probing import probe_answer
from optimizer.evaluate.sandbox import (
    ChildDiedError,
    ChildError,
    ChildRaisedError,
    ChildTimedOutError,
    Limits,
    start,
)
from optimizer.evaluate.tray import Lender, Memory

AnyRecord = TypeVar("AnyRecord", bound=Record)
Result = TypeVar("Result")
WORKER = "optimizer.evaluate.worker:Worker"
PEERS = "optimizer.evaluate.peer_worker:Worker"
ORACLE = "optimizer.evaluate.oracle:Oracle"
_GIB = 1 << 30
_PROBE_S = 10.0
_WRONG = "ProbeError"
_FIRST_BYTES = 1 << 24
"""Lent to each worker; one that needs more gets more."""
# glibc gives large blocks back to the kernel and takes them anew at each call, which makes eager
# PyTorch several times slower in some processes and not in others. Both sides keep what they have.
_KEEP_MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": "4294967296",
    "MALLOC_TRIM_THRESHOLD_": "17179869184",
    "MALLOC_TOP_PAD_": "268435456",
}


@dataclass(frozen=True)
class Place:
    """Where the judge's processes run, and what they may use."""

    device: str
    """As torch names it: ``cpu`` or ``cuda``."""
    threads: int
    cache_bytes: int
    folder: Path
    """Caches of PyTorch's compiler."""
    memory_gib: int = 8
    guards: Guards = ALL_UP
    shared: Path | None = None
    """The judge's folder of shared memory, which its processes see."""
    lender: Lender | None = None
    """Makes the memory that candidates write outputs into; None where each has its own."""
    flush_file: Path | None = None
    """By which many workers flush the cache, see `Hello.flush_file`; else by their own memory."""
    compiles: bool = True
    """Whether peers are compiled: where not, their processes need not load PyTorch's compiler."""
    hello_s: float = 120.0
    """For a process to import torch and to touch the device."""

    @property
    def limits(self) -> Limits:
        """Return the limits of a worker."""
        environment = {**_KEEP_MEMORY, "OMP_NUM_THREADS": str(self.threads)}
        artefacts = self.folder / "artefacts"
        artefacts.mkdir(parents=True, exist_ok=True)  # what is not there yet can't be shown
        return Limits(
            memory_bytes=self.memory_gib * _GIB,
            read=(artefacts, *self._shared("inputs")),
            fill=(*self._shared("outputs", "trays"), *filter(None, [self._mapped_flush])),
            disk_bytes=2 * self.memory_gib * _GIB,
            device=self.device,
            environment=environment,
            guards=self.guards,
        )

    @property
    def oracle_limits(self) -> Limits:
        """Return the limits of the oracle: it alone makes files, of inputs and what is expected."""
        return replace(self.limits, read=(), fill=(), write=self._shared("inputs", "expected"))

    @property
    def _mapped_flush(self) -> Path | None:
        """Return the flush file where it is mapped; a device's is handed over in ``trays``."""
        return self.flush_file if self.device == "cpu" else None

    def _shared(self, *names: str) -> tuple[Path, ...]:
        """Return folders of shared memory, made if need be."""
        if self.shared is None:
            return ()
        folders = tuple(self.shared / name for name in names)
        for folder in folders:
            folder.mkdir(exist_ok=True)
        return folders

    @property
    def compiling_limits(self) -> Limits:
        """Return the limits of a worker that compiles peers: it keeps what it compiled.

        Its temporary files are kept as well: PyTorch's compiler has its precompiled headers there,
        which take longer to make than all the rest.
        """
        folders = {
            "TMPDIR": self.folder / "tmp",
            "TORCHINDUCTOR_CACHE_DIR": self.folder / "inductor",
            "TRITON_CACHE_DIR": self.folder / "triton",
        }
        for folder in folders.values():
            folder.mkdir(parents=True, exist_ok=True)
        limits = self.limits
        threads = min(8, self.threads) if self.device == "cuda" else 1
        return replace(
            limits,
            write=tuple(folders.values()),
            processes=8 * (limits.processes or 0) or None,  # the compiler's own, and their threads
            environment={
                **limits.environment,
                **{name: str(folder) for name, folder in folders.items()},
                "TORCHINDUCTOR_COMPILE_THREADS": str(threads),
            },
        )


@dataclass
class Process:
    """A worker process, or the oracle's."""

    place: Place
    function: str = WORKER
    taken: set[str] = field(default_factory=set)
    """Keys of the cases whose inputs it holds."""
    memory: Memory | None = None
    """Memory of the judge that was lent to it for outputs."""
    lent: set[str] = field(default_factory=set)
    """Keys of the cases whose outputs it makes there."""
    busy_s: float = 0.0
    """Seconds that it has spent on answers."""
    was_killed: bool = False
    """Whether somebody other than the judge ended it: no fault of what it held, as a rule."""

    def __post_init__(self) -> None:
        """Start it; `greet` waits until it is ready."""
        self._start()

    def _start(self) -> None:
        place = self.place
        limits = {PEERS: place.compiling_limits, ORACLE: place.oracle_limits}.get(
            self.function, place.limits
        )
        plain = self.function == PEERS and not place.compiles
        self._child = start(WORKER if plain else self.function, limits=limits)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Kill it."""
        self.kill()

    @property
    def alive(self) -> bool:
        """Return whether it still runs."""
        return self._child.alive

    def census(self) -> Census:
        """Count what runs in it and in all that it started, as seen from outside."""
        return take_census(self._child.pid)

    def kill(self) -> None:
        """End it and all that it started."""
        self._child.kill()
        if self.memory is not None:
            self.memory.close()

    def greet(self, *, timed: bool = True) -> None:
        """Wait until it is ready; it is started again where somebody kills it meanwhile.

        Raises:
            RunnerError: It can't be: torch or the device is out of order.
        """
        cache_bytes = self.place.cache_bytes if timed else 0
        hello = p.Hello(
            device=self.place.device,
            cache_bytes=cache_bytes,
            flush_file=str(self.place.flush_file) if self.place.flush_file else None,
            guards_down=tuple(sorted(self.place.guards.down)),
        )
        try:
            self._say(hello)
        except ChildError as error:
            self.kill()
            msg = f"a worker process can't start on {self.place.device}: {error}"
            raise RunnerError(msg) from error
        if self.function == WORKER and self.memory is None:
            self._open_memory()

    def _say(self, hello: p.Hello) -> None:
        try:
            self.tell(hello, p.Done, deadline_s=self.place.hello_s)
        except ChildError:
            if not self.was_killed or self.taken or self.memory is not None:
                raise  # it was at work before, and a new one would lack what it was given
            self._child.kill()
            self.was_killed = False
            self._start()
            self.tell(hello, p.Done, deadline_s=self.place.hello_s)

    def _open_memory(self) -> None:
        """Lend it memory, before it holds foreign code that could refuse it on purpose."""
        lender = self.place.lender
        memory = lender.lend(_FIRST_BYTES) if lender is not None else None
        if lender is None or memory is None:
            return
        lend = p.Lend(case="", memory=memory.lent, slots=())
        try:
            self.tell(lend, p.Done, deadline_s=self.place.hello_s)
        except ChildRaisedError as error:
            memory.close()
            lender.refuse(error.log.strip().splitlines()[-1])
        except ChildError as error:
            memory.close()
            self.kill()
            msg = f"a worker process can't be lent memory on {self.place.device}: {error}"
            raise RunnerError(msg) from error
        else:
            self.memory = memory

    def probe(self) -> None:
        """See whether its device still computes right.

        Raises:
            ChildError: It does not, or there is no answer; the process is of no more use.
        """
        factor = 1 + secrets.randbelow((1 << 16) - 1)
        found = self.tell(p.Probe(factor=factor), p.Probed, deadline_s=_PROBE_S)
        wanted = probe_answer(factor)
        if found.sum != wanted:
            self.kill()
            msg = f"the device computes {found.sum} where {wanted} is right"
            raise ChildRaisedError(_WRONG, msg)

    def take(self, case: p.Case, *, deadline_s: float = 60.0) -> None:
        """Give it a case's inputs, unless it has them.

        Raises:
            ChildError: It did not answer.
        """
        if case.key not in self.taken:
            self.tell(p.Take(case=case), p.Done, deadline_s=deadline_s)
            self.taken.add(case.key)

    def lend(self, case: p.Case, slots: Sequence[int], *, nbytes: int) -> Memory | None:
        """Let it make a case's outputs in memory of the judge; None where there is none to lend.

        Raises:
            ChildError: It did not answer.
            RunnerError: There is no room for so much.
        """
        if self.memory is None or self.place.lender is None:
            return None
        if not self.memory.alive or self.memory.lent.nbytes < nbytes:
            larger = self.place.lender.lend(nbytes)
            if larger is None:
                msg = f"no {nbytes} bytes can be lent for outputs: {self.place.lender.obstacle}"
                raise RunnerError(msg)
            self.memory.close()
            self.memory = larger
            self.lent.clear()
        if case.key not in self.lent:
            lend = p.Lend(case=case.key, memory=self.memory.lent, slots=tuple(slots))
            self.tell(lend, p.Done, deadline_s=30.0)
            self.lent.add(case.key)
        return self.memory

    def drop(self, case: p.Case) -> None:
        """Let it forget a case.

        Raises:
            ChildError: It did not answer.
        """
        self.lent.discard(case.key)
        if case.key in self.taken:
            self.tell(p.Drop(case=case.key), p.Done, deadline_s=30.0)
            self.taken.discard(case.key)

    def tell(self, message: Record, answer: type[AnyRecord], *, deadline_s: float) -> AnyRecord:
        """Return the answer to a message.

        Raises:
            ChildError: It did not answer, or not with what was asked for.
        """
        began_s = time.monotonic()
        try:
            text = self._child.ask(message.to_json(), deadline_s=deadline_s)
        except ChildDiedError as error:
            self.was_killed = error.was_killed
            raise
        finally:
            self.busy_s += time.monotonic() - began_s
        try:
            return answer.from_json(text)
        except ValidationError as error:
            self.kill()
            raise ChildRaisedError(type(error).__name__, str(error)) from error


def attempt(stage: Stage, act: Callable[[], Result]) -> Result | Failed | TimedOut:
    """Return what an act returns, or how the candidate failed in it."""
    try:
        return act()
    except ChildTimedOutError as error:
        return TimedOut(stage=stage, deadline_s=error.deadline_s)
    except ChildError as error:
        return Failed(stage=stage, log=str(error))
