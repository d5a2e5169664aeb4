"""How much memory both sides of a confirming run take on each public workload."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from knowledge.evidence import WorkloadEvidence
from knowledge.outcome import Failed, TimedOut
from optimizer.evaluate import protocol as p
from optimizer.evaluate.cases import CheckedCase
from optimizer.evaluate.guards import Guard, Guards
from optimizer.evaluate.memory import members_of
from optimizer.evaluate.peer_table import PeerProcess
from optimizer.evaluate.sandbox import ChildError
from optimizer.evaluate.trial import Trial

UNTOLD_BYTES = 32 << 20
"""By so much a process may grow for other reasons: threads, code that is first read."""
_WEIGH_S = 120.0


@dataclass
class Weights:
    """What was weighed, by public workload; nothing where the guard is down."""

    guards: Guards
    mine: dict[str, p.Weighed] = field(default_factory=dict)
    peers: dict[str, dict[str, p.Weighed]] = field(default_factory=dict)

    def weigh_candidate(
        self, trial: Trial, cases: Sequence[CheckedCase]
    ) -> Failed | TimedOut | None:
        """Weigh a candidate on each case, or return how it fails.

        The largest comes first: memory that native code takes for itself shows only where the
        process held no such memory before.
        """
        if not self.guards.up(Guard.MEMORY):
            return None
        for case in sorted(cases, key=_elements, reverse=True):
            found = trial.weigh(case)
            if not isinstance(found, p.Weighed):
                return found
            self.mine[case.workload.name] = found
        return None

    def weigh_peers(
        self,
        side: PeerProcess,
        cases: Sequence[CheckedCase],
        names: Mapping[str, Collection[str]],
    ) -> None:
        """Weigh the peers that are there; one that fails in it has no weight."""
        if not self.guards.up(Guard.MEMORY) or self.peers:
            return
        for case in cases:
            found = self.peers.setdefault(case.workload.name, {})
            for name in names.get(case.workload.name, ()):
                try:
                    message = p.Weigh(case=case.case.key, subject=name)
                    process = side.open()
                    process.take(case.case)
                    found[name] = process.tell(message, p.Weighed, deadline_s=_WEIGH_S)
                except ChildError:
                    continue

    def describe(self, row: WorkloadEvidence) -> WorkloadEvidence:
        """Return the evidence on a workload with the weights of both sides."""
        mine, peers = self.mine.get(row.workload), self.peers.get(row.workload, {})
        rows = tuple(
            peer.model_copy(update={"peak_bytes": peers[peer.name].peak_bytes})
            if peer.name in peers
            else peer
            for peer in row.peers
        )
        if row.served_by in {peer.name for peer in row.peers}:
            mine = peers.get(row.served_by)
        told = {
            "peak_bytes": peak_of(mine) if mine else None,
            "workspace_bytes": workspace_of(mine) if mine else None,
        }
        return row.model_copy(update={"peers": rows, **told})


def peak_of(weighed: p.Weighed) -> int:
    """Return the peak of memory, with what native code took for itself as far as that shows."""
    return weighed.peak_bytes + _untold(weighed)


def workspace_of(weighed: p.Weighed) -> int:
    """Return what of the peak is neither input nor output."""
    return weighed.workspace_bytes + _untold(weighed)


def _untold(weighed: p.Weighed) -> int:
    """Return by how much more the process grew than outputs, workspace and usual growth explain.

    It may have grown by less than it was given, since inputs and lent memory were there before.
    """
    return max(0, weighed.resident_bytes - weighed.held_bytes - UNTOLD_BYTES)


def _elements(case: CheckedCase) -> int:
    return sum(
        math.prod(file.shape)
        for one in (*case.case.sets, *case.outputs)
        for value in one
        for file in members_of(value)
    )
