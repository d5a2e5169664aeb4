"""What a pull request says: branch, title, body, commit message. Pure; states: see the README."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import Field, ValidationError

from daemon.forge import PullRequest, PullRequestDraft
from daemon.markdown import bullets, code, plain, table
from daemon.pull_request_tables import by_workload, errors, profile, times
from knowledge.evidence import Evidence
from knowledge.verdict import judge
from operator_registry.record import Record, digest
from optimizer.profile_rows import chain

LABELS = ("kernelevolve",)
EDITED_LABEL = "human-edited"
_MARKER = re.compile(r"<!-- kernelevolve (\{[^\n]*\}) -->")
_NOTICE = re.compile(r"<!-- notice -->.*?<!-- /notice -->\n*", re.DOTALL)
_FIGURES = {"device_ms": "device time", "call_ms": "call time"}
_LONGEST_BODY_BYTES = 60_000
_FEWER_ROWS = 40


@dataclass(frozen=True)
class Proposal:
    """A proven kernel, and all that a reviewer should know of it."""

    evidence: Evidence
    origin: str
    """Who proposed the winning candidate."""
    note: str = ""
    outcomes: Mapping[str, int] = field(default_factory=dict)
    """Trials of the search by the kind of their outcome."""
    shares: Mapping[str, float] = field(default_factory=dict)
    """By model, which share of its time this operator takes on this hardware."""
    signed_by: str = ""
    """The public key that signs the folder; empty where none does."""

    @property
    def path(self) -> str:
        """Return where the kernel's folder lies in the repository."""
        return f"kernels/{self.evidence.operator}/{self.evidence.hardware}"

    @property
    def branch(self) -> str:
        """Return the branch of this operator and hardware."""
        return branch_name(self.evidence.operator, self.evidence.hardware)

    @property
    def key(self) -> str:
        """Return the hash that names this kernel for this version of the operator."""
        e = self.evidence
        return digest(e.operator, e.hardware, e.operator_digest, e.candidate)


class Marker(Record):
    """What the bot needs again; hidden in the body, so that a lost database loses nothing."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    key: str = Field(pattern=r"^[0-9a-f]{64}$")
    operator_digest: str = Field(pattern=r"^[0-9a-f]{64}$")
    candidate: str = Field(pattern=r"^[0-9a-f]{64}$")
    head: str = Field(pattern=r"^[0-9a-f]{40,64}$")
    """The commit that the bot pushed last."""


def branch_name(operator: str, hardware: str) -> str:
    """Return the one branch on which this operator is improved for this hardware.

    The name holds no date, score or attempt: a later cycle finds the open pull request again.
    """
    return f"kernelevolve/{operator}/{hardware}"


def find_marker(body: str) -> Marker | None:
    """Return what an earlier body of ours remembers; None where it is gone or is not ours."""
    found = _MARKER.findall(body)
    try:
        return Marker.from_json(found[-1]) if found else None
    except ValidationError:
        return None


def make_draft(proposal: Proposal, *, head: str, base: str) -> PullRequestDraft:
    """Return the pull request for a proposal whose commit is `head`."""
    evidence = proposal.evidence
    gain = evidence.ratio.estimate
    return PullRequestDraft(
        title=f"{evidence.operator}: {gain:.2f}x faster on {evidence.hardware}",
        body=make_body(proposal, head=head),
        head=proposal.branch,
        base=base,
        labels=LABELS,
    )


def commit_message(proposal: Proposal) -> str:
    """Return the message of the one commit on the branch, with its trailers."""
    evidence = proposal.evidence
    where = evidence.environment
    verified = f"{where.device}, torch {where.torch}, judge {evidence.judge_version}"
    return (
        f"{evidence.operator}: {evidence.ratio.estimate:.2f}x faster on {evidence.hardware}\n\n"
        f"Proposed by {_line(proposal.origin)}, proven by the judge on every public workload and "
        f"on drawn ones.\n{proposal.path}/README.md shows the kernel, evidence.json the proof.\n\n"
        f"Kernel-Key: {proposal.key}\n"
        f"Verified-On: {_line(verified)}\n"
    )


def make_body(proposal: Proposal, *, head: str) -> str:
    """Return the body, cut to the size that code hosts take."""
    body = "\n\n".join(_sections(proposal, head, rows=None))
    if len(body.encode()) > _LONGEST_BODY_BYTES:
        body = "\n\n".join(_sections(proposal, head, rows=_FEWER_ROWS))
    return body + "\n"


def add_notice(old: PullRequest, text: str) -> PullRequestDraft:
    """Return the pull request with a notice on top, in the place of an earlier one."""
    rest = _NOTICE.sub("", old.body)
    return PullRequestDraft(
        title=old.title,
        body=f"<!-- notice -->\n> **Note:** {text}\n<!-- /notice -->\n\n{rest}",
        head=old.head,
        base=old.base,
        labels=(*(label for label in old.labels if label != EDITED_LABEL), EDITED_LABEL),
    )


def _sections(proposal: Proposal, head: str, *, rows: int | None) -> Iterator[str]:
    evidence = proposal.evidence
    figure = _FIGURES[evidence.figure]
    yield (
        f"A machine wrote this pull request: kernelevolve, with a kernel proposed by "
        f"{code(proposal.origin)}."
    )
    yield _verdict(evidence, figure)
    if proposal.note:
        yield f"What was done: {plain(proposal.note)}"
    yield f"### By workload ({figure}, slowest ratio first)\n\n{by_workload(evidence, rows=rows)}"
    yield f"### Device time and call time\n\n{times(evidence, rows=rows)}"
    yield f"### Errors\n\n{_checked(evidence)}\n\n{errors(evidence, rows=rows)}"
    if told := profile(evidence, rows=rows):
        yield f"### Profile\n\n{told}"
    yield f"### Evidence\n\n{_evidence(proposal)}"
    if proposal.shares:
        yield f"### Models\n\n{_models(proposal)}"
    yield f"### Environment\n\n{_environment(evidence)}"
    yield f"### Search\n\n{_search(proposal)}"
    yield f"### Not tested\n\n{_not_tested(evidence)}"
    yield _controls(proposal)
    yield _marker(proposal, head)


def _verdict(evidence: Evidence, figure: str) -> str:
    ratio, workloads = evidence.ratio, len(evidence.workloads)
    trust = 100 * (1 - 2 * evidence.alpha)
    return (
        f"**{ratio.estimate:.2f}x faster** than the best PyTorch form on {code(evidence.hardware)} "
        f"({trust:.6g} % interval {ratio.low:.2f}x to {ratio.high:.2f}x; weighted geometric mean "
        f"of the {figure} in ms over {workloads} public workload{'s' * (workloads != 1)}), and "
        f"{evidence.versus_eager:.2f}x faster than eager PyTorch."
    )


def _checked(evidence: Evidence) -> str:
    return (
        f"Outputs agreed with the reference at {evidence.checked_sizes} sizes, public and drawn "
        f"after the kernel was frozen (seed {evidence.seed}). Worst error against a float64 "
        "oracle, relative to its scale:"
    )


def _evidence(proposal: Proposal) -> str:
    """Return the links from source to verdict, and who vouches for them."""
    evidence = proposal.evidence
    source, artefacts, launched, verdict = chain(evidence, judge(evidence).kind)
    links = [
        ("source", code(source)),
        ("built to", ", ".join(map(code, artefacts)) or "nothing of its own"),
        ("launched", ", ".join(map(code, launched))),
        ("verdict", code(verdict)),
        ("raw samples", code(evidence.samples_sha256[:12]) if evidence.samples_sha256 else "none"),
        (
            "signature",
            f"Ed25519, by {code(proposal.signed_by)}"
            if proposal.signed_by
            else "unsigned: no key vouches for who measured this",
        ),
    ]
    return table(("", ""), links)


def _models(proposal: Proposal) -> str:
    gain = proposal.evidence.ratio.estimate
    return bullets(
        f"{code(model)} spends {100 * share:.3g} % of its time here, so that the whole model "
        f"would take {100 * share * (1 - 1 / gain):.2g} % less"
        for model, share in sorted(proposal.shares.items())
    )


def _environment(evidence: Evidence) -> str:
    rows = [
        (plain(name), code(str(value)))
        for name, value in evidence.environment.model_dump().items()
        if value != ""
    ]
    null = evidence.null.ratio
    rows += [("judge", code(evidence.judge_version)), ("measured at", code(evidence.measured_at))]
    rows += [
        (
            "baseline against itself",
            f"{null.estimate:.3f}x ({null.low:.3f}x to {null.high:.3f}x); 1 is right",
        )
    ]
    rows += [("doubt", plain(fault)) for fault in evidence.faults]
    return table(("", ""), rows)


def _search(proposal: Proposal) -> str:
    candidate = code(proposal.evidence.candidate[:12])
    found = f"Candidate {candidate}, from {code(proposal.origin)}."
    search = proposal.evidence.search
    if search is None:
        return found
    kinds = (f"{n} {kind.replace('_', ' ')}" for kind, n in sorted(proposal.outcomes.items()))
    told = plain(", ".join(kinds))
    trials = f"{search.trials} trials in {search.seconds:.0f} s, {search.passed} passed"
    return f"{trials}{f' ({told})' if told else ''}. {found}"


def _not_tested(evidence: Evidence) -> str:
    always = (
        f"other devices than {code(evidence.environment.device)} and other environments than above",
        "sizes outside the axes' ranges and dtypes outside the spec",
    )
    return bullets((*map(plain, evidence.not_tested), *always))


def _controls(proposal: Proposal) -> str:
    return (
        "### What you can do\n\n"
        f"- Reproduce it, with new seeds: `kernelevolve verify {proposal.path}`\n"
        f'- Use it: `optimizer.load("{proposal.path}")` gives a callable\n'
        "- Roll back after a merge: revert the merge; nothing outside that folder refers to it\n"
        "- Say no: close this pull request; it is not proposed again until the operator changes\n"
        "- Take over: push to the branch; the bot then leaves it alone\n"
        f"- Stop the bot for this hardware: take {code(proposal.evidence.hardware)} out of "
        "`hardware` in `registry.yaml`"
    )


def _marker(proposal: Proposal, head: str) -> str:
    marker = Marker(
        key=proposal.key,
        operator_digest=proposal.evidence.operator_digest,
        candidate=proposal.evidence.candidate,
        head=head,
    )
    return f"<!-- kernelevolve {marker.to_json()} -->"


def _line(text: str) -> str:
    """Return the text as part of one line, so that it can't add a trailer of its own."""
    return "".join(c for c in " ".join(text.split()) if c.isprintable())[:200]
