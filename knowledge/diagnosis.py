"""What holds a candidate back, as far as its outcome shows: a kind, a few words, search terms.

It names what was seen and nothing more: why warps stall, or which line is slow, only a profile
could say.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from knowledge.bottleneck import TimeKind, find_bottleneck
from knowledge.build_log import LogReading, read_log
from knowledge.document import names_of
from knowledge.evidence import KernelResources
from knowledge.library import Query
from knowledge.outcome import (
    Cheated,
    Counterexample,
    Failed,
    Incorrect,
    Outcome,
    Passed,
    Stage,
    TimedOut,
)
from knowledge.signatures import find_signature
from operator_registry.hardware import HardwareSpec
from operator_registry.record import Record

FaultKind = Literal[
    # the code
    "refused", "build_error", "out_of_resources", "load_error", "crashed", "timed_out", "cheated",
    # the outputs
    "wrong_form", "wrong_values", "imprecise", "not_finite", "writes_outside", "nondeterministic",
    "needs_alignment", "keeps_state",
]  # fmt: skip
DiagnosisKind = FaultKind | TimeKind
CLOSE: Final = 0.02
"""A relative error below this is one of rounding: in bfloat16, TF32 or a doubtful order of sums."""
_FAILURES: Final[Mapping[Stage, tuple[DiagnosisKind, str]]] = {
    "screen": ("refused", "The code was refused before it was built"),
    "build": ("build_error", "The build failed"),
    "load": ("load_error", "It could not be loaded"),
    "run": ("crashed", "It failed while it ran"),
}


class Diagnosis(Record):
    """What an outcome shows."""

    kind: DiagnosisKind
    text: str
    """A few sentences for people and models, numbers with units in them."""
    signature: str = ""
    """Of an error: equal for the same fault, whatever the names and numbers; else empty."""
    terms: tuple[str, ...] = ()
    """What to search the library for."""
    workload: str | None = None
    """The public workload that it is about, where it is about one."""


def diagnose(
    outcome: Outcome,
    *,
    rooflines_ms: Mapping[str, float] | None = None,
    resources: Sequence[KernelResources] = (),
    on_device: bool = True,
) -> Diagnosis:
    """Return what an outcome shows.

    Args:
        outcome: How the trial ended.
        rooflines_ms: By public workload, the least time to move its bytes; see
            `knowledge.roofline.public_rooflines_ms`.
        resources: What the compiler reports of the kernels, where that is known.
        on_device: Whether the hardware is a device with launches, not the host's processor.
    """
    match outcome:
        case Passed():
            found = find_bottleneck(outcome, rooflines_ms or {}, resources, on_device=on_device)
            return Diagnosis(
                kind=found.kind, text=found.text, terms=found.terms, workload=found.workload
            )
        case Incorrect():
            return _diagnose_values(outcome)
        case Failed(stage="screen", log=log):
            kind, words = _FAILURES["screen"]
            return Diagnosis(
                kind=kind, text=f"{words}: {log}", terms=("refused by the screen", log)
            )
        case Failed():
            return _diagnose_failure(outcome)
        case TimedOut(stage=stage, deadline_s=deadline_s):
            text = f"It was still busy after {deadline_s:g} s and was killed (stage: {stage})."
            terms = ("timed out", "endless loop" if stage == "run" else "compile time", stage)
            return Diagnosis(kind="timed_out", text=text, terms=terms)
        case Cheated(guard=guard, detail=detail):
            text = f"The judge's guard '{guard}' caught it: {detail}."
            return Diagnosis(kind="cheated", text=text, terms=("cheated", guard, detail))


def make_query(
    diagnosis: Diagnosis | None,
    *,
    hardware: HardwareSpec,
    language: str | None = None,
    regions: Sequence[str] = (),
) -> Query:
    """Return what to ask the library; without a diagnosis, what helps with a first draft."""
    text = "\n".join((*diagnosis.terms, diagnosis.text)) if diagnosis else ""
    return Query(text=text, language=language, hardware=names_of(hardware), regions=tuple(regions))


def _diagnose_failure(outcome: Failed) -> Diagnosis:
    reading = read_log(outcome.log)
    known = find_signature(reading.message, outcome.log)
    kind, words = _FAILURES[outcome.stage]
    if known is not None and known.out_of_resources:
        kind = "out_of_resources"
    text = f"{words}{_place(reading)}: {reading.message or 'its log is empty'}"
    if known is not None:
        text += f"\nKnown as: {known.name}."
    return Diagnosis(
        kind=kind,
        text=text,
        signature=reading.signature,
        terms=(*(known.terms if known else ()), reading.message.partition("\n")[0]),
    )


def _place(reading: LogReading) -> str:
    if reading.line is None:
        return ""
    return f" at line {reading.line}" + (f" ({reading.source})" if reading.source else "")


def _diagnose_values(outcome: Incorrect) -> Diagnosis:
    shown = outcome.counterexample
    hints: tuple[str, ...] = ()
    kind, terms = _classify(outcome.reason, shown)
    text = f"An output is wrong: {outcome.reason}."
    if shown is not None:
        text += (
            f" {shown.output}[{', '.join(map(str, shown.index))}] is {shown.got}, wanted is "
            f"{shown.wanted}, at sizes {_sizes(shown.sizes)}"
        )
        text += f", dtypes {_sizes(shown.dtypes)}" if shown.dtypes else ""
        text += f", inputs scaled by {shown.scale:g}" if shown.scale != 1 else ""
        text += f", {shown.distribution} values." if shown.distribution != "stated" else "."
        hints = _hints(shown)
    return Diagnosis(kind=kind, text=text, terms=(*terms, *hints))


def _classify(  # noqa: PLR0911 - one case for each way to be wrong
    reason: str, shown: Counterexample | None
) -> tuple[DiagnosisKind, tuple[str, ...]]:
    if "two runs" in reason:
        return "nondeterministic", ("nondeterministic", "atomics race between two runs")
    if "is written to" in reason:
        what = "input written in place" if "the input" in reason else "out of bounds store mask"
        return "writes_outside", ("writes outside", what)
    if "odd address" in reason:
        return "needs_alignment", ("misaligned address", "unaligned inputs")
    if "run before" in reason:
        return "keeps_state", ("keeps state between calls", "uninitialised scratch")
    if "has the shape" in reason or "has the dtype" in reason or "members" in reason:
        return "wrong_form", ("wrong shape or dtype", "plan output")
    if "not finite" in reason or (shown and not _is_finite(shown.got) and _is_finite(shown.wanted)):
        return "not_finite", ("NaN or infinity", "masked load other value", "overflow of exp")
    if shown is not None and _is_close(shown.got, shown.wanted):
        return "imprecise", ("imprecise", "rounding accumulate in float32", "tf32 bfloat16")
    return "wrong_values", ("wrong values",)


def _hints(shown: Counterexample) -> tuple[str, ...]:
    """Return what the counterexample's sizes and values suggest."""
    hints = []
    if any(size % 2 and size > 1 for size in shown.sizes.values()):
        hints.append("wrong only at odd sizes: mask of the tail")
    if any(size == 1 for size in shown.sizes.values()):
        hints.append("size one edge case")
    if shown.scale > 1 or shown.distribution == "hostile":
        hints.append("large magnitude hostile values overflow")
    return tuple(hints)


def _sizes(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(values.items()))


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _is_finite(text: str) -> bool:
    number = _number(text)
    return number is None or math.isfinite(number)


def _is_close(got: str, wanted: str) -> bool:
    mine, right = _number(got), _number(wanted)
    if mine is None or right is None or "." not in f"{got}{wanted}":
        return False
    return abs(mine - right) <= CLOSE * abs(right)
