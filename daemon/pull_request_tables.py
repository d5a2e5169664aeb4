"""The tables of a pull request's body, made from evidence (pure)."""

from collections.abc import Sequence

from daemon.markdown import code, plain, table
from knowledge.evidence import Evidence, Figure, PeerRow, WorkloadEvidence
from optimizer.kernel_page import ratio_text
from optimizer.profile_rows import not_measured, profile_tables

INCUMBENT = "incumbent"
"""The name, or its first part, under which the published kernel runs among the peers."""


def by_workload(evidence: Evidence, *, rows: int | None) -> str:
    """Return the table of ratios by the goal's figure, regressions first."""
    figure = evidence.figure
    shown = _shown(evidence, rows)
    incumbents = any(_incumbent(w) for w in evidence.workloads)
    header = ["workload", "best peer", "peer ms"]
    header += ["incumbent ms"] if incumbents else []
    bounds = any(w.share_of_roofline is not None for w in evidence.workloads)
    header += ["new ms", "p10 to p90", "ratio", *(["of roofline"] if bounds else [])]
    lines = []
    for w in shown:
        old = _incumbent(w)
        share = w.share_of_roofline
        slower = "**slower** " if w.ratio.estimate < 1 else ""
        line = [_workload(w), code(w.best_peer), _ms(_best(w), figure)]
        line += [_ms(old, figure)] if incumbents else []
        line += [
            f"{getattr(w, figure):.4g}{_handed_back(w)}",
            f"{w.spread[0]:.4g} to {w.spread[1]:.4g}",
            f"{slower}{ratio_text(w.ratio)}",
        ]
        line += ["" if share is None else f"{100 * share:.0f} %"] if bounds else []
        lines.append(line)
    return table(header, lines) + _rest(evidence, shown)


def times(evidence: Evidence, *, rows: int | None) -> str:
    """Return the table of both figures, ours and the best peer's."""
    shown = _shown(evidence, rows)
    lines = []
    for w in shown:
        peer = _best(w)
        lines.append(
            [
                _workload(w),
                f"{w.device_ms:.4g}",
                _ms(peer, "device_ms"),
                f"{w.call_ms:.4g}",
                _ms(peer, "call_ms"),
            ]
        )
    header = ("workload", "device ms", "best peer's", "call ms", "best peer's")
    return table(header, lines) + _rest(evidence, shown)


def errors(evidence: Evidence, *, rows: int | None) -> str:
    """Return the table of the worst errors, ours and the reference's."""
    shown = _shown(evidence, rows)
    lines = [[_workload(w), f"{w.error:.2e}", f"{w.reference_error:.2e}"] for w in shown]
    return table(("workload", "new", "reference"), lines) + _rest(evidence, shown)


def profile(evidence: Evidence, *, rows: int | None) -> str:
    """Return the profile's tables, this kernel's beside the best peer's; empty without one."""
    parts = []
    for told in profile_tables(evidence):
        lines = [
            [code(cell) if place in told.names else cell for place, cell in enumerate(cells)]
            for cells in told.cells[:rows]
        ]
        parts.append(f"{told.title}:\n\n{table(told.heads, lines)}")
    if lacking := not_measured(evidence):
        parts.append("Not in this profile: " + plain("; ".join(lacking)))
    return "\n\n".join(parts)


def _shown(evidence: Evidence, rows: int | None) -> Sequence[WorkloadEvidence]:
    return sorted(evidence.workloads, key=lambda w: w.ratio.estimate)[:rows]


def _rest(evidence: Evidence, shown: Sequence[WorkloadEvidence]) -> str:
    left = len(evidence.workloads) - len(shown)
    return f"\n\n{left} more are in `evidence.json`, all with better ratios." if left else ""


def _workload(w: WorkloadEvidence) -> str:
    return code(" ".join((w.workload, *w.dtypes.values())))


def _best(w: WorkloadEvidence) -> PeerRow | None:
    return next((peer for peer in w.peers if peer.name == w.best_peer), None)


def _incumbent(w: WorkloadEvidence) -> PeerRow | None:
    return next((peer for peer in w.peers if peer.name.split("/")[0] == INCUMBENT), None)


def _handed_back(w: WorkloadEvidence) -> str:
    return f" (by {code(w.served_by)})" if w.served_by in {p.name for p in w.peers} else ""


def _ms(peer: PeerRow | None, figure: Figure) -> str:
    return "" if peer is None else f"{getattr(peer, figure):.4g}"
