"""What a job is asked and what it answers: the JSON between the daemon and ``python -m optimizer``.

No torch here: the daemon imports this module and starts the job as a process of its own.
"""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, TypeAdapter, model_validator

from knowledge.admission import Admission
from knowledge.evaluation import Environment, Evaluation
from knowledge.evidence import Ending, Evidence, Verdict
from operator_registry.hardware import HardwareSpec
from operator_registry.record import Record
from operator_registry.registry import Operator
from optimizer.aa_table import AaSummary
from optimizer.candidate import Candidate
from optimizer.landscapes.search_record import SearchSummary
from optimizer.propose.model import ModelSettings
from optimizer.runners.access import LentDevice
from optimizer.spending import Allowance
from optimizer.throughput_table import ThroughputSummary

FIRST_ALPHA = 0.00025
"""One-sided level of a goal's first confirming run; halved for each further one."""
Message = Literal["finished", "stopped", "recalled"]


class OptimizeRequest(Record):
    """Search for a kernel that beats every peer, confirm it, and write its folder."""

    operator: Operator
    hardware: HardwareSpec
    goal_key: str
    """Names the search: a job with the key of a killed one goes on where that one was."""
    store_url: str
    state_folder: Path
    """Artefacts and caches; may be deleted at any time."""
    out_folder: Path
    """A kernel is written to ``out_folder/OPERATOR/HARDWARE``."""
    budget_s: float = Field(default=60.0, gt=0)
    """For searching and proving. Capture and the peers' first measurement come before it."""
    minimum_gain: float = Field(default=1.05, ge=1)
    alpha: float = Field(default=FIRST_ALPHA, gt=0, lt=1)
    incumbent_folder: Path | None = None
    """The published kernel to beat; its candidates are tried first."""
    published_folders: tuple[Path, ...] = ()
    """Published kernels for this hardware of operators that are alike: where to begin, perhaps."""
    warm_start: float = Field(default=0.1, ge=0, le=1)
    """The probability with which each kernel that was proven for the like is tried first."""
    accept_weak_sandbox: bool = False
    """Let foreign proposers' candidates run although a wall around them is missing here."""
    allowance: Allowance = Field(default_factory=Allowance)
    """What may be spent; of seconds a part is kept for the proof, as of the budget."""
    trials: int | None = Field(default=None, ge=1)
    """The search ends after so many."""
    fitness: float | None = Field(default=None, gt=0)
    """The search ends with a candidate of so many times its best peer's speed."""
    roofline_percent: float | None = Field(default=None, ge=0)
    """The search ends with a candidate so near the time that the device's memory allows."""
    model: ModelSettings | None = None
    """The language model that proposes beside this program; None for none."""
    device: LentDevice | None = None
    """The device that is leased for it; where it is None, whatever the machine shows first."""


class OptimizeResult(Record):
    """How a search ended."""

    operator: str
    hardware: str
    message: Message
    """`recalled`: the goal had been finished before, and this is that result again."""
    verdict: Verdict | None
    """Absent where the job was stopped before it could judge."""
    evidence: Evidence | None = None
    candidate: Candidate | None = None
    """The confirmed candidate, or else the best that passed."""
    kernel_folder: Path | None = None
    """Written only where the verdict is Better."""
    best_fitness: float = 0.0
    trials: int = 0
    passed: int = 0
    outcomes: dict[str, int] = {}
    """Trials by the kind of their outcome."""
    ending: Ending | None = None
    """Why the search ended."""
    seconds: float = 0.0


class EvaluateRequest(Record):
    """Try one candidate, as a search would."""

    operator: Operator
    hardware: HardwareSpec
    candidate: Candidate
    state_folder: Path
    confirm: bool = False
    """Also make a confirming run and judge it."""
    budget_s: float = Field(default=60.0, gt=0)
    minimum_gain: float = Field(default=1.05, ge=1)


class EvaluateResult(Record):
    """The trial, and the confirming run where one was asked for."""

    evaluation: Evaluation
    fitness: float
    evidence: Evidence | None = None
    verdict: Verdict | None = None


class VerifyRequest(Record):
    """Replay a published kernel with new seeds."""

    kernel_folder: Path
    state_folder: Path
    budget_s: float = Field(default=60.0, gt=0)
    record: bool = False
    """Append the finding to the folder's ``verifications.jsonl``."""
    trusted_keys: tuple[str, ...] = ()
    """Public keys in hex; where there are some, a folder must bear the signature of one."""
    device: LentDevice | None = None
    """As in an `OptimizeRequest`."""


class Reproduced(Record):
    """The kernel is correct under new seeds and as fast as its evidence says."""

    kind: Literal["reproduced"] = "reproduced"


class NotReproduced(Record):
    """The folder is damaged, the kernel disagrees with its reference, or it is no longer faster."""

    kind: Literal["not_reproduced"] = "not_reproduced"
    reason: str


class CannotTell(Record):
    """It was replayed, but too noisily to say; more time or a quieter machine may tell."""

    kind: Literal["cannot_tell"] = "cannot_tell"
    reason: str


class CannotRun(Record):
    """This machine can't run it: another device, no compiler, no driver."""

    kind: Literal["cannot_run"] = "cannot_run"
    reason: str


Finding = Annotated[
    Reproduced | NotReproduced | CannotTell | CannotRun, Field(discriminator="kind")
]


class Verification(Record):
    """One line of ``verifications.jsonl``: a variant replayed."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    variant: str
    candidate: str
    finding: Finding
    environment: Environment | None = None
    ratio: float | None = None
    """Best peer's time over the kernel's in the replay, where it was timed."""
    published_ratio: float | None = None
    checked_sizes: int = 0
    seed: int | None = None
    """Drawn by the judge for this replay."""
    signature: str = ""
    """What the folder's signature is worth here; see `optimizer.signing`."""
    at: str
    """ISO 8601, UTC."""


class VerifyResult(Record):
    """The verification of each variant of a folder."""

    verifications: tuple[Verification, ...]


class BenchRequest(Record):
    """Run the optimise job for each operator and tabulate what came out."""

    operators: tuple[Operator, ...]
    hardware: HardwareSpec
    folder: Path
    """Where ``catalog.json`` and ``catalog.md`` go."""
    store_url: str
    state_folder: Path
    kernels_folder: Path | None = None
    """Where kernels that are Better are copied to, as ``OPERATOR/HARDWARE``."""
    budget_s: float = Field(default=60.0, gt=0)
    minimum_gain: float = Field(default=1.05, ge=1)
    commit: str
    command: str
    """As the person typed it; stands in the results file."""
    shard: tuple[int, int] = (1, 1)
    """Which part (from 1) of how many."""


class BenchResult(Record):
    """Where the table is and what it says in sum."""

    file: Path
    summary: dict[str, float]
    unfinished: tuple[str, ...] = ()
    """Operators without a row, such as those whose job could not run; each with its reason."""


class AaRequest(Record):
    """Compare a kernel with itself, and with known amounts of more work, again and again."""

    hardware: HardwareSpec
    folder: Path
    """Where ``aa.json`` and ``aa.md`` go; rows that are there stay."""
    state_folder: Path
    comparisons: int = Field(default=3000, ge=0)
    trials: int = Field(default=200, ge=0)
    """For each true gain."""
    pairs: int = Field(default=60, ge=2)
    """Process pairs that are kept alive."""
    per_comparison: int = Field(default=16, ge=2)
    """Pairs that serve one comparison."""
    rounds: int = Field(default=3, ge=1)
    """Samples of each side in each pair of an A/A comparison."""
    trial_rounds: int = Field(default=7, ge=1)
    """The same in a trial of a true gain."""
    commit: str
    command: str
    shard: tuple[int, int] = (1, 1)

    @model_validator(mode="after")
    def _has_the_pairs(self) -> Self:
        if self.per_comparison > self.pairs:
            msg = f"a comparison takes {self.per_comparison} of {self.pairs} pairs"
            raise ValueError(msg)
        return self


class AaResult(Record):
    """Where the table is and what it says in sum."""

    file: Path
    summary: AaSummary
    failures: tuple[str, ...] = ()
    """What the judge promises and did not keep."""
    unfinished: int = 0
    """Comparisons that are left, after a stop."""


class ThroughputRequest(Record):
    """Sweep one source's tunables through the judge, and count."""

    hardware: HardwareSpec
    folder: Path
    """Where ``throughput.json`` and ``throughput.md`` go."""
    state_folder: Path
    seconds: float = Field(default=60.0, gt=0)
    batch: int | None = Field(default=None, ge=1)
    """Candidates that are asked for together; if None, ten to a translation unit in C++."""
    commit: str
    command: str


class ThroughputResult(Record):
    """Where the table is and what it says in sum."""

    file: Path
    summary: ThroughputSummary
    failures: tuple[str, ...] = ()
    """What the judge promises and did not keep."""


class LandscapesRequest(Record):
    """Record schedule spaces: every point through the judge, once."""

    hardware: HardwareSpec
    folder: Path
    """Where ``NAME.json`` goes; points that are there stay."""
    state_folder: Path
    only: str = ""
    """The name of one space; all if empty."""
    points: int | None = Field(default=None, ge=1)
    """Of each space at most so many; all if None."""
    commit: str
    shard: tuple[int, int] = (1, 1)
    """Which part (from 1) of how many, of the spaces."""


class LandscapeRow(Record):
    """A landscape in numbers."""

    name: str
    points: int
    tried: int
    passed: int
    near_share: float | None = None
    """The share of points within 5 % of the optimum; absent until all are tried."""
    optimum_ms: float | None = None
    baseline_ms: float | None = None
    """The fastest peer under eager."""


class LandscapesResult(Record):
    """What was recorded."""

    folder: Path
    rows: tuple[LandscapeRow, ...]
    unfinished: tuple[str, ...] = ()
    """Spaces of which points are left."""
    too_easy: tuple[str, ...] = ()
    """Spaces with so many good points that they tell no search from another."""


class SearchBenchRequest(Record):
    """Replay recorded landscapes with every policy, random search and TPE."""

    folder: Path
    """Where the landscapes are."""
    file: Path
    """``search.json``; its Markdown goes beside it."""
    seeds: int = Field(default=20, ge=1)
    commit: str
    command: str


class SearchBenchResult(Record):
    """Where the table is and what it says in sum."""

    file: Path
    summary: SearchSummary
    failures: tuple[str, ...] = ()
    """What the default policy promises and did not keep."""
    unfinished: int = 0
    """Rows that are left, after a stop."""


class RedteamRequest(Record):
    """Put every kind of cheat before the judge, and its honest twin."""

    hardware: HardwareSpec
    only: str = ""
    """A pattern that the names of the kinds must match."""
    folder: Path | None = None
    """Where ``redteam.json`` and ``redteam.md`` go."""
    resume: bool = False
    """Rows that are there stay; what they tell of without a fault is not tried again."""
    commit: str
    command: str


class RedteamResult(Record):
    """What became of the cheats, in sum."""

    file: Path | None
    summary: dict[str, int]
    faults: tuple[str, ...]
    """Cheats that got through, twins that were refused, and kinds that prove nothing."""


class AdmitRequest(Record):
    """Probe operators: does what nobody computed pass their checks?"""

    operators: tuple[Operator, ...]
    hardware: HardwareSpec
    """Whose public workloads and dtypes count; it need not be here."""
    state_folder: Path


class AdmitResult(Record):
    """What the probes found of each operator."""

    admissions: tuple[Admission, ...]
    failures: tuple[str, ...] = ()
    """Why an operator could not be probed."""


class DoctorRequest(Record):
    """Say what this machine can build, run, time and sandbox."""

    state_folder: Path | None = None
    """Where judges remember devices that failed."""


class Ability(Record):
    """One thing that this machine can or can't do."""

    name: str
    able: bool
    detail: str
    remedy: str = ""
    """What to install or change, where it is not able."""


class DoctorResult(Record):
    """What this machine can do."""

    abilities: tuple[Ability, ...]


class PhaseEvent(Record):
    """The job has begun another part of its work."""

    event: Literal["phase"] = "phase"
    phase: Literal["capture", "baseline", "search", "confirm", "write", "check", "bench", "compare"]
    detail: str = ""
    seconds_left: float | None = None


class TrialEvent(Record):
    """A trial has ended and is in the store."""

    event: Literal["trial"] = "trial"
    number: int
    candidate: str
    origin: str
    note: str = ""
    outcome: str
    """The outcome's kind."""
    detail: str = ""
    """Why, where it did not pass."""
    fitness: float
    best: float
    reused: bool = False
    """Found in the store rather than run."""
    seconds_left: float


Result = (
    OptimizeResult
    | EvaluateResult
    | VerifyResult
    | BenchResult
    | AaResult
    | ThroughputResult
    | LandscapesResult
    | SearchBenchResult
    | RedteamResult
    | AdmitResult
    | DoctorResult
)
"""What a job ends in."""


class ResultEvent(Record):
    """The last event of a job."""

    event: Literal["result"] = "result"
    result: Result


class ErrorEvent(Record):
    """The last event of a job that could not do its work: a machine or a caller is at fault."""

    event: Literal["error"] = "error"
    error: str
    """The exception's name."""
    message: str


Event = Annotated[PhaseEvent | TrialEvent | ResultEvent | ErrorEvent, Field(discriminator="event")]
_EVENT: TypeAdapter[PhaseEvent | TrialEvent | ResultEvent | ErrorEvent] = TypeAdapter(Event)


def load_event(line: str | bytes) -> PhaseEvent | TrialEvent | ResultEvent | ErrorEvent:
    """Return the event that a line of a job's output tells.

    Raises:
        pydantic.ValidationError: The line is no event.
    """
    return _EVENT.validate_json(line)
