"""Which peers run on which workload, and their times for ranking; measured once, then kept."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from knowledge.outcome import Incorrect, PeerTime
from operator_registry.hardware import HardwareSpec
from operator_registry.record import Record
from operator_registry.registry import Operator
from optimizer.evaluate import protocol as p
from optimizer.evaluate.cases import CheckedCase
from optimizer.evaluate.memory import scrub
from optimizer.evaluate.outputs import judge_outputs
from optimizer.evaluate.peers import is_tuned, uncaptured
from optimizer.evaluate.process import PEERS, Place, Process
from optimizer.evaluate.sandbox import ChildError, ChildRaisedError
from optimizer.evaluate.shelf import take_files
from optimizer.evaluate.statistics import is_calm, quick, undisturbed

COMPILE_S = 180.0
"""Seconds that compiling a peer may take on one workload."""
_BUDGET_S = 0.3


class AbsentPeer(Record):
    """A peer that can't be compared with on a workload, and why."""

    workload: str
    peer: str
    reason: str


class PeerTable(Record):
    """The peers of one operator in one environment."""

    times: dict[str, tuple[PeerTime, ...]]
    """By workload."""
    absent: tuple[AbsentPeer, ...] = ()
    calm: bool = True
    """False where other processes disturbed a measurement: good for this run, not to be kept."""

    def names(self, workload: str) -> tuple[str, ...]:
        """Return the peers that run on a workload."""
        return tuple(time.name for time in self.times[workload])


def find_table(path: Path) -> PeerTable | None:
    """Return the table that was kept; None where there is none that can be read."""
    try:
        return PeerTable.from_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


def keep_table(path: Path, table: PeerTable) -> None:
    """Keep a table; whoever reads sees all of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_text(table.to_json(), encoding="utf-8")
    fresh.replace(path)


@dataclass
class PeerProcess:
    """The peers' side: a process that is replaced when a peer brings it down."""

    operator: Operator
    hardware: HardwareSpec
    place: Place
    first_ms: dict[tuple[str, str], float] = field(default_factory=dict)
    """By case and peer, what the first call in a process took that had not called it before."""
    _process: Process | None = None
    _ready: bool = False

    def start(self) -> None:
        """Start the process without waiting until it is ready."""
        self._ready = False
        self._process = Process(self.place, function=PEERS)

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def open(self) -> Process:
        """Return the process, a new one where the last has gone.

        Raises:
            RunnerError: No process can be started.
            ChildError: The operator's code can't be imported.
        """
        if self._process is None or not self._process.alive:
            self.close()
            self.start()
        process = self._process
        assert process is not None  # noqa: S101 - started above
        if not self._ready:
            process.greet()
            load = p.LoadPeers(operator=self.operator, hardware=self.hardware)
            process.tell(load, p.Done, deadline_s=60.0)
            self._ready = True
        return process

    def forget(self, case: p.Case) -> None:
        """Let the process forget a case; what was compiled for it stays."""
        if self._process is not None and self._process.alive:
            try:
                self._process.drop(case)
            except ChildError:
                self.close()

    @property
    def was_killed(self) -> bool:
        """Return whether somebody else ended the process: no fault of the peer, as a rule."""
        return self._process is not None and self._process.was_killed

    def prepare(self, case: p.Case, peer: str, *, sets: int | None = None) -> str | None:
        """Compile a peer and warm it up on a case; return why it can't be, None where it is.

        Args:
            case: The case.
            peer: The peer's name.
            sets: On the first so many of its sets; on all if None.
        """
        try:
            process = self.open()
            process.take(case)
            message = p.Prepare(case=case.key, subject=peer, sets=sets)
            answer = process.tell(message, p.Prepared, deadline_s=COMPILE_S)
        except ChildError as error:
            return reason_of(error)
        if answer.first_ms is not None:
            self.first_ms.setdefault((case.key, peer), answer.first_ms)
        return answer.absent


def measure_peers(
    sides: Sequence[PeerProcess], cases: Sequence[CheckedCase], names: Sequence[str]
) -> PeerTable:
    """Return which of the peers run and agree with the reference, and how long they take.

    They are measured one after another. Where there are several processes, these compile side by
    side before, but for what is tuned by times that the compiler takes itself.
    """
    shared = _share_out(sides, cases, names)
    # A process that is replaced dies with the thread that started it: these live to the end.
    with ThreadPoolExecutor(len(sides)) as pool:
        if len(sides) > 1:
            _compile_ahead(pool, sides, shared)
        return _measure_all(shared, [case.workload.name for case in cases])


def _measure_all(
    shared: Sequence[tuple[PeerProcess, CheckedCase, str]], workloads: Sequence[str]
) -> PeerTable:
    times: dict[str, list[PeerTime]] = {name: [] for name in workloads}
    absent = []
    calm = True
    for side, case, peer in shared:
        found = _measure(side, case, peer)
        if isinstance(found, str) and side.was_killed:
            found = _measure(side, case, peer)
            calm = calm and not isinstance(found, str)
        workload = case.workload.name
        if isinstance(found, str):
            absent.append(AbsentPeer(workload=workload, peer=peer, reason=found))
        else:
            times[workload].append(_time_of(peer, found))
            calm = calm and is_calm(found)
    by_workload = {workload: tuple(found) for workload, found in times.items()}
    return PeerTable(times=by_workload, absent=tuple(absent), calm=calm)


def _share_out(
    sides: Sequence[PeerProcess], cases: Sequence[CheckedCase], names: Sequence[str]
) -> list[tuple[PeerProcess, CheckedCase, str]]:
    """Return in which process each peer is measured: what compiles to one code is in one."""
    sets = {(case.case.key, uncaptured(name)): None for case in cases for name in names}
    turns = {key: sides[place % len(sides)] for place, key in enumerate(sets)}
    return [(turns[case.case.key, uncaptured(n)], case, n) for case in cases for n in names]


def _compile_ahead(
    pool: ThreadPoolExecutor,
    sides: Sequence[PeerProcess],
    shared: Sequence[tuple[PeerProcess, CheckedCase, str]],
) -> None:
    def compile_all(mine: PeerProcess) -> None:
        for side, case, peer in shared:
            if side is mine and not is_tuned(peer):
                side.prepare(case.case, peer)  # who can't be is found out once more
                side.forget(case.case)  # the next one finds its inputs as they were drawn

    list(pool.map(compile_all, sides))


def tell_absent(absent: Sequence[AbsentPeer]) -> Iterator[str]:
    """Yield a line for each peer that is absent, with all its workloads."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for one in absent:
        grouped.setdefault((one.peer, one.reason), []).append(one.workload)
    for (peer, reason), workloads in grouped.items():
        yield f"{peer} on {', '.join(workloads)}: {reason}"


def _measure(side: PeerProcess, case: CheckedCase, peer: str) -> Sequence[p.Sample] | str:
    """Return samples of a peer, or why it is absent."""
    reason = side.prepare(case.case, peer)
    if reason is not None:
        return reason
    try:
        process = side.open()
        fault = _find_disagreement(process, side.operator, case, peer)
        if fault is not None:
            return fault
        message = p.Measure(case=case.case.key, subject=peer, budget_s=_BUDGET_S, least=5, most=15)
        return process.tell(message, p.Samples, deadline_s=COMPILE_S).samples
    except ChildError as error:
        return reason_of(error)


def _time_of(peer: str, samples: Sequence[p.Sample]) -> PeerTime:
    best = undisturbed(samples)
    return PeerTime(
        name=peer,
        device_ms=quick([sample.device_ms for sample in best]),
        call_ms=quick([sample.call_ms for sample in best]),
    )


def _find_disagreement(
    process: Process, operator: Operator, case: CheckedCase, peer: str
) -> str | None:
    """Return in what a peer is no equivalent of the reference, None where it is one."""
    left = {}
    for number in range(len(case.case.sets)):
        message = p.Run(
            case=case.case.key, set=number, subject=peer, outputs=case.outputs[number], poison=0
        )
        scrub(case.outputs[number], 0xFF)
        ran = process.tell(message, p.Ran, deadline_s=COMPILE_S)
        if ran.changed:
            return "writes into its inputs"
        left[number] = take_files(case.outputs[number], ran.outputs)
    found = judge_outputs(operator, case, left)
    return f"disagrees with the reference: {found.reason}" if isinstance(found, Incorrect) else None


def reason_of(error: ChildError) -> str:
    """Return an error's last line: the exception itself, without its traceback."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    last = lines[-1].strip() if lines else type(error).__name__
    return f"fails: {last[:300]}" if isinstance(error, ChildRaisedError) else last[:300]
