"""The throughput bench: one source's tunables are swept through the judge, as a search would."""

import os
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice

from knowledge.evaluation import Evaluation
from knowledge.outcome import Passed
from optimizer.bench import replace_file
from optimizer.evaluate.evaluator import Evaluator
from optimizer.evaluate.ledger import Ledger
from optimizer.events import Tell, explain
from optimizer.job import PhaseEvent, ThroughputRequest, ThroughputResult
from optimizer.throughput_kernel import operator_of, sweep
from optimizer.throughput_table import (
    ThroughputRow,
    ThroughputTable,
    find_failures,
    summarise,
    to_markdown,
)

_CPU_BATCH = 10
_DEVICE_BATCH = 16


def bench_throughput(
    request: ThroughputRequest, *, tell: Tell, stopped: Callable[[], bool]
) -> ThroughputResult:
    """Return where the table is.

    Raises:
        RunnerError: The device is not here, or a process fails.
    """
    began_s = time.monotonic()
    operator = operator_of(request.hardware.target)
    with Evaluator(operator, request.hardware, folder=request.state_folder) as judge:
        tell(PhaseEvent(phase="baseline", detail=operator.name))
        judge.evaluate(())
        judge.ledger = ledger = Ledger()
        setup_s = time.monotonic() - began_s
        tell(PhaseEvent(phase="search", detail="sweep", seconds_left=request.seconds))
        trials = _Sweep(request, judge)
        trials.run(stopped)
        rows, environment = trials.rows, judge.environment
    table = ThroughputTable(
        command=request.command,
        environment=environment,
        target=request.hardware.target,
        summary=summarise(
            rows,
            spent={str(phase): spent_s for phase, spent_s in ledger.seconds.items()},
            leased=(ledger.leased_s, ledger.leased_idle_s),
            setup_s=setup_s,
            cores=cores(),
        ),
        rows=tuple(rows),
    )
    request.folder.mkdir(parents=True, exist_ok=True)
    file = request.folder / "throughput.json"
    replace_file(file, table.to_json(indent=2) + "\n")
    replace_file(file.with_suffix(".md"), to_markdown(table))
    return ThroughputResult(file=file, summary=table.summary, failures=tuple(find_failures(table)))


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))


@dataclass
class _Sweep:
    """The trials so far."""

    request: ThroughputRequest
    judge: Evaluator
    rows: list[ThroughputRow] = field(default_factory=list)
    _began_s: float = field(default_factory=time.monotonic)
    _batch: int = 0
    _chosen: dict[str, dict[str, int]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Return how many candidates are asked for together."""
        if self.request.batch is not None:
            return self.request.batch
        # C++ candidates are shared out among the cores, a translation unit to each.
        return _CPU_BATCH * cores() if self.request.hardware.target == "cpu" else _DEVICE_BATCH

    def run(self, stopped: Callable[[], bool]) -> None:
        """Try one batch after the other; the last one begins before the time is up."""
        candidates = sweep(self.request.hardware.target, salt=uuid.uuid4().hex)
        batch = list(islice(candidates, self.size))
        while batch and self._now_s() < self.request.seconds and not stopped():
            ahead = list(islice(candidates, self.size))
            self._batch += 1
            self._chosen = {candidate.id: candidate.chosen for candidate in batch}
            self.judge.evaluate(batch, ahead=ahead, on_done=self._note)
            batch = ahead

    def _note(self, evaluation: Evaluation) -> None:
        outcome = evaluation.outcome
        times = outcome.times if isinstance(outcome, Passed) else ()
        row = ThroughputRow(
            number=len(self.rows) + 1,
            batch=self._batch,
            chosen=self._chosen[evaluation.candidate],
            outcome=outcome.kind,
            detail=explain(outcome),
            device_ms=times[0].device_ms if times else None,
            ended_at_s=round(self._now_s(), 3),
            commit=self.request.commit,
        )
        self.rows.append(row)

    def _now_s(self) -> float:
        return time.monotonic() - self._began_s
