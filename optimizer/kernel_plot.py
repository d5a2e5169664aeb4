"""The pictures in a kernel's folder: its times beside every peer's, and all its samples."""

import io
from typing import TYPE_CHECKING

from knowledge.evidence import Evidence, WorkloadEvidence

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes

_WIDTH_INCHES = 7.0
_ROW_INCHES = 0.22
_CURVE_INCHES = 1.8
_MOST_WORKLOADS = 16
"""More would make a picture that nobody looks at, and too large a file."""
_OURS, _PEER = "#1b7f4d", "#9aa4ad"


def latency_svg(evidence: Evidence) -> str:
    """Return an SVG with a bar for the kernel and for each peer, by workload.

    The same evidence gives the same bytes. Of many workloads the first are drawn.
    """
    workloads = evidence.workloads[:_MOST_WORKLOADS]
    rows = [len(workload.peers) + 1 for workload in workloads]
    height = sum(rows) * _ROW_INCHES + len(rows) * 0.6

    def draw(axis: "Axes", place: int) -> None:
        _draw(axis, evidence, workloads[place])

    return _svg(draw, rows, height=height)


def distribution_svg(evidence: Evidence) -> str:
    """Return an SVG with the distribution of all samples, the kernel's and the baseline's.

    Each curve tells which share of the samples took no longer than so many milliseconds.
    """
    workloads = [w for w in evidence.workloads if w.quantiles_ms][:_MOST_WORKLOADS]

    def draw(axis: "Axes", place: int) -> None:
        _draw_distribution(axis, evidence, workloads[place])

    return _svg(draw, [1] * len(workloads), height=_CURVE_INCHES * len(workloads))


def _svg(draw: "Callable[[Axes, int], None]", rows: list[int], *, height: float) -> str:
    # matplotlib takes a second to import, and only those who write a folder need it.
    import matplotlib as mpl  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    with mpl.rc_context({"svg.hashsalt": "kernelevolve", "svg.fonttype": "none"}):
        figure = Figure(figsize=(_WIDTH_INCHES, height), layout="constrained")
        axes = figure.subplots(len(rows), 1, squeeze=False, height_ratios=rows)
        for place, axis in enumerate(axes[:, 0]):
            draw(axis, place)
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _draw(axis: "Axes", evidence: Evidence, workload: WorkloadEvidence) -> None:
    handed = workload.served_by in {peer.name for peer in workload.peers}
    ours = "handed to a peer" if handed else "this kernel"
    bars = [(ours, getattr(workload, evidence.figure), _OURS)]
    peers = sorted(workload.peers, key=lambda peer: float(getattr(peer, evidence.figure)))
    bars += [(peer.name, getattr(peer, evidence.figure), _PEER) for peer in peers]
    names, times_ms, colours = zip(*reversed(bars), strict=True)
    axis.barh(names, times_ms, color=colours)
    axis.set_title(workload.workload, fontsize=8, loc="left")
    axis.set_xlabel(f"{evidence.figure.removesuffix('_ms')} time, ms", fontsize=7)
    axis.tick_params(labelsize=7)


def _draw_distribution(axis: "Axes", evidence: Evidence, workload: WorkloadEvidence) -> None:
    handed = workload.served_by in {peer.name for peer in workload.peers}
    curves = [(workload.best_peer, workload.baseline_quantiles_ms, _PEER)]
    if not handed:
        curves.append(("this kernel", workload.quantiles_ms, _OURS))
    for name, quantiles_ms, colour in curves:
        shares = [100 * i / (len(quantiles_ms) - 1) for i in range(len(quantiles_ms))]
        axis.plot(quantiles_ms, shares, color=colour, label=name)
    axis.set_xscale("log")
    axis.set_title(workload.workload, fontsize=8, loc="left")
    axis.set_xlabel(f"{evidence.figure.removesuffix('_ms')} time of a sample, ms", fontsize=7)
    axis.set_ylabel("% of samples", fontsize=7)
    axis.tick_params(labelsize=7, which="both")
    axis.legend(fontsize=7)
