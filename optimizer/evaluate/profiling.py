"""The winner's profile beside its baseline's, taken once the timed run is over."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from knowledge.evidence import Evidence, WorkloadEvidence
from knowledge.profile import KernelCounters, KernelTime, Profile, SideProfile
from optimizer.candidate import Candidate
from optimizer.errors import RunnerError
from optimizer.evaluate import protocol as p
from optimizer.evaluate.building import Built
from optimizer.evaluate.cases import CheckedCase
from optimizer.evaluate.findings import Findings
from optimizer.evaluate.guards import Guard, without
from optimizer.evaluate.peer_table import PeerProcess, reason_of
from optimizer.evaluate.process import PEERS, WORKER
from optimizer.evaluate.sandbox import ChildError, Limits, call
from optimizer.evaluate.workbench import Workbench
from optimizer.profilers import counters
from optimizer.profilers.trace import Trace

_MOST_WORKLOADS: Final = 6
"""Those with the greatest weight: evidence must stay small."""
_MOST_KERNELS: Final = 8
_OBSERVE_S: Final = 60.0
_COUNT_S: Final = 200.0


@dataclass(frozen=True)
class Profiling:
    """A confirming run that has been won, and how long looking into it may take."""

    bench: Workbench
    candidate: Candidate
    built: Built
    findings: Findings
    until: float
    """No further process is started after it, on the monotonic clock."""

    def take(self, evidence: Evidence) -> tuple[Profile, ...]:
        """Return both sides on the workloads that count most, as far as it can be measured."""
        rows = [row for row in evidence.workloads if row.served_by == evidence.candidate]
        rows = sorted(rows, key=lambda row: -row.weight)[:_MOST_WORKLOADS]
        cases = {case.workload.name: case for case in self.findings.public}
        side = PeerProcess(self.bench.operator, self.bench.hardware, self.bench.place)
        try:
            profiles = [self._observe(row, cases[row.workload], side) for row in rows]
        finally:
            side.close()
        if profiles:
            case = cases[profiles[0].workload]
            profiles[0] = self._count(profiles[0], case)
        return tuple(profiles)

    def _observe(self, row: WorkloadEvidence, case: CheckedCase, side: PeerProcess) -> Profile:
        return Profile(
            workload=row.workload,
            ours=_describe(self.candidate.id, self.findings.traces[row.workload]),
            baseline=self._observe_peer(row.best_peer, case, side),
        )

    def _observe_peer(self, peer: str, case: CheckedCase, side: PeerProcess) -> SideProfile:
        if time.monotonic() > self.until:
            return SideProfile(subject=peer, not_measured=("the time was up",))
        message = p.Observe(case=case.case.key, set=0, subject=peer)
        try:
            reason = side.prepare(case.case, peer)
            if reason is not None:
                return SideProfile(subject=peer, not_measured=(reason,))
            seen = side.open().tell(message, p.Observed, deadline_s=_OBSERVE_S)
        except (ChildError, RunnerError) as error:
            # A proof is not spoiled by what could not be seen of it afterwards.
            return SideProfile(subject=peer, not_measured=(_reason(error),))
        return _describe(peer, seen.trace)

    def _count(self, profile: Profile, case: CheckedCase) -> Profile:
        """Return a profile with what the device counted of both sides."""
        take, bench = p.Take(case=case.case), self.bench
        mine = p.LoadCandidate(
            spec=bench.operator.spec,
            hardware=bench.hardware,
            plan=self.candidate.plan,
            chosen=self.candidate.chosen,
            folder=str(self.built.folder),
        )
        theirs = p.LoadPeers(operator=bench.operator, hardware=bench.hardware)
        peer = profile.baseline.subject
        prepare = p.Prepare(case=case.case.key, subject=peer)
        key = case.case.key
        ours = p.Count(case=key, set=0, subject=p.CANDIDATE)
        baseline = p.Count(case=key, set=0, subject=peer)
        limits = bench.place.limits, bench.place.compiling_limits
        return profile.model_copy(
            update={
                "ours": self._add(profile.ours, WORKER, (mine, take, ours), limits[0]),
                "baseline": self._add(
                    profile.baseline, PEERS, (theirs, take, prepare, baseline), limits[1]
                ),
            }
        )

    def _add(
        self, side: SideProfile, worker: str, messages: Sequence[p.Message], limits: Limits
    ) -> SideProfile:
        found = self._ask(worker, messages, limits)
        if isinstance(found, str):
            return side.model_copy(update={"not_measured": (*side.not_measured, found)})
        return side.model_copy(update={"counters": found})

    def _ask(
        self, worker: str, messages: Sequence[p.Message], limits: Limits
    ) -> tuple[KernelCounters, ...] | str:
        """Return what was counted, or why nothing was."""
        place = self.bench.place
        tool = counters.find_counter_tool()
        if place.device != "cuda":
            return "hardware counters: none are read on a processor"
        if not tool:
            return "hardware counters: there is no ncu here"
        if self.candidate.host == "python":
            return "hardware counters: a Python host side never runs outside the full sandbox"
        if time.monotonic() > self.until:
            return "hardware counters: the time was up"
        hello = p.Hello(device=place.device, cache_bytes=0)
        request = p.CountRequest(
            worker=worker, messages=tuple(m.to_json() for m in (hello, *messages))
        )
        # The tool traces the process that it counts in; every other wall stays.
        guards = without({*place.guards.down, Guard.SYSCALLS})
        limits = replace(limits, wall_s=_COUNT_S, read=(*limits.read, *tool), guards=guards)
        try:
            text = call(counters.CHILD, request.to_json(), limits=limits)
        except ChildError as error:
            return f"hardware counters: {_reason(error)}"
        answer = p.CountAnswer.from_json(text)
        return answer.counters or f"hardware counters: {answer.fault}"


def _reason(error: ChildError | RunnerError) -> str:
    return reason_of(error) if isinstance(error, ChildError) else str(error)


def _describe(subject: str, trace: Trace) -> SideProfile:
    return SideProfile(
        subject=subject, kernels=_kernel_times(trace), functions=trace.ops[:_MOST_KERNELS]
    )


def _kernel_times(trace: Trace) -> tuple[KernelTime, ...]:
    """Return what ran on the device, summed by name; what took longest comes first."""
    took: dict[str, list[float]] = {}
    for activity in trace.activities:
        took.setdefault(activity.name, []).append(activity.took_us)
    times = (
        KernelTime(
            kernel=name[:120], launches=len(each_us), device_ms=round(sum(each_us) * 1e-3, 6)
        )
        for name, each_us in took.items()
    )
    return tuple(sorted(times, key=lambda time: -time.device_ms)[:_MOST_KERNELS])
