"""The picture in a kernel's folder: its times beside every peer's."""

import io
from typing import TYPE_CHECKING

from knowledge.evidence import Evidence, WorkloadEvidence

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH_INCHES = 7.0
_ROW_INCHES = 0.22
_OURS, _PEER = "#1b7f4d", "#9aa4ad"


def latency_svg(evidence: Evidence) -> str:
    """Return an SVG with a bar for the kernel and for each peer, by workload.

    The same evidence gives the same bytes.
    """
    # matplotlib takes a second to import, and only those who write a folder need it.
    import matplotlib as mpl  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    rows = [len(workload.peers) + 1 for workload in evidence.workloads]
    with mpl.rc_context({"svg.hashsalt": "kernelevolve", "svg.fonttype": "none"}):
        height = sum(rows) * _ROW_INCHES + len(rows) * 0.6
        figure = Figure(figsize=(_WIDTH_INCHES, height), layout="constrained")
        axes = figure.subplots(len(rows), 1, squeeze=False, height_ratios=rows)
        for axis, workload in zip(axes[:, 0], evidence.workloads, strict=True):
            _draw(axis, evidence, workload)
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
