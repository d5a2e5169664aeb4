"""What stands beside a candidate in a judge that does not separate: reference and expectation.

Only the red team takes that guard down. This is then what a naive harness is like: it computes, in
the candidate's own process, what the candidate must give.
"""

from collections.abc import Mapping, Sequence

from operator_registry.inputs import load_reference
from operator_registry.registry import Operator
from operator_registry.spec import Scalar
from optimizer.evaluate.memory import Value


class Beside:
    """The reference, imported, and what it gave on the inputs of the next call."""

    def __init__(self, operator: Operator) -> None:
        self._reference = getattr(load_reference(operator), operator.spec.reference)
        self._expected: object = None

    def expect(self, inputs: Sequence[Value], attributes: Mapping[str, Scalar]) -> None:
        """Compute what a call on these inputs must give, and keep it in this process's memory."""
        self._expected = self._reference(*inputs, **attributes)
