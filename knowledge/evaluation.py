"""One trial of a candidate, with all that is needed to repeat it."""

from typing import Literal

from pydantic import Field

from knowledge.outcome import Outcome
from operator_registry.record import Record, digest


class Environment(Record):
    """Where a result holds: results of two environments are never compared."""

    device: str
    """The device's own name: the processor's model, or the GPU's."""
    arch: str
    torch: str
    triton: str = ""
    compiler: str = ""
    """The host compiler's version line, for C++."""
    driver: str = ""
    python: str
    threads: int = Field(ge=1)


class Evaluation(Record):
    """A trial: what was tried, where, by which judge, and how it ended."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    candidate: str
    """The candidate's id."""
    operator: str
    operator_digest: str
    hardware: str
    environment: Environment
    judge_version: str
    outcome: Outcome
    took_s: float = Field(ge=0)

    @property
    def key(self) -> str:
        """Return the hash under which this result is never computed twice."""
        return evaluation_key(
            self.candidate, self.operator_digest, self.environment, self.judge_version
        )


def evaluation_key(
    candidate: str, operator_digest: str, environment: Environment, judge_version: str
) -> str:
    """Return the key of a result: candidate x spec x environment x judge."""
    return digest(candidate, operator_digest, environment, judge_version)
