"""Whether an operator's own checks tell a result from none."""

from typing import Literal

from pydantic import Field

from operator_registry.record import Record


class Admission(Record):
    """What the probes found of an operator."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    operator: str
    operator_digest: str
    cases: int
    fooled: dict[str, tuple[str, ...]]
    """For each output, the probes that its checks took for a result."""

    @property
    def admitted(self) -> bool:
        """Return whether some output can be had by no probe."""
        return any(not probes for probes in self.fooled.values())

    @property
    def reason(self) -> str:
        """Return why the operator is degenerate."""
        return "; ".join(f"{name} passes as {probes[0]}" for name, probes in self.fooled.items())
