"""Which peers a candidate is measured beside, in the first pair and in those after it."""

from collections.abc import Mapping, Sequence

from knowledge.outcome import PeerTime
from optimizer.evaluate import summary
from optimizer.evaluate.findings import Findings
from optimizer.evaluate.peer_table import PeerTable
from optimizer.evaluate.peers import EAGER


def pick_contenders(findings: Findings, workload: str, ranked: Sequence[PeerTime]) -> list[str]:
    """Return the peers of the first pair, and note those that were far behind in ranking.

    Args:
        findings: Takes the note.
        workload: The workload's name.
        ranked: The peers that could be compared with on it, with their times for ranking.
    """
    times = {time.name: time for time in ranked}
    best = min(getattr(t, findings.figure) for t in times.values())
    device = findings.bench.place.device
    hopeless = summary.HOPELESS if device == "cpu" else summary.DEVICE_HOPELESS
    behind = [
        name
        for name, time in times.items()
        if getattr(time, findings.figure) > hopeless * best and name != EAGER
    ]
    if behind:
        findings.notes.append(
            f"more than {hopeless} times slower than the best peer on {workload} when "
            f"they were ranked, and not measured again: {', '.join(behind)}"
        )
    return [name for name in times if name not in behind]


def let_sit_out(
    findings: Findings, table: PeerTable, peers: Mapping[str, Sequence[str]]
) -> Mapping[str, Sequence[str]]:
    """Return the peers that stay after the first pair, and note the others."""
    first, figure = findings.pairs[findings.earlier_pairs], findings.figure
    device = findings.bench.place.device
    behind = summary.SIT_OUT if device == "cpu" else summary.DEVICE_SIT_OUT
    kept: dict[str, Sequence[str]] = {}
    for workload, names in peers.items():
        ranked = {time.name: getattr(time, figure) for time in table.times[workload]}
        staying = summary.staying(first[workload], ranked, figure, behind=behind)
        stay = {*staying, findings.twins.get(workload)}
        kept[workload] = [name for name in names if name in stay]
        out = [name for name in names if name not in stay and name in first[workload]]
        if out:
            findings.notes.append(
                f"more than {behind} times slower than the best peer on {workload}, and "
                f"left out after the first pair: {', '.join(out)}"
            )
    return kept
