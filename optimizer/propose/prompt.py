"""What a model is told: of its task, of the node that it grows from, and of what is known.

A prompt is made of parts. Where they are too long together, the least important are left out, so
that what remains is whole.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from knowledge.document import Document
from operator_registry.hardware import HardwareSpec
from operator_registry.registry import Operator
from operator_registry.spec import OneMoreAxis, OperatorSpec, RangeAxis, SumAxis
from optimizer.candidate import Candidate
from optimizer.errors import ProposalError
from optimizer.propose.fence import fence, one_line
from optimizer.propose.gauge import Gauge, weigh
from optimizer.propose.model import Message
from optimizer.propose.proposer import Attempt, NodeContext
from optimizer.propose.telling import tell, tell_shortly

_SUMMARY: Final = 300
_NOTE: Final = 120
_SOURCE: Final = 8_000
_CODE: Final = 60_000
_DOCUMENT: Final = 16_000
_HISTORY: Final = 40
_FRAME: Final = 16
"""Tokens for what a chat template puts around the messages."""


class Rank(IntEnum):
    """Which parts are left out first: those of the highest rank, of one rank the last."""

    TASK = 0
    MOVES = 1
    NODE = 2
    DIAGNOSIS = 3
    MATE = 4
    HISTORY = 5
    DOCUMENT = 6


@dataclass(frozen=True)
class Part:
    """A piece of a prompt that is there whole or not at all."""

    rank: Rank
    text: str


def assemble(
    rules: str, parts: Sequence[Part], closing: str, *, gauge: Gauge, most_tokens: int
) -> tuple[Message, ...]:
    """Return the messages of a prompt of at most so many tokens, as far as can be known.

    Raises:
        ProposalError: The task alone is too long.
    """
    kept = [(part, weigh(f"{part.text}\n\n")) for part in parts]
    fixed = weigh(rules) + weigh(closing)
    while gauge.estimate(fixed + sum(weight for _, weight in kept)) + _FRAME > most_tokens:
        place = max(range(len(kept)), key=lambda p: (kept[p][0].rank, p), default=None)
        if place is None or kept[place][0].rank <= Rank.MOVES:
            msg = f"the task takes more than {most_tokens} tokens, which is all that a prompt may"
            raise ProposalError(msg)
        del kept[place]
    text = "\n\n".join((*(part.text for part, _ in kept), closing))
    return (Message(role="system", text=rules), Message(role="user", text=text))


def task_parts(operator: Operator, hardware: HardwareSpec) -> Iterator[Part]:
    """Yield what is to be computed, and on what."""
    yield Part(Rank.TASK, f"# Hardware\n{describe_hardware(hardware)}")
    spec = operator.spec
    lines = [f"# Operator {spec.name}", *_tensor_lines(spec), *_workload_lines(spec, hardware)]
    if spec.summary:
        lines.insert(1, fence("summary", spec.summary, longest=_SUMMARY))
    lines.append(f"The reference is `{spec.reference}` in this file:")
    lines.append(fence("reference.py", operator.source, longest=_SOURCE))
    yield Part(Rank.TASK, "\n".join(lines))


def node_parts(
    node: NodeContext,
    operator: Operator,
    hardware: HardwareSpec,
    *,
    documents: Sequence[Document] = (),
) -> Iterator[Part]:
    """Yield what is known of the node, of its mate, of what was tried, and of the matter."""
    if node.candidate is not None:
        yield Part(Rank.NODE, f"# The kernel to better\n{_code(node.candidate)}")
        if node.outcome is not None:
            told = tell(node.outcome, node.candidate, operator, hardware)
            if node.fitness > 0:
                told = f"{told}\nOver all: {node.fitness:.3f} times the best peer's speed."
            yield Part(Rank.DIAGNOSIS, f"# What the judge found\n{told}")
    if node.mate is not None:
        how = tell_shortly(node.mate.outcome, node.mate.fitness)
        code = _code(node.mate.candidate)
        yield Part(Rank.MATE, f"# A second kernel, to cross it with ({how})\n{code}")
    for place, attempt in enumerate(reversed(node.history[-_HISTORY:])):
        heading = "# What was tried, the latest first\n" if place == 0 else ""
        yield Part(Rank.HISTORY, heading + _attempt(attempt))
    for place, document in enumerate(documents):
        heading = "# What is known\n" if place == 0 else ""
        yield Part(Rank.DOCUMENT, heading + _document(document))


def describe_hardware(hardware: HardwareSpec) -> str:
    """Return a device's limits in lines."""
    limits = {
        name: value
        for name, value in hardware.limits.model_dump(exclude_none=True).items()
        if name != "peak_tflop_s"
    }
    arch = one_line(hardware.compile.arch, longest=_SUMMARY)
    lines = [f"{hardware.name}, {arch}, {' or '.join(hardware.languages)}"]
    lines += [f"- {name}: {value:g}" for name, value in limits.items()]
    peaks = ", ".join(f"{d} {v:g}" for d, v in hardware.limits.peak_tflop_s.items())
    return "\n".join([*lines, *([f"- peak TFLOP/s: {peaks}"] if peaks else [])])


def _tensor_lines(spec: OperatorSpec) -> Iterator[str]:
    for name, axis in spec.axes.items():
        match axis:
            case RangeAxis():
                step = f", a multiple of {axis.multiple_of}" if axis.multiple_of > 1 else ""
                yield f"- axis {name}: {axis.min} to {axis.max}{step}"
            case SumAxis():
                yield f"- axis {name}: the sum of {axis.sum_of}, which the data decide"
            case OneMoreAxis():
                yield f"- axis {name}: one more than {axis.one_more_than}"
    for name, dtypes in spec.dtypes.items():
        yield f"- dtype {name}: {' or '.join(dtypes)}"
    for kind, tensors in (("input", spec.inputs), ("output", spec.outputs)):
        for name, tensor in tensors.items():
            several = f", a list over {tensor.list_over}" if tensor.list_over else ""
            yield f"- {kind} {name}: {tensor.dtype}[{', '.join(tensor.shape)}]{several}"
    for name, attribute in spec.attributes.items():
        yield f"- attribute {name}: {attribute.value}"


def _workload_lines(spec: OperatorSpec, hardware: HardwareSpec) -> Iterator[str]:
    for workload in spec.workloads_on(hardware.target):
        given = {**workload.sizes, **workload.dtypes, **workload.attributes}
        told = ", ".join(f"{name}={value}" for name, value in given.items())
        yield f"- public workload {workload.name}: {told}"


def _code(candidate: Candidate) -> str:
    plan = candidate.plan.model_dump_json(exclude_defaults=True, by_alias=True)
    lines = [fence(f"{candidate.plan.language} file", candidate.code, longest=_CODE)]
    lines.append(fence("its plan", plan, longest=_CODE))
    if candidate.chosen:
        chosen = ", ".join(f"{name}={value}" for name, value in candidate.chosen.items())
        lines.append(f"Chosen: {one_line(chosen, longest=_SUMMARY)}")
    return "\n".join(lines)


def _attempt(attempt: Attempt) -> str:
    how = tell_shortly(attempt.outcome, attempt.fitness)
    note = attempt.candidate.note or "no note"
    return fence(f"an attempt that {how}", one_line(note, longest=_NOTE), longest=_NOTE)


def _document(document: Document) -> str:
    title = one_line(document.title, longest=_NOTE)
    return fence("a document", f"{title}\n{document.text}", longest=_DOCUMENT)
