"""What a pull request is made of: proposal, branch, marker, history, draft, commit message. Pure.

Its states are drawn in the README; the body's text is `daemon.pulls.body`'s.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import Field, ValidationError

from daemon.forge import PullRequest, PullRequestDraft
from daemon.markdown import code, table
from knowledge.evidence import Evidence
from knowledge.outcome import WorkloadTime
from operator_registry.record import Record, digest

LABELS = ("kernelevolve",)
EDITED_LABEL = "human-edited"
PREFIX = "kernelevolve"
"""What the names of our branches begin with."""
_MARKER = re.compile(r"<!-- kernelevolve (\{[^\n]*\}) -->")
_NOTICE = re.compile(r"<!-- notice -->.*?<!-- /notice -->\n*", re.DOTALL)
_HISTORY = re.compile(r"<!-- history -->.*?<!-- /history -->\n*", re.DOTALL)
_LONGEST_HISTORY = 20
_HEX = r"^[0-9a-f]{64}$"
_SHA = r"^[0-9a-f]{40,64}$"


@dataclass(frozen=True)
class Incumbent:
    """The published kernel whose place the proposed one would take."""

    name: str
    """Its variant's folder."""
    text: str
    """Its code."""
    times: Mapping[str, WorkloadTime] = field(default_factory=dict)
    """By public workload, as this search measured it; empty where it did not pass there."""


@dataclass(frozen=True)
class Proposal:
    """A proven kernel, and all that a reviewer should know of it."""

    evidence: Evidence
    origin: str
    """Who proposed the winning candidate."""
    note: str = ""
    text: str = ""
    """The kernel's code."""
    incumbent: Incumbent | None = None
    outcomes: Mapping[str, int] = field(default_factory=dict)
    """Trials of the search by the kind of their outcome."""
    shares: Mapping[str, float] = field(default_factory=dict)
    """By model, which share of its time this operator takes on this hardware."""
    bandwidth_gb_s: float | None = None
    """The device's data sheet's."""
    pictures: tuple[str, ...] = ()
    """The pictures in the kernel's folder, by their path in it."""
    signed_by: str = ""
    """The public key that signs the folder; empty where none does."""

    @property
    def path(self) -> str:
        """Return where the kernel's folder lies in the repository."""
        return kernel_path(self.evidence.operator, self.evidence.hardware)

    @property
    def branch(self) -> str:
        """Return the branch of this operator and hardware."""
        return branch_name(self.evidence.operator, self.evidence.hardware)

    @property
    def key(self) -> str:
        """Return the hash that names this kernel for this version of the operator."""
        e = self.evidence
        return digest(e.operator, e.hardware, e.operator_digest, e.candidate)


@dataclass(frozen=True)
class Site:
    """Where pull requests are read."""

    web: str = ""
    """The repository's own page, for links; empty where it has none."""
    hears_commands: bool = False


class Past(Record):
    """Something that the pull request has shown."""

    at: str = Field(pattern=r"^[0-9TZ:.+-]{10,40}$")
    """When it was measured or, of a rebase, made."""
    what: Literal["proposed", "replaced", "rebased"]
    candidate: str = Field(pattern=_HEX)
    ratio: float
    head: str = Field(pattern=_SHA)


class Marker(Record):
    """What the bot needs again; hidden in the body, so that a lost database loses nothing."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    key: str = Field(pattern=_HEX)
    operator_digest: str = Field(pattern=_HEX)
    candidate: str = Field(pattern=_HEX)
    head: str = Field(pattern=_SHA)
    """The commit that the bot pushed last."""
    retired: bool = False
    """The bot closes it itself: that is nobody's no."""
    history: tuple[Past, ...] = ()
    """Oldest first, the shown state last."""


def branch_name(operator: str, hardware: str) -> str:
    """Return the one branch on which this operator is improved for this hardware.

    The name holds no date, score or attempt: a later cycle finds the open pull request again.
    """
    return f"{PREFIX}/{operator}/{hardware}"


def find_pair(branch: str) -> tuple[str, str] | None:
    """Return operator and hardware of one of our branches; None for any other."""
    parts = branch.split("/")
    return (parts[1], parts[2]) if len(parts) == 3 and parts[0] == PREFIX else None  # noqa: PLR2004 - as `branch_name` makes it


def kernel_path(operator: str, hardware: str) -> str:
    """Return where a kernel's folder lies in the repository."""
    return f"kernels/{operator}/{hardware}"


def find_marker(body: str) -> Marker | None:
    """Return what an earlier body of ours remembers; None where it is gone or is not ours."""
    found = _MARKER.findall(body)
    try:
        return Marker.from_json(found[-1]) if found else None
    except ValidationError:
        return None


def make_marker(proposal: Proposal, *, head: str, old: Marker | None) -> Marker:
    """Return the marker of a proposal whose commit is `head`, on top of what was shown before."""
    evidence = proposal.evidence
    told = old.history if old else ()
    if not (told and (told[-1].head, told[-1].candidate) == (head, evidence.candidate)):
        now = Past(
            at=evidence.measured_at,
            what="replaced" if told else "proposed",
            candidate=evidence.candidate,
            ratio=evidence.ratio.estimate,
            head=head,
        )
        told = (*told, now)[-_LONGEST_HISTORY:]
    return Marker(
        key=proposal.key,
        operator_digest=evidence.operator_digest,
        candidate=evidence.candidate,
        head=head,
        history=told,
    )


def tell_rebase(shown: PullRequest, *, head: str, at: str) -> PullRequestDraft:
    """Return the pull request as it is once its commit is `head`, the kernel being the same.

    A body that a person has taken the marker out of stays as it is.
    """
    marker = find_marker(shown.body)
    if marker is None:
        return as_draft(shown)
    last = marker.history[-1] if marker.history else None
    now = Past(
        at=at,
        what="rebased",
        candidate=marker.candidate,
        ratio=last.ratio if last else 1.0,
        head=head,
    )
    history = (*marker.history, now)[-_LONGEST_HISTORY:]
    return remark(shown, marker.model_copy(update={"head": head, "history": history}))


def remark(shown: PullRequest, marker: Marker) -> PullRequestDraft:
    """Return the pull request with another marker and its history, all else as it is."""
    body = _HISTORY.sub("", shown.body)
    body = _MARKER.sub("", body).rstrip()
    return as_draft(shown, body=f"{body}\n\n{tail(marker)}\n")


def tail(marker: Marker) -> str:
    """Return what every body ends with: the history, and the hidden marker."""
    hidden = f"<!-- kernelevolve {marker.to_json()} -->"
    if len(marker.history) < 2:  # noqa: PLR2004 - one state is no history
        return hidden
    rows = [
        (past.at, past.what, f"{past.ratio:.2f}x", code(past.candidate[:12]), past.head[:12])
        for past in marker.history
    ]
    heads = ("measured or made", "what", "ratio", "candidate", "commit")
    shown = table(heads, rows, numbers={2})
    return f"<!-- history -->\n### History\n\n{shown}\n<!-- /history -->\n\n{hidden}"


def as_draft(shown: PullRequest, **changes: object) -> PullRequestDraft:
    """Return a pull request as it is, but for what is changed."""
    values = shown.model_dump(include=set(PullRequestDraft.model_fields))
    return PullRequestDraft.model_validate({**values, **changes})


def title(evidence: Evidence) -> str:
    """Return the title of pull request and commit."""
    gain = evidence.ratio.estimate
    return f"{evidence.operator}: {gain:.2f}x faster on {evidence.hardware}"


def commit_message(proposal: Proposal) -> str:
    """Return the message of the one commit on the branch, with its trailers."""
    evidence = proposal.evidence
    where = evidence.environment
    verified = f"{where.device}, torch {where.torch}, judge {evidence.judge_version}"
    return (
        f"{title(evidence)}\n\n"
        f"Proposed by {_line(proposal.origin)}, proven by the judge on every public workload and "
        f"on drawn ones.\n{proposal.path}/README.md shows the kernel, evidence.json the proof.\n\n"
        f"Kernel-Key: {proposal.key}\n"
        f"Verified-On: {_line(verified)}\n"
    )


def add_notice(shown: PullRequest, text: str, *, label: str = "") -> PullRequestDraft:
    """Return the pull request with a notice on top, in the place of an earlier one."""
    rest = _NOTICE.sub("", shown.body)
    others = (known for known in shown.labels if known != label)
    return as_draft(
        shown,
        body=f"<!-- notice -->\n> **Note:** {text}\n<!-- /notice -->\n\n{rest}",
        labels=(*others, label) if label else shown.labels,
    )


def drop_notice(shown: PullRequest) -> PullRequestDraft:
    """Return the pull request without a notice, and without the label of a person's commits."""
    labels = tuple(label for label in shown.labels if label != EDITED_LABEL)
    return as_draft(shown, body=_NOTICE.sub("", shown.body), labels=labels)


def _line(text: str) -> str:
    """Return the text as part of one line, so that it can't add a trailer of its own."""
    return "".join(c for c in " ".join(text.split()) if c.isprintable())[:200]
