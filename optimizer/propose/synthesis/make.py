"""The proposers of a search: the reference captured in a child, the synthesiser and the tuner."""

from collections.abc import Iterator

from operator_registry.hardware import HardwareSpec
from operator_registry.registry import Operator
from optimizer.errors import CaptureError
from optimizer.evaluate import sandbox
from optimizer.propose.proposer import Proposer
from optimizer.propose.synthesis.graph import CaptureReply, CaptureRequest, Graph
from optimizer.propose.synthesis.proposer import SynthesisProposer
from optimizer.propose.tuner import Tuner

CAPTURE = "optimizer.propose.synthesis.capture:answer"
CAPTURE_S = 120.0
"""How long the capture of one form may take; importing torch is part of the first."""


def make_proposers(operator: Operator, hardware: HardwareSpec) -> tuple[Proposer, ...]:
    """Return the proposers for an operator, in the order in which a search asks them.

    Raises:
        CaptureError: Neither the reference nor an equivalent can be synthesised; says why.
    """
    graphs, reasons = capture_forms(operator)
    synthesis = SynthesisProposer(operator, graphs, hardware)
    if not synthesis.drafts:
        why = "; ".join([*reasons, *synthesis.reasons])
        msg = f"{operator.name} can't be synthesised for {hardware.name}: {why}"
        raise CaptureError(msg)
    return (synthesis, Tuner())


def capture_forms(operator: Operator) -> tuple[list[Graph], list[str]]:
    """Return the graphs of the forms that can be captured, and why others can't.

    The operator's code runs in a child only.
    """
    graphs: list[Graph] = []
    reasons: list[str] = []
    for reply in _ask(operator):
        if reply.graph is not None:
            graphs.append(reply.graph)
        else:
            reasons.append(reply.reason)
    return graphs, reasons


def _ask(operator: Operator) -> Iterator[CaptureReply]:
    child: sandbox.Child | None = None
    try:
        for form in (operator.spec.reference, *operator.spec.equivalents):
            if child is None or not child.alive:
                if child is not None:
                    child.kill()
                child = sandbox.start(CAPTURE, limits=sandbox.Limits(wall_s=CAPTURE_S))
            request = CaptureRequest(operator=operator, form=form)
            try:
                reply = child.ask(request.to_json(), deadline_s=CAPTURE_S)
                yield CaptureReply.from_json(reply)
            except sandbox.ChildError as error:
                child.kill()
                yield CaptureReply(reason=f"{form}: the capture did not end well: {error}")
    finally:
        if child is not None:
            child.kill()
