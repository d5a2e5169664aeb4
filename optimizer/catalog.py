"""``catalog.json`` and its Markdown: what a search made of each operator, losers shown (pure)."""

import math
from collections.abc import Sequence

from pydantic import Field

from knowledge.evaluation import Environment
from knowledge.evidence import Evidence, Figure, Interval, WorkloadEvidence
from operator_registry.record import Record
from operator_registry.registry import Operator
from optimizer.job import OptimizeResult
from optimizer.kernel_page import ratio_text


class WorkloadRow(Record):
    """An operator at one public workload."""

    workload: str
    weight: float
    sizes: dict[str, int]
    dtypes: dict[str, str]
    served_by: str
    best_peer: str
    eager_ms: float | None
    best_peer_ms: float
    ours_ms: float
    """Of what serves: the kernel, or the peer to which the workload is handed back."""
    ratio: Interval


class OperatorRow(Record):
    """An operator's row: the verdict, and what it stands on."""

    operator: str
    operator_digest: str
    verdict: str
    reason: str = ""
    correct: bool
    """Whether a candidate of our own passed every check."""
    figure: Figure | None = None
    ratio: Interval | None = None
    """Best peer's time over ours, weighted geometric mean; absent where nothing was timed."""
    versus_eager: float | None = None
    candidate: str | None = None
    trials: int
    passed: int
    seconds: float
    workloads: tuple[WorkloadRow, ...] = ()
    environment: Environment | None = None
    commit: str


class Summary(Record):
    """The table in four numbers."""

    operators: int
    correct: int
    geomean_vs_eager: float | None
    geomean_vs_best_peer: float | None


class Catalog(Record):
    """``catalog.json``."""

    schema_version: int = Field(default=1, alias="schema")
    command: str
    environment: Environment | None
    summary: Summary
    rows: tuple[OperatorRow, ...]


def make_row(operator: Operator, result: OptimizeResult, *, commit: str) -> OperatorRow:
    """Return the row of a finished job."""
    evidence = result.evidence
    return OperatorRow(
        operator=operator.name,
        operator_digest=operator.digest,
        verdict=result.verdict.kind if result.verdict else "none",
        reason=getattr(result.verdict, "reason", ""),
        correct=result.passed > 0,
        figure=evidence.figure if evidence else None,
        ratio=evidence.ratio if evidence else None,
        versus_eager=evidence.versus_eager if evidence else None,
        candidate=result.candidate.id if result.candidate else None,
        trials=result.trials,
        passed=result.passed,
        seconds=round(result.seconds, 1),
        workloads=tuple(_workload_row(evidence, w) for w in evidence.workloads) if evidence else (),
        environment=evidence.environment if evidence else None,
        commit=commit,
    )


def summarise(rows: Sequence[OperatorRow]) -> Summary:
    """Return the table in four numbers; losers count as they are."""
    timed = [row for row in rows if row.ratio is not None]
    eager = [row.versus_eager for row in timed if row.versus_eager]
    return Summary(
        operators=len(rows),
        correct=sum(row.correct for row in rows),
        geomean_vs_eager=_geomean(eager),
        geomean_vs_best_peer=_geomean([row.ratio.estimate for row in timed if row.ratio]),
    )


def table(catalog: Catalog) -> str:
    """Return the results as Markdown, the losers among them."""
    summary = catalog.summary
    lines = [
        "# The catalogue's operators",
        "",
        f"Written by `{catalog.command}`.",
        "",
        _in_words(summary),
        "",
        "| operator | verdict | against eager | against the best peer | trials | passed |",
        "| --- | --- | ---: | --- | ---: | ---: |",
        *(_operator_line(row) for row in catalog.rows),
        "",
        "| operator | workload | best peer | its ms | eager ms | ours, ms | ratio | served by |",
        "| --- | --- | --- | ---: | ---: | ---: | --- | --- |",
        *(_workload_line(row, w) for row in catalog.rows for w in row.workloads),
    ]
    reasons = [f"- `{row.operator}`: {row.reason}" for row in catalog.rows if row.reason]
    if reasons:
        lines += ["", "Why not better:", "", *reasons]
    return "\n".join(lines) + "\n"


def _workload_row(evidence: Evidence, workload: WorkloadEvidence) -> WorkloadRow:
    times = {p.name: float(getattr(p, evidence.figure)) for p in workload.peers}
    return WorkloadRow(
        workload=workload.workload,
        weight=workload.weight,
        sizes=workload.sizes,
        dtypes=workload.dtypes,
        served_by=workload.served_by if workload.served_by in times else "kernel",
        best_peer=workload.best_peer,
        eager_ms=times.get("reference/eager"),
        best_peer_ms=times[workload.best_peer],
        ours_ms=getattr(workload, evidence.figure),
        ratio=workload.ratio,
    )


def _in_words(summary: Summary) -> str:
    return (
        f"{summary.correct} of {summary.operators} operators have a correct kernel. Geometric mean "
        f"of the speed: {_times(summary.geomean_vs_eager)} of eager's, "
        f"{_times(summary.geomean_vs_best_peer)} of the best peer's."
    )


def _operator_line(row: OperatorRow) -> str:
    peer = ratio_text(row.ratio) if row.ratio else "not timed"
    cells = (row.operator, row.verdict, _times(row.versus_eager), peer, row.trials, row.passed)
    return f"| {' | '.join(map(str, cells))} |"


def _workload_line(row: OperatorRow, workload: WorkloadRow) -> str:
    eager = "-" if workload.eager_ms is None else f"{workload.eager_ms:.4g}"
    cells = (
        row.operator,
        workload.workload,
        f"`{workload.best_peer}`",
        f"{workload.best_peer_ms:.4g}",
        eager,
        f"{workload.ours_ms:.4g}",
        ratio_text(workload.ratio),
        workload.served_by,
    )
    return f"| {' | '.join(cells)} |"


def _times(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}x"


def _geomean(values: Sequence[float]) -> float | None:
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None
