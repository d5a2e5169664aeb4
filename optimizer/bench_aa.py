"""The A/A bench: the judge's own statistics and processes, where the truth is known.

All pairs are started once and kept alive; each comparison takes fresh samples from some of them, by
the same turns as a confirming run's, and is judged by the same functions. What is left out of it is
what needs no measuring: oracle and peers, and the A/A run beside a confirmation, which can only
take wins away.
"""

import random
import secrets
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from knowledge.evidence import Evidence, NullRun
from knowledge.verdict import judge
from optimizer.aa_stand import PEER, Stand
from optimizer.aa_table import NO_GAIN, POWER, AaRow, AaTable, find_failures, summarise, table
from optimizer.bench import replace_file
from optimizer.evaluate import summary
from optimizer.evaluate.faults import Clocks, find_faults
from optimizer.evaluate.workbench import JUDGE_VERSION
from optimizer.events import Tell
from optimizer.job import FIRST_ALPHA, AaRequest, AaResult, PhaseEvent
from optimizer.store.engine import file_lock

_WRITE_EVERY = 100
Task = tuple[float, int]
"""A true gain and the number of a comparison."""


def bench_aa(request: AaRequest, *, tell: Tell, stopped: Callable[[], bool]) -> AaResult:
    """Return where the table is; comparisons that are in it already are not made again.

    Raises:
        RunnerError: The device is not here, or a process fails.
    """
    file = request.folder / "aa.json"
    todo = _todo(request, _known(file))
    left = _compare(request, todo, tell=tell, stopped=stopped) if todo else 0
    found = summarise(_known(file))
    return AaResult(file=file, summary=found, failures=tuple(find_failures(found)), unfinished=left)


def _compare(
    request: AaRequest, todo: Sequence[Task], *, tell: Tell, stopped: Callable[[], bool]
) -> int:
    """Make comparisons and write them down; return how many are left after a stop."""
    rng = random.Random(secrets.randbits(64))  # noqa: S311 - chooses pairs and their order
    with Stand(request, tell, rng) as stand:
        for start in range(0, len(todo), _WRITE_EVERY):
            detail = f"{start} of {len(todo)}"
            tell(PhaseEvent(phase="compare", detail=detail))
            rows = []
            for gain, number in todo[start : start + _WRITE_EVERY]:
                if stopped():
                    break
                rows.append(_make_row(request, stand, rng, gain=gain, number=number))
            _add(request, rows, stand)
            if stopped():
                return len(todo) - start - len(rows)
    return 0


def _make_row(
    request: AaRequest, stand: Stand, rng: random.Random, *, gain: float, number: int
) -> AaRow:
    """Return the row of one comparison, of fresh samples."""
    chosen = rng.sample(range(request.pairs), request.per_comparison)
    # A pair's processes are alike: a coin says which of them plays the candidate.
    swapped = [rng.random() < 1 / 2 for _ in chosen]
    workload = stand.operator.spec.workloads[0].name
    pairs = [
        {workload: stand.sample(pair, gain, swapped=swap)}
        for pair, swap in zip(chosen, swapped, strict=True)
    ]
    evidence = make_evidence(request, stand, pairs, goal=1.0 if gain == 1 else NO_GAIN)
    verdict = judge(evidence)
    readings = [r for pair in pairs for side in pair[workload].values() for r in side]
    return AaRow(
        number=number,
        gain=gain,
        minimum_gain=evidence.minimum_gain,
        run=stand.run,
        pairs=tuple(-pair - 1 if s else pair + 1 for pair, s in zip(chosen, swapped, strict=True)),
        ratios=tuple(round(ratio, 5) for ratio in evidence.workloads[0].pair_ratios),
        ratio=evidence.ratio,
        verdict=verdict.kind,
        faulty=bool(evidence.faults),
        device_s=round(sum(reading.device_ms for reading in readings) / 1e3, 4),
        commit=request.commit,
    )


def make_evidence(
    request: AaRequest, stand: Stand, pairs: Sequence[summary.Pair], *, goal: float
) -> Evidence:
    """Return evidence as a confirming run makes it of its pairs."""
    workload = stand.operator.spec.workloads[0]
    measured = summary.Measured(
        workload=workload.name,
        sizes=workload.sizes,
        dtypes={},
        weight=1.0,
        roofline_ms=None,
        impossible_below_ms=0.0,
        handed_back=False,
        error=0.0,
        reference_error=0.0,
    )
    name = stand.candidate.id
    row = summary.describe_workload(
        pairs, measured, served_by=name, figure="device_ms", workloads=1
    )
    host_clock = stand.bench.place.device == "cpu"
    return Evidence(
        candidate=name,
        operator=stand.operator.name,
        operator_digest=stand.operator.digest,
        hardware=request.hardware.name,
        environment=stand.bench.environment,
        judge_version=JUDGE_VERSION,
        figure="device_ms",
        minimum_gain=goal,
        alpha=FIRST_ALPHA,
        workloads=(row,),
        ratio=summary.describe_ratio([row], alpha=FIRST_ALPHA),
        versus_eager=1.0,
        null=NullRun(pair_ratios=(1.0,), ratio=summary.CERTAIN),
        source_sha256="",
        checked_sizes=0,
        seed=0,
        faults=tuple(find_faults(pairs, measured, PEER, clocks=Clocks(host=host_clock))),
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _todo(request: AaRequest, rows: Sequence[AaRow]) -> list[Task]:
    """Return this shard's comparisons that are not there yet."""
    part, parts = request.shard
    wanted = [(1.0, number) for number in range(request.comparisons)]
    wanted += [(gain, n) for gain in (*POWER, NO_GAIN) for n in range(request.trials)]
    there = {(row.gain, row.number) for row in rows}
    return [task for task in wanted[part - 1 :: parts] if task not in there]


def _known(file: Path) -> tuple[AaRow, ...]:
    try:
        return AaTable.from_json(file.read_text(encoding="utf-8")).rows
    except (FileNotFoundError, ValidationError):
        return ()


def _add(request: AaRequest, rows: Sequence[AaRow], stand: Stand) -> None:
    """Put rows into the table; another shard may be doing the same."""
    file = request.folder / "aa.json"
    request.folder.mkdir(parents=True, exist_ok=True)
    with file_lock(request.state_folder / "aa.lock"):
        known = {(row.gain, row.number): row for row in (*_known(file), *rows)}
        both = tuple(known[key] for key in sorted(known))
        written = AaTable(
            command=request.command,
            environment=stand.bench.environment,
            alpha=FIRST_ALPHA,
            rounds=request.rounds,
            trial_rounds=request.trial_rounds,
            per_comparison=request.per_comparison,
            summary=summarise(both),
            rows=both,
        )
        replace_file(file, _lines(written))
        replace_file(file.with_suffix(".md"), table(written))


def _lines(written: AaTable) -> str:
    """Return the table as JSON with a line for each row, so that thousands of them can be read."""
    head = written.model_copy(update={"rows": ()}).to_json(indent=2)
    body = ",\n".join(f"    {row.to_json()}" for row in written.rows)
    return head.removesuffix('"rows": []\n}') + f'"rows": [\n{body}\n  ]\n}}\n'
