"""How a trial of a candidate ended. A bad candidate is data, never an exception."""

from typing import Annotated, Literal

from pydantic import Field

from operator_registry.record import Record
from operator_registry.spec import Distribution, Scalar

Stage = Literal["screen", "build", "load", "run"]


class PeerTime(Record):
    """A peer's times on one workload, for ranking: see `WorkloadTime`."""

    name: str
    """Form and mode, such as ``reference/eager`` or ``fused/compile-default``."""
    device_ms: float = Field(gt=0)
    call_ms: float = Field(gt=0)


class WorkloadTime(Record):
    """Times of the candidate on one public workload, and the peers' beside it, for ranking.

    They are the 20th percentile of their samples, which a busy machine disturbs least. The peers'
    may be older than the candidate's: what is claimed is measured in pairs, in a confirming run.
    """

    workload: str
    weight: float = Field(gt=0)
    device_ms: float = Field(gt=0)
    call_ms: float = Field(gt=0)
    peers: tuple[PeerTime, ...] = ()


class Passed(Record):
    """Every output agreed with the reference, so the candidate was timed."""

    kind: Literal["passed"] = "passed"
    times: tuple[WorkloadTime, ...]
    """Empty where there is no device to time on: the candidate was only checked."""
    library_only: bool = False


class Counterexample(Record):
    """One element that disagrees, and the input that shows it."""

    output: str
    index: tuple[int, ...]
    got: str
    """The value as text, so that NaN and 64-bit integers survive JSON."""
    wanted: str
    sizes: dict[str, int]
    dtypes: dict[str, str] = {}
    attributes: dict[str, Scalar] = {}
    seed: int
    scale: float = 1.0
    """The factor on floating inputs."""
    distribution: Distribution = "stated"


class Incorrect(Record):
    """An output has the wrong shape, dtype or values."""

    kind: Literal["incorrect"] = "incorrect"
    reason: str
    counterexample: Counterexample | None = None
    """Absent where shape or dtype is already wrong."""


class Failed(Record):
    """The candidate could not be built, loaded or run to its end."""

    kind: Literal["failed"] = "failed"
    stage: Stage
    log: str


class TimedOut(Record):
    """The candidate was still busy at its deadline and was killed."""

    kind: Literal["timed_out"] = "timed_out"
    stage: Stage
    deadline_s: float = Field(gt=0)


class Cheated(Record):
    """A guard saw the candidate earn its time or its output in another way than by computing."""

    kind: Literal["cheated"] = "cheated"
    guard: str
    detail: str


Outcome = Annotated[Passed | Incorrect | Failed | TimedOut | Cheated, Field(discriminator="kind")]
