"""The tables of a pull request's body, made from evidence (pure)."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from daemon.markdown import code, plain, table
from knowledge.evidence import Evidence, Figure, PeerRow, WorkloadEvidence
from optimizer.profile_rows import not_measured, profile_tables

if TYPE_CHECKING:
    from daemon.pulls.pull_request import Incumbent

_NEW = "**new**"
_FIRST_CALL = (
    "First calls are those of fresh processes, with what is compiled there; the kernel itself was "
    "built before, and caches on disk are as earlier processes left them."
)
_BREAK = " <br>"
"""The space is for those who show no HTML."""


def by_workload(
    evidence: Evidence, *, incumbent: "Incumbent | None" = None, rows: int | None = None
) -> str:
    """Return the table of ratios by the goal's figure, regressions first."""
    figure = evidence.figure
    names = {w.workload for w in evidence.workloads}
    times = {n: t for n, t in incumbent.times.items() if n in names} if incumbent else {}
    bounds = any(w.share_of_roofline is not None for w in evidence.workloads)
    header = ["workload", "best peer", "its ms", *(["incumbent ms"] if times else []), "new ms"]
    numbers = {*range(2, len(header))}
    header += ["ratio, interval", *(["of roofline"] if bounds else [])]
    shown = _shown(evidence, rows)
    lines = []
    for w in shown:
        old = times.get(w.workload)
        line = [_workload(w), _peer(w.best_peer), _ms(_best(w), figure)]
        line += [_ms(old, figure)] if times else []
        line += [_served(w, figure), _ratio(w), *([_share(w)] if bounds else [])]
        lines.append(line)
    if bounds:
        numbers.add(len(header) - 1)
    return table(header, lines, numbers=numbers) + _rest(evidence, shown)


def costs(evidence: Evidence, *, rows: int | None = None) -> str:
    """Return the table of what a call costs, the kernel's line above the best peer's."""
    shown = _shown(evidence, rows)
    both: list[WorkloadEvidence | PeerRow] = [*shown]
    both += [peer for w in shown if (peer := _best(w))]
    weighed = any(side.peak_bytes is not None for side in both)
    begun = any(side.first_call_ms is not None for side in both)
    header = ["workload", "side", "device ms", "call ms", "p10 to p90"]
    header += [*(["first call"] if begun else []), *(["peak memory"] if weighed else [])]
    lines = []
    for w in shown:
        peer = _best(w)
        quantiles = w.baseline_quantiles_ms
        theirs = (quantiles[2], quantiles[-3]) if len(quantiles) == 21 else None  # noqa: PLR2004 - steps of 5 %
        sides: list[tuple[str, WorkloadEvidence | PeerRow, tuple[float, float] | None]] = []
        if not _handed_back(w):
            sides.append((_NEW, w, w.spread))
        if peer is not None:
            sides.append((_peer(peer.name), peer, theirs))
        for place, (name, side, spread) in enumerate(sides):
            line = [_workload(w) if place == 0 else "", name]
            line += [f"{side.device_ms:.4g}", f"{side.call_ms:.4g}", _spread(spread)]
            line += [_seconds(side.first_call_ms)] if begun else []
            line += [_bytes(side.peak_bytes)] if weighed else []
            lines.append(line)
    first = f"\n\n{_FIRST_CALL}" if begun else ""
    return table(header, lines, numbers={*range(2, len(header))}) + _rest(evidence, shown) + first


def errors(evidence: Evidence, *, rows: int | None = None) -> str:
    """Return the table of the worst errors, the kernel's and the reference's."""
    shown = sorted(evidence.workloads, key=lambda w: (-w.error, w.workload))[:rows]
    lines = [[_workload(w), _error(w.error), _error(w.reference_error)] for w in shown]
    left = len(evidence.workloads) - len(shown)
    more = f"\n\n{left} more are in `evidence.json`, all with smaller errors." if left else ""
    return table(("workload", "new", "PyTorch reference"), lines, numbers={1, 2}) + more


def profile(
    evidence: Evidence, *, bandwidth_gb_s: float | None = None, rows: int | None = None
) -> str:
    """Return the profile's tables, this kernel's beside the best peer's; empty without one."""
    parts = []
    for told in profile_tables(evidence, bandwidth_gb_s=bandwidth_gb_s):
        places = set(range(len(told.heads))) - told.names
        numbers = {place for place in places if _are_numbers(told.cells, place)}
        lines = [
            [code(cell) if place in told.names else cell for place, cell in enumerate(cells)]
            for cells in told.cells[:rows]
        ]
        left = len(told.cells) - len(lines)
        more = f"\n\n{left} more are in `evidence.json`." if left else ""
        parts.append(f"{told.title}:\n\n{table(told.heads, lines, numbers=numbers)}{more}")
    if lacking := not_measured(evidence):
        parts.append("Not in this profile: " + plain("; ".join(lacking)))
    return "\n\n".join(parts)


def find_regressions(evidence: Evidence) -> tuple[str, ...]:
    """Return the workloads that the kernel serves and on which it is slower, the worst first."""
    shown = _shown(evidence, None)
    return tuple(w.workload for w in shown if w.ratio.estimate < 1 and not _handed_back(w))


def find_handed_back(evidence: Evidence) -> tuple[str, ...]:
    """Return the workloads that the dispatch table leaves to peers."""
    return tuple(w.workload for w in evidence.workloads if _handed_back(w))


def versus_incumbent(evidence: Evidence, incumbent: "Incumbent") -> float | None:
    """Return the weighted mean of the incumbent's time over the kernel's, where it serves.

    None where the two have no workload in common.
    """
    logs, weights = 0.0, 0.0
    for w in evidence.workloads:
        old = incumbent.times.get(w.workload)
        if old is not None and not _handed_back(w):
            ratio = getattr(old, evidence.figure) / getattr(w, evidence.figure)
            logs += w.weight * math.log(ratio)
            weights += w.weight
    return math.exp(logs / weights) if weights else None


def _shown(evidence: Evidence, rows: int | None) -> Sequence[WorkloadEvidence]:
    return sorted(evidence.workloads, key=lambda w: w.ratio.estimate)[:rows]


def _rest(evidence: Evidence, shown: Sequence[WorkloadEvidence]) -> str:
    left = len(evidence.workloads) - len(shown)
    return f"\n\n{left} more are in `evidence.json`, all with better ratios." if left else ""


def _workload(w: WorkloadEvidence) -> str:
    # Narrow columns are read at a glance: what else is told stands below the name.
    dtypes = plain(", ".join(dict.fromkeys(w.dtypes.values())))
    return f"{code(w.workload)}{_BREAK}{dtypes}" if dtypes else code(w.workload)


def _peer(name: str) -> str:
    form, _, mode = name.partition("/")
    return f"{code(form)}{_BREAK}{plain(mode)}" if mode else code(form)


def _best(w: WorkloadEvidence) -> PeerRow | None:
    return next((peer for peer in w.peers if peer.name == w.best_peer), None)


def _handed_back(w: WorkloadEvidence) -> bool:
    return w.served_by in {peer.name for peer in w.peers}


def _served(w: WorkloadEvidence, figure: Figure) -> str:
    return "left to the peer" if _handed_back(w) else _ms(w, figure)


def _ratio(w: WorkloadEvidence) -> str:
    if _handed_back(w):
        return "1"
    slower = "**slower** " if w.ratio.estimate < 1 else ""
    estimate = f"{slower}{w.ratio.estimate:.2f}x"
    if not w.ratio.bounded:
        return f"{estimate}{_BREAK}no interval"
    return f"{estimate}{_BREAK}{w.ratio.low:.2f} to {w.ratio.high:.2f}"


def _share(w: WorkloadEvidence) -> str:
    return "" if w.share_of_roofline is None else _percent(w.share_of_roofline)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.2g} %"  # noqa: PLR2004 - two digits


def _ms(side: object, figure: Figure) -> str:
    return "" if side is None else f"{getattr(side, figure):.4g}"


def _spread(ends: tuple[float, float] | None) -> str:
    return "" if ends is None else f"{ends[0]:.3g} to {ends[1]:.3g}"


def _seconds(ms: float | None) -> str:
    if ms is None:
        return ""
    return f"{ms / 1e3:.3g} s" if ms >= 1e3 else f"{ms:.3g} ms"  # noqa: PLR2004 - a second


def _bytes(count: int | None) -> str:
    return "" if count is None else f"{count / 1e6:.4g} MB"


def _error(relative: float) -> str:
    return "exact" if relative == 0 else f"{relative:.2e}"


def _are_numbers(cells: Sequence[Sequence[str]], place: int) -> bool:
    return all(row[place] == "-" or row[place][:1].isdigit() for row in cells)
