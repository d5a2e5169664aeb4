"""The text of a pull request: what a reviewer asks, in the order in which it is asked. Pure."""

import difflib
from collections.abc import Iterator, Sequence

from daemon.forge import PullRequestDraft
from daemon.markdown import bullets, code, details, fenced, plain, table
from daemon.pulls.pull_request import LABELS, Marker, Proposal, Site, make_marker, tail, title
from daemon.pulls.tables import (
    by_workload,
    costs,
    errors,
    find_handed_back,
    find_regressions,
    profile,
    versus_incumbent,
)
from knowledge.evidence import Evidence
from knowledge.verdict import judge
from optimizer.profile_rows import chain
from optimizer.search.endings import ENDINGS

LONGEST_BODY_BYTES = 60_000
_CUTS: tuple[tuple[int | None, int], ...] = ((None, 12_000), (40, 12_000), (40, 0), (8, 0))
"""Rows of a table and bytes of a difference, until a body is short enough."""
_LISTED = 12
_COMMANDS = (
    "Comment with a line of its own: `/verify` measures this commit again, `/rebase` puts it on "
    "top of the base, `/explain` tells more, `/hold` keeps the bot away, `/stop` ends what runs, "
    "`/help` names the rest"
)
_FIGURES = {"device_ms": "device time", "call_ms": "call time"}
_PICTURES = {"latency": "Every peer's time beside it", "distribution": "All samples"}


def make_draft(
    proposal: Proposal,
    *,
    head: str,
    base: str,
    old: Marker | None = None,
    site: Site | None = None,
) -> PullRequestDraft:
    """Return the pull request for a proposal whose commit is `head`.

    Args:
        proposal: The kernel.
        head: The commit.
        base: The branch that it goes to.
        old: The marker of what the pull request showed before.
        site: Where it is read.
    """
    marker = make_marker(proposal, head=head, old=old)
    return PullRequestDraft(
        title=title(proposal.evidence),
        body=make_body(proposal, marker, site or Site()),
        head=proposal.branch,
        base=base,
        labels=LABELS,
    )


def make_body(proposal: Proposal, marker: Marker, site: Site) -> str:
    """Return the body, cut to the size that code hosts take."""
    body = ""
    for rows, difference_bytes in _CUTS:
        parts = _sections(proposal, marker, site, rows=rows, difference_bytes=difference_bytes)
        body = "\n\n".join(part for part in parts if part)
        if len(body.encode()) <= LONGEST_BODY_BYTES:
            break
    return body + "\n"


def verdict(proposal: Proposal) -> str:
    """Return in a sentence or three what is proven, and where it does not help."""
    evidence = proposal.evidence
    ratio, workloads = evidence.ratio, len(evidence.workloads)
    trust = 100 * (1 - 2 * evidence.alpha)
    gain_told = (
        f"**{ratio.estimate:.2f}x faster** than the best PyTorch form on "
        f"{code(evidence.hardware)}, and {evidence.versus_eager:.2f}x faster than eager PyTorch "
        f"({trust:.6g} % interval of the first: {ratio.low:.2f}x to {ratio.high:.2f}x; weighted "
        f"geometric mean of the {_FIGURES[evidence.figure]} over {workloads} public "
        f"workload{'s' * (workloads != 1)})."
    )
    said = [gain_told]
    gain = versus_incumbent(evidence, proposal.incumbent) if proposal.incumbent else None
    if proposal.incumbent and gain is not None:
        name = code(proposal.incumbent.name)
        said.append(
            f"In trials of the same search it was {gain:.2f}x faster than the published kernel "
            f"{name}; that ratio is no part of the proof."
            if gain >= 1
            else f"In trials of the same search the published kernel {name} was faster."
        )
    if slower := find_regressions(evidence):
        said.append(f"**Slower on {_listed(slower)}**, by no more than the judge allows.")
    if handed := find_handed_back(evidence):
        said.append(f"Left to the best peer, which is as fast there: {_listed(handed)}.")
    return " ".join(said)


def _sections(
    proposal: Proposal, marker: Marker, site: Site, *, rows: int | None, difference_bytes: int
) -> Iterator[str]:
    evidence = proposal.evidence
    yield (
        "A machine wrote this pull request: kernelevolve, with a kernel that "
        f"{code(proposal.origin)} proposed{f' ({plain(proposal.note)})' if proposal.note else ''}."
    )
    yield verdict(proposal)
    figure = _FIGURES[evidence.figure]
    table_of_ratios = by_workload(evidence, incumbent=proposal.incumbent, rows=rows)
    yield f"### By workload ({figure}, lowest ratio first)\n\n{table_of_ratios}"
    yield _pictures(proposal, marker, site, "latency")
    if proposal.shares:
        yield f"### Models\n\n{_models(proposal)}"
    yield f"### What a call costs\n\n{costs(evidence, rows=rows)}"
    yield f"### Correctness\n\n{_checked(evidence)}\n\n{errors(evidence, rows=rows)}"
    yield f"### Not tested\n\n{_not_tested(evidence)}"
    yield f"### What changed\n\n{_difference(proposal, marker, site, difference_bytes)}"
    if told := profile(evidence, bandwidth_gb_s=proposal.bandwidth_gb_s, rows=rows):
        pictures = _pictures(proposal, marker, site, "distribution")
        inside = "\n\n".join(filter(None, (told, pictures)))
        yield f"### Profile\n\n{details('Both sides, as profilers saw them', inside)}"
    yield f"### Evidence\n\n{_evidence(proposal)}"
    yield details("Environment", _environment(evidence))
    yield details("Search", _search(proposal))
    yield _controls(proposal, site)
    yield tail(marker)


def _pictures(proposal: Proposal, marker: Marker, site: Site, name: str) -> str:
    """Return the pictures of a name, which lie in the commit itself."""
    shown = [path for path in proposal.pictures if path.endswith(f"/{name}.svg")]
    if site.web:
        links = (
            f"![{_PICTURES[name]}]({site.web}/blob/{marker.head}/{proposal.path}/{path}?raw=true)"
            for path in shown
        )
        return "\n".join(links)
    where = ", ".join(code(f"{proposal.path}/{path}") for path in shown)
    return f"{_PICTURES[name]}: {where}" if shown else ""


def _checked(evidence: Evidence) -> str:
    seeds = f", {evidence.checked_seeds} secret seeds" if evidence.checked_seeds else ""
    ways = f", values drawn as {_words(evidence.distributions)}" if evidence.distributions else ""
    return (
        f"Outputs agreed with the reference at {evidence.checked_sizes} sizes, public ones and "
        f"such as were drawn after the kernel was frozen (seed {evidence.seed}{seeds}{ways}). "
        "Worst error against a float64 oracle, relative to its scale:"
    )


def _difference(proposal: Proposal, marker: Marker, site: Site, most_bytes: int) -> str:
    """Return the difference between the published kernel's code and the new one's."""
    page = f"{proposal.path}/README.md"
    page = f"[its page]({site.web}/blob/{marker.head}/{page})" if site.web else code(page)
    old = proposal.incumbent
    if old is None:
        return f"There is no published kernel yet: PyTorch served. The new one is shown on {page}."
    if old.text == proposal.text:
        return (
            f"The code is that of {code(old.name)}; only its plan or its tunables differ. The new "
            f"kernel is shown on {page}."
        )
    lines = list(
        difflib.unified_diff(
            old.text.splitlines(), proposal.text.splitlines(), "published", "new", lineterm="", n=2
        )
    )
    added = sum(line.startswith("+") for line in lines[2:])
    removed = sum(line.startswith("-") for line in lines[2:])
    said = (
        f"{code(old.name)} loses {_count(removed)} and gains {_count(added)}; the new kernel is "
        f"shown on {page}."
    )
    text = "\n".join(lines)
    if len(text.encode()) > most_bytes:
        return said
    return f"{said}\n\n{details('The difference', fenced('diff', text))}"


def _evidence(proposal: Proposal) -> str:
    """Return the links from source to verdict, and who vouches for them."""
    evidence = proposal.evidence
    source, artefacts, launched, said = chain(evidence, judge(evidence).kind)
    null = evidence.null.ratio
    links = [
        ("source", code(source)),
        ("built to", _codes(artefacts) or "nothing of its own"),
        ("launched", _codes(launched) or "nothing of its own"),
        ("verdict", code(said)),
        (
            "baseline beside itself",
            f"{null.estimate:.3f}x ({null.low:.3f}x to {null.high:.3f}x); 1 is right",
        ),
        ("raw samples", code(evidence.samples_sha256[:12]) if evidence.samples_sha256 else "none"),
        (
            "signature",
            f"Ed25519, by {code(proposal.signed_by)}"
            if proposal.signed_by
            else "unsigned: no key vouches for who measured this",
        ),
        *(("doubt", plain(fault)) for fault in evidence.faults),
    ]
    return table(("link", "what it is"), links)


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
    rows += [("judge", code(evidence.judge_version)), ("measured at", code(evidence.measured_at))]
    if seen := evidence.conditions:
        rows.append(("load before, after", f"{seen.load[0]:.2f}, {seen.load[1]:.2f}"))
        for when, state in zip(("before", "after"), seen.device, strict=False):
            slowed = f", slowed by {plain(', '.join(state.slowed_by))}" if state.slowed_by else ""
            clocks = f"{state.sm_mhz:.0f} MHz, memory {state.memory_mhz:.0f} MHz"
            rows.append((f"device {when}", f"{clocks}, {state.celsius:.0f} &deg;C{slowed}"))
        if seen.other_processes is not None:
            rows.append(("other processes on the device", str(seen.other_processes)))
    return table(("what", "is"), rows)


def _search(proposal: Proposal) -> str:
    candidate = code(proposal.evidence.candidate[:12])
    found = f"Candidate {candidate}, from {code(proposal.origin)}."
    search = proposal.evidence.search
    if search is None:
        return found
    outcomes = proposal.outcomes or {"passed": search.passed}
    kinds = (f"{n} {kind.replace('_', ' ')}" for kind, n in sorted(outcomes.items()))
    trials = f"{search.trials} trials in {search.seconds:.0f} s: {plain(', '.join(kinds))}"
    curve = [ratio for ratio in search.best_so_far if ratio > 0]
    climbs = len(curve) > 1 and curve[0] < curve[-1]
    climbed = f" The best went from {curve[0]:.2f}x to {curve[-1]:.2f}x." if climbs else ""
    ended = f" It ended because {ENDINGS[search.ending]}." if search.ending else ""
    return f"{trials}.{climbed}{ended} {found}"


def _not_tested(evidence: Evidence) -> str:
    always = (
        f"other devices than {code(evidence.environment.device)}, other environments than below",
        "sizes outside the axes' ranges and dtypes outside the spec",
    )
    left = len(evidence.not_tested) - _LISTED
    more = (f"{left} more things, which `evidence.json` names",) if left > 0 else ()
    return bullets((*map(plain, evidence.not_tested[:_LISTED]), *more, *always))


def _controls(proposal: Proposal, site: Site) -> str:
    stop = code(proposal.evidence.hardware)
    told = [
        f"Reproduce it, with new seeds: `kernelevolve verify {proposal.path}`",
        f'Use it: `optimizer.load("{proposal.path}")` gives a callable',
        "Roll back after a merge: revert the merge; nothing outside that folder refers to it",
        "Say no: close this pull request; it is not proposed again until the operator changes",
        "Take over: push to the branch; the bot then leaves it alone",
        f"Stop the bot for this hardware: take {stop} out of `hardware` in `registry.yaml`",
    ]
    if site.hears_commands:
        told.append(_COMMANDS)
    return f"### What you can do\n\n{bullets(told)}"


def _count(lines: int) -> str:
    return f"{lines} line{'s' * (lines != 1)}"


def _listed(names: Sequence[str]) -> str:
    left = len(names) - _LISTED
    return _words(tuple(map(code, names[:_LISTED]))) + (f" and {left} more" if left > 0 else "")


def _codes(names: Sequence[str]) -> str:
    left = len(names) - _LISTED
    return ", ".join(map(code, names[:_LISTED])) + (f" and {left} more" if left > 0 else "")


def _words(words: Sequence[str]) -> str:
    return " and ".join((", ".join(words[:-1]), words[-1])) if len(words) > 1 else "".join(words)
