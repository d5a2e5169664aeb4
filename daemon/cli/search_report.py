"""A job's result as people read it on a terminal."""

from collections.abc import Mapping

from daemon.cli.terminal import Terminal, make_table
from knowledge.evidence import Better, Evidence, NotBetter, Unclear, Verdict
from knowledge.outcome import Cheated, Counterexample, Failed, Incorrect, Outcome, Passed, TimedOut
from optimizer.job import (
    CannotRun,
    CannotTell,
    DoctorResult,
    EvaluateResult,
    NotReproduced,
    OptimizeResult,
    Reproduced,
    VerifyResult,
)
from optimizer.kernel_page import ratio_text
from optimizer.search.endings import ENDINGS

_FIGURES = {"device_ms": "device ms", "call_ms": "call ms"}


def show_optimization(result: OptimizeResult, terminal: Terminal) -> None:
    """Show how a search ended."""
    kinds = ", ".join(f"{n} {kind.replace('_', ' ')}" for kind, n in result.outcomes.items())
    terminal.say(f"{result.trials} trials in {result.seconds:.0f} s: {kinds or 'none'}")
    if result.ending is not None and result.ending != "stopped":
        terminal.say(f"the search ended because {ENDINGS[result.ending]}")
    if result.verdict is None:
        terminal.say("stopped before there was a verdict; nothing was written")
        return
    show_verdict(result.verdict, result.evidence, terminal)
    if result.kernel_folder is not None:
        terminal.say("")
        terminal.say(f"kernel:   {result.kernel_folder}")
        terminal.say(f"use it:   optimizer.load({str(result.kernel_folder)!r}) gives a callable")
        terminal.say(f"check it: kernelevolve verify {result.kernel_folder}")


def show_verdict(verdict: Verdict, evidence: Evidence | None, terminal: Terminal) -> None:
    """Show what a confirming run proves, and by which numbers."""
    match verdict:
        case Better():
            terminal.say("Better: faster than every PyTorch form, proven in fresh processes")
        case NotBetter(reason=reason):
            terminal.say(f"Not better: {reason}")
        case Unclear(reason=reason):
            terminal.say(f"Unclear: {reason}")
    if evidence is None:
        return
    terminal.say(
        f"{ratio_text(evidence.ratio)} the speed of the best peer, "
        f"{evidence.versus_eager:.2f}x that of eager"
    )
    figure = evidence.figure
    unit = _FIGURES[figure]
    table = make_table("workload", "best peer", f"its {unit}", f"new {unit}", "ratio")
    for w in evidence.workloads:
        peer = next((peer for peer in w.peers if peer.name == w.best_peer), None)
        table.add_row(
            w.workload,
            w.best_peer,
            f"{getattr(peer, figure):.4g}" if peer else "",
            f"{getattr(w, figure):.4g}",
            ratio_text(w.ratio),
        )
    terminal.show(table)


def show_evaluation(result: EvaluateResult, terminal: Terminal) -> None:
    """Show how a trial ended."""
    outcome = result.evaluation.outcome
    terminal.say(_describe(outcome, result.fitness))
    if isinstance(outcome, Passed) and outcome.times:
        table = make_table("workload", "device ms", "call ms", "best peer", "its device ms")
        for w in outcome.times:
            best = min(w.peers, key=lambda peer: peer.device_ms, default=None)
            table.add_row(
                w.workload,
                f"{w.device_ms:.4g}",
                f"{w.call_ms:.4g}",
                best.name if best else "",
                f"{best.device_ms:.4g}" if best else "",
            )
        terminal.show(table)
    if result.verdict is not None:
        show_verdict(result.verdict, result.evidence, terminal)


def show_verification(result: VerifyResult, terminal: Terminal) -> None:
    """Show what became of each variant."""
    for v in result.verifications:
        match v.finding:
            case Reproduced():
                ratio = f", {v.ratio:.2f}x now" if v.ratio is not None else ""
                was = f" ({v.published_ratio:.2f}x published)" if v.published_ratio else ""
                terminal.say(
                    f"{v.variant}: reproduced at {v.checked_sizes} sizes with new seeds{ratio}{was}"
                )
            case NotReproduced(reason=reason):
                terminal.say(f"{v.variant}: not reproduced: {reason}")
            case CannotTell(reason=reason):
                terminal.say(f"{v.variant}: can't tell: {reason}")
            case CannotRun(reason=reason):
                terminal.say(f"{v.variant}: can't be run here: {reason}")
        if v.signature:
            terminal.say(f"{v.variant}: {v.signature}")


def show_verifications(results: Mapping[str, VerifyResult], terminal: Terminal) -> None:
    """Show which kernels stand: a table by folder, then why the others don't."""
    table = make_table("kernel", "variant", "finding", "now", "published", "signature")
    for name, result in results.items():
        for v in result.verifications:
            table.add_row(
                name,
                v.variant,
                v.finding.kind.replace("_", " "),
                "" if v.ratio is None else f"{v.ratio:.2f}x",
                "" if v.published_ratio is None else f"{v.published_ratio:.2f}x",
                v.signature,
            )
    terminal.show(table)
    for name, result in results.items():
        for v in result.verifications:
            if not isinstance(v.finding, Reproduced):
                terminal.say(f"{name}: {v.finding.reason}")


def show_abilities(result: DoctorResult, terminal: Terminal) -> None:
    """Show what the machine can do, and what to do about the rest."""
    for ability in result.abilities:
        terminal.say(f"{'yes' if ability.able else 'no '}  {ability.name}: {ability.detail}")
        if ability.remedy and not ability.able:
            terminal.say(f"     to mend it: {ability.remedy}")


def _describe(outcome: Outcome, fitness: float) -> str:
    match outcome:
        case Passed(times=times):
            timed = f"correct, {fitness:.2f}x the speed of the best peer in a first timing"
            return f"Passed: {timed if times else 'correct at small sizes; no such device to time'}"
        case Incorrect(reason=reason, counterexample=example):
            return f"Incorrect: {reason}{_example(example) if example else ''}"
        case Failed(stage=stage, log=log):
            return f"Failed in {stage}:\n{log.rstrip()}"
        case TimedOut(stage=stage, deadline_s=deadline_s):
            return f"Timed out in {stage}: still busy after {deadline_s:g} s"
        case Cheated(guard=guard, detail=detail):
            return f"Cheated ({guard}): {detail}"


def _example(example: Counterexample) -> str:
    sizes = ", ".join(f"{axis} = {size}" for axis, size in example.sizes.items())
    return (
        f"\n  {example.output}{list(example.index)} is {example.got}, wanted {example.wanted}, "
        f"where {sizes}; seed {example.seed}"
    )
