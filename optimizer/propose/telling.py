"""What a proposer that is no part of this program may be told of a trial (pure).

Sizes, seeds and values that the judge drew stay with it: who knows them can compute for them
alone. Of a disagreement only its kind is told, of a log no number that the model has not seen, and
of what happened while a candidate ran nothing that the candidate could have put in words.
"""

import re
from collections.abc import Iterable
from typing import Final

from knowledge.bottleneck import find_bottleneck
from knowledge.evidence import Figure
from knowledge.fitness import find_best_peer, pick_figure
from knowledge.outcome import (
    Cheated,
    Counterexample,
    Failed,
    Incorrect,
    Outcome,
    Passed,
    TimedOut,
    WorkloadTime,
)
from knowledge.roofline import public_rooflines_ms
from knowledge.signatures import find_signature
from operator_registry.hardware import HardwareSpec
from operator_registry.registry import Operator
from optimizer.candidate import Candidate
from optimizer.propose.fence import fence, one_line

_LOG: Final = 1500
"""Characters of a log."""
_HIDDEN: Final = "#"
_WORD: Final = re.compile(r"\w+")
_DIGIT: Final = re.compile(r"\d")
_PLACE: Final = re.compile(r"(?<![\w./-])[\w./-]*\.(?:cpp|py):(\d{1,5})(?::\d{1,5})?(?=[:,\s])")
"""Where in the candidate's own code a compiler found something."""
_VOCABULARY: Final = frozenset((
    "0", "1", "2", "float16", "float32", "float64", "bfloat16", "int8", "uint8", "int16", "int32",
    "int64", "uint16_t", "uint32_t", "uint64_t", "int8_t", "int16_t", "int32_t", "int64_t",
    "uint8_t", "bf16", "fp16", "fp32", "fp64", "i1", "i32", "i64", "f16", "f32", "f64",
    "log2", "exp2", "avx2", "x86",
))  # fmt: skip
_ENDS: Final = (
    (re.compile(r"SIGABRT"), "it aborted"),
    (re.compile(r"SIGKILL|exited with code"), "its process ended"),
)
_FORMS: Final = (
    ("is written to", "it writes to memory that is not its to write: an input, or beside a tensor"),
    ("has the shape", "an output has a wrong shape"),
    ("has the dtype", "an output has a wrong dtype"),
    ("members, wanted", "an output has a wrong number of members"),
    ("between two runs", "two runs on the same inputs differ"),
    ("must be exact", "elements differ that must be exact"),
    ("is not finite where", "it is not finite where it must be, or finite where it must not be"),
    ("-norm is", "the error is larger than allowed"),
)
"""Kinds of disagreement by what the judge's own reasons say of them."""


def tell(outcome: Outcome, candidate: Candidate, operator: Operator, hardware: HardwareSpec) -> str:
    """Return how a trial ended, and what holds the candidate back, in lines."""
    match outcome:
        case Passed():
            return "\n".join(_tell_passed(outcome, operator, hardware))
        case Incorrect():
            return _tell_incorrect(outcome, operator)
        case Failed(stage=stage, log=log):
            if stage in ("screen", "build"):
                seen = known_words(candidate.code, candidate.plan.to_json(), operator.to_json())
                hidden = hide_numbers(log, seen)
                what = "the compiler's messages" if stage == "build" else "why it was not built"
                return f"It failed before it ran.\n{fence(what, hidden, longest=_LOG)}"
            return f"It failed while it ran: {_crash(log)}."
        case TimedOut(stage=stage, deadline_s=deadline_s):
            return f"It was still busy after {deadline_s:.0f} s ({stage}) and was ended."
        case Cheated(guard=guard):
            return (
                "The judge refused it: its time or its output was not earned by computing "
                f"(guard: {one_line(guard, longest=60)}). Compute all outputs in each call."
            )


def tell_shortly(outcome: Outcome, fitness: float) -> str:
    """Return the same in a few words."""
    match outcome:
        case Passed(times=()):
            return "passed, not timed"
        case Passed():
            return f"passed, {fitness:.2f}x the best peer's speed"
        case Incorrect(reason=reason):
            return f"incorrect: {_form(reason)}"
        case Failed(stage=stage):
            return f"failed ({stage})"
        case TimedOut(stage=stage):
            return f"too slow, ended ({stage})"
        case Cheated():
            return "refused as a cheat"


def known_words(*texts: str) -> frozenset[str]:
    """Return the words of texts that a model has seen."""
    return frozenset(word for text in texts for word in _WORD.findall(text)) | _VOCABULARY


def hide_numbers(log: str, seen: frozenset[str]) -> str:
    """Return a log without the digits of any word that is not among those seen."""

    def hide(found: re.Match[str]) -> str:
        word = found.group()
        if word in seen or not _DIGIT.search(word):
            return word
        # The digits of a number in base 16 are letters too.
        return _HIDDEN if _DIGIT.match(word) else _DIGIT.sub(_HIDDEN, word)

    parts: list[str] = []
    last = 0
    for place in _PLACE.finditer(log):
        parts += [_WORD.sub(hide, log[last : place.start()]), f"line {place.group(1)}"]
        last = place.end()
    parts.append(_WORD.sub(hide, log[last:]))
    return "".join(parts)


def _tell_passed(outcome: Passed, operator: Operator, hardware: HardwareSpec) -> Iterable[str]:
    rooflines_ms = public_rooflines_ms(operator.spec, hardware)
    if outcome.times:
        figure = pick_figure(outcome.times)
        yield f"It is correct. Its times on the public workloads ({figure}), in ms:"
        for time in outcome.times:
            yield _tell_time(time, figure, rooflines_ms.get(time.workload))
    # Public workloads and a compiler's report: nothing that the judge drew is in it.
    on_device = hardware.target != "cpu"
    yield find_bottleneck(outcome, rooflines_ms, (), on_device=on_device).text


def _tell_time(time: WorkloadTime, figure: Figure, least_ms: float | None) -> str:
    mine_ms = getattr(time, figure)
    line = f"- {time.workload}: {mine_ms:.4g}"
    if peer := find_best_peer(time, figure):
        best_ms = getattr(peer, figure)
        line += f", best peer {best_ms:.4g} ({one_line(peer.name, longest=60)})"
        line += f", ratio {best_ms / mine_ms:.2f}"
    return line if least_ms is None else f"{line}; DRAM alone takes {least_ms:.3g}"


def _tell_incorrect(outcome: Incorrect, operator: Operator) -> str:
    lines = [f"It is incorrect: {_form(outcome.reason)}."]
    if example := outcome.counterexample:
        lines += _tell_example(example, operator)
    return "\n".join(lines)


def _tell_example(example: Counterexample, operator: Operator) -> Iterable[str]:
    if example.output in operator.spec.outputs:
        yield f"- output: {example.output}"
    public = [w.name for w in operator.spec.workloads if w.sizes == example.sizes]
    yield f"- where: {f'workload {public[0]}' if public else 'at a size that the judge drew'}"
    admitted = operator.spec.dtypes
    dtypes = [f"{n}={d}" for n, d in example.dtypes.items() if d in admitted.get(n, ())]
    if dtypes:
        yield f"- dtypes: {', '.join(dtypes)}"
    yield f"- values: {example.distribution}{'' if example.scale == 1 else ', scaled'}"
    yield f"- kind: {_kind(example.got)} where {_kind(example.wanted)} is wanted"


def _kind(value: str) -> str:
    text = value.strip().lower().lstrip("+-")
    if text.startswith("nan"):
        return "NaN"
    if text.startswith("inf"):
        return "an infinity"
    try:
        return "zero" if float(text) == 0 else "another number"
    except ValueError:
        return "another value"


def _form(reason: str) -> str:
    return next((words for sign, words in _FORMS if sign in reason), "an output disagrees")


def _crash(log: str) -> str:
    """Return in our own words how a run ended: the log's may be the candidate's."""
    if known := find_signature(log):
        return known.name
    return next((words for sign, words in _ENDS if sign.search(log)), "it raised an error")
