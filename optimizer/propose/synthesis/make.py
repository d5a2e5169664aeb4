"""The proposers of a search: the synthesiser, after a capture in a child, the tuner, a model."""

from collections.abc import Iterator

from operator_registry.hardware import HardwareSpec
from operator_registry.registry import Operator
from optimizer.errors import CaptureError
from optimizer.evaluate import sandbox
from optimizer.propose.caller import Caller
from optimizer.propose.models import make_model_proposers
from optimizer.propose.proposer import Proposer
from optimizer.propose.synthesis.graph import CaptureReply, CaptureRequest, Graph
from optimizer.propose.synthesis.proposer import SynthesisProposer
from optimizer.propose.tuner import Tuner
from optimizer.propose.writer import Writer

CAPTURE = "optimizer.propose.synthesis.capture:answer"
CAPTURE_S = 120.0
"""How long the capture of one form may take; importing torch is part of the first."""


def make_proposers(
    operator: Operator, hardware: HardwareSpec, *, caller: Caller | None = None
) -> tuple[Proposer, ...]:
    """Return the proposers for an operator, in the order in which a search asks them.

    Args:
        operator: What is computed.
        hardware: On what.
        caller: Asks the language model, where there is one.

    Raises:
        CaptureError: Neither the reference nor an equivalent can be synthesised, and no model
            writes kernels either; says why.
    """
    graphs, reasons = capture_forms(operator)
    synthesis = SynthesisProposer(operator, graphs, hardware)
    own = (synthesis, Tuner(hardware))
    models = make_model_proposers(operator, hardware, caller, own=own) if caller else ()
    if not synthesis.drafts and not any(isinstance(model, Writer) for model in models):
        why = "; ".join([*reasons, *synthesis.reasons])
        msg = f"{operator.name} can't be synthesised for {hardware.name}: {why}"
        raise CaptureError(msg)
    return (*own, *models)


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
