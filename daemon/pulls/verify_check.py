"""The check beside a commit of ours: what is known of the kernel there (pure)."""

from daemon.forge import Check, Conclusion
from daemon.markdown import code, plain, table
from daemon.pulls.body import verdict
from daemon.pulls.pull_request import Proposal
from daemon.pulls.standing import Judged, NotReplayed, Replayed, Standing, sum_up
from daemon.pulls.tables import by_workload, costs, errors
from knowledge.evidence import Evidence
from optimizer.kernel_page import ratio_text

NAME = "kernelevolve / verify"
_MOST_ROWS = 60
_CONCLUSIONS: dict[str, Conclusion] = {
    "reproduced": "success", "not_reproduced": "failure",
    "cannot_tell": "neutral", "cannot_run": "neutral",
}  # fmt: skip
_TITLES = {
    "reproduced": "Reproduced with new seeds",
    "not_reproduced": "Not reproduced",
    "cannot_tell": "Measured again, too noisily to say",
    "cannot_run": "It could not be measured again",
}
_PENDING = (
    "This commit is not the one that the judge saw. The kernel at it is checked and measured "
    "again, with new seeds; until then nothing is claimed for it."
)


def make_check(
    sha: str, standing: Standing | None, evidence: Evidence | None, *, outdated: bool = False
) -> Check:
    """Return the check of a commit.

    Args:
        sha: The commit.
        standing: What is known of the kernel there; None while that is being found out.
        evidence: The evidence that lies in the commit, where it can be read.
        outdated: Whether the operator has changed since.
    """
    told = _tables(evidence) if evidence else ""
    if outdated:
        title = "The operator has changed since"
        summary = "What was measured is true of the operator as it was; a new search decides."
        return _completed(sha, "neutral", title, summary, told)
    match standing:
        case None:
            return Check(
                name=NAME, head_sha=sha, status="in_progress", title="To be measured again",
                summary=_PENDING, text=told,
            )  # fmt: skip
        case Judged():
            title = f"Better: {ratio_text(evidence.ratio)}" if evidence else "Better"
            summary = verdict(Proposal(evidence, origin="")) if evidence else "The judge said so."
            return _completed(sha, "success", title, summary, told)
        case Replayed():
            kind, why = sum_up(standing)
            summary = f"{plain(why)}.\n\n{_replays(standing)}"
            return _completed(sha, _CONCLUSIONS[kind], _TITLES[kind], summary, told)
        case NotReplayed(why=why):
            summary = f"{plain(why)}. Nothing is claimed for this commit."
            return _completed(sha, "neutral", _TITLES["cannot_run"], summary, told)


def _completed(sha: str, conclusion: Conclusion, title: str, summary: str, text: str) -> Check:
    return Check(
        name=NAME,
        head_sha=sha,
        status="completed",
        conclusion=conclusion,
        title=title,
        summary=summary,
        text=text,
    )


def _tables(evidence: Evidence) -> str:
    parts = (
        f"As published:\n\n{by_workload(evidence, rows=_MOST_ROWS)}",
        f"What a call costs:\n\n{costs(evidence, rows=_MOST_ROWS)}",
        f"Worst errors, relative to the scale:\n\n{errors(evidence, rows=_MOST_ROWS)}",
    )
    return "\n\n".join(parts)


def _replays(standing: Replayed) -> str:
    header = ("variant", "finding", "ratio now", "as published", "sizes", "seed", "at")
    rows = (
        (
            code(v.variant or "-"),
            v.finding.kind.replace("_", " "),
            "" if v.ratio is None else f"{v.ratio:.2f}x",
            "" if v.published_ratio is None else f"{v.published_ratio:.2f}x",
            str(v.checked_sizes),
            "" if v.seed is None else str(v.seed),
            code(v.at),
        )
        for v in standing.verifications
    )
    return table(header, rows, numbers={2, 3, 4})
