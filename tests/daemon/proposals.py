"""Proposals with good defaults, for tests."""

from daemon.forge import PullRequest, PullRequestDraft
from daemon.pulls.pull_request import Incumbent, Proposal
from knowledge.evidence import Evidence
from knowledge.outcome import WorkloadTime
from tests.makers import make_candidate, make_evidence

HEAD = "a" * 40
AT = "2026-11-30T12:00:00Z"


def make_proposal(*ratios: float, evidence: Evidence | None = None) -> Proposal:
    return Proposal(
        evidence=evidence or make_evidence(make_candidate(), *ratios),
        origin="synthesis",
        note="vectorised",
        text="new\n",
        outcomes={"passed": 9, "timed_out": 1},
        shares={"ads_ranker": 0.25},
        pictures=("cpp-1/plots/distribution.svg", "cpp-1/plots/latency.svg"),
    )


def make_incumbent(text: str = "old\n", *, ms: float = 0.75, workload: str = "w0") -> Incumbent:
    time = WorkloadTime(workload=workload, weight=1, device_ms=ms, call_ms=ms)
    return Incumbent("cpp-0", text, {workload: time})


def make_shown(draft: PullRequestDraft, *, head: str = HEAD) -> PullRequest:
    """Return the pull request that a draft has become."""
    return PullRequest(
        **draft.model_dump(), number=1, state="open", head_sha=head, created_at=AT, updated_at=AT
    )
