"""What a confirming run measured. `knowledge.verdict.judge` says what it proves."""

from typing import Annotated, Literal

from pydantic import Field

from knowledge.evaluation import Environment
from knowledge.profile import Profile
from operator_registry.record import Record

Figure = Literal["device_ms", "call_ms"]
Ending = Literal[
    "stopped",
    "seconds",
    "trials",
    "device_s",
    "cpu_s",
    "tokens",
    "money_usd",
    "stalled",
    "fitness",
    "roofline",
    "nothing_left",
]
"""Why a search ended; `optimizer.search.endings` has the words."""


LARGEST_RATIO = 1e9
"""Stands for "no upper end": infinity has no place in JSON."""


class Interval(Record):
    """A two-sided interval around an estimate, on the ratio's own scale."""

    low: float
    estimate: float
    high: float

    @property
    def bounded(self) -> bool:
        """Return whether it has two ends; that of too few process pairs has none."""
        return self.low > 0 and self.high < LARGEST_RATIO


class PeerRow(Record):
    """A peer in the confirming run: medians over process pairs."""

    name: str
    device_ms: float
    call_ms: float
    peak_bytes: int | None = None
    """Of memory in one call; None where it was not weighed."""
    first_call_ms: float | None = None
    """See `WorkloadEvidence.first_call_ms`."""


class WorkloadEvidence(Record):
    """One public workload: baseline time over kernel time, pair by pair."""

    workload: str
    sizes: dict[str, int]
    dtypes: dict[str, str] = {}
    weight: float
    served_by: str
    """The variant's name, or the peer's where the dispatch table hands the workload back."""
    device_ms: float
    """Median of the kernel (or of the peer that serves)."""
    call_ms: float
    peers: tuple[PeerRow, ...]
    best_peer: str
    """The baseline by the goal's figure."""
    pair_ratios: tuple[float, ...]
    """Best peer's time over the kernel's, one number for each process pair, by the figure."""
    pair_ms: tuple[float, ...] = ()
    """The kernel's median in each process pair; empty where a peer serves."""
    baseline_pair_ms: tuple[float, ...] = ()
    """The baseline's: over `pair_ms` it gives `pair_ratios`."""
    ratio: Interval
    """Simultaneous over the workloads."""
    spread: tuple[float, float]
    """10th and 90th percentile of the kernel's samples, in ms, by the figure."""
    quantiles_ms: tuple[float, ...] = ()
    """Of all samples of what serves, from the least to the greatest in steps of 5 %."""
    baseline_quantiles_ms: tuple[float, ...] = ()
    peak_bytes: int | None = None
    """Memory of one call at its peak: inputs, outputs and workspace; None if not weighed."""
    workspace_bytes: int | None = None
    first_call_ms: float | None = None
    """Of the first call in a fresh process, compiling there included, by that process's clock."""
    share_of_roofline: float | None = None
    error: float
    """Worst error of the kernel against the float64 oracle, relative to the oracle's scale."""
    reference_error: float


class NullRun(Record):
    """The baseline measured against itself beside the confirming run; it must show nothing."""

    pair_ratios: tuple[float, ...]
    ratio: Interval


class KernelResources(Record):
    """What the compiler reports of one compiled kernel."""

    kernel: str
    artefact_sha256: str
    registers: int | None = None
    spill_bytes: int | None = None
    shared_bytes: int | None = None
    occupancy: float | None = None
    """The share of a multiprocessor's threads that registers and shared memory leave room for."""


class DeviceState(Record):
    """A device at one moment."""

    sm_mhz: float
    memory_mhz: float
    celsius: float
    slowed_by: tuple[str, ...] = ()
    """Why it runs below the clocks that it could have."""


class Conditions(Record):
    """What went on beside the process pairs."""

    load: tuple[float, float]
    """The machine's load average before and after."""
    device: tuple[DeviceState, ...] = ()
    """Before and after; empty where there is no device, or it does not tell."""
    other_processes: int | None = None
    """Processes on the device that are not the judge's; None where nobody says."""
    page_faults: tuple[float, float] = (0, 0)
    """Minor ones in a call, of the kernel and of the baseline: the worst workload's medians."""
    disturbed: tuple[float, float] = (0, 0)
    """The share of calls in which another process took a thread's place, of both."""
    dry: tuple[float, float] = (0, 0)
    """The share of calls to which the device came before all of it was enqueued, of both.

    Their device time may hold a wait for the host: it counts only where there are no others."""
    late_ms: float = 0.0
    """How long the device was busy after the kernel's end events, at most over the workloads."""
    input_sets: int = 0
    """Draws of each workload's inputs, each at an address of its own, that the samples went round.

    Beside them, floating values are shifted to another order before each sample."""


class SearchSummary(Record):
    """How the winner was found."""

    trials: int
    passed: int
    seconds: float
    proposer: str
    best_so_far: tuple[float, ...] = ()
    """Best fitness after each trial."""
    ending: Ending | None = None
    """Why it ended; None where that was not recorded."""


class Evidence(Record):
    """The confirming run of one candidate in one environment."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    candidate: str
    operator: str
    operator_digest: str
    hardware: str
    environment: Environment
    judge_version: str
    figure: Figure
    minimum_gain: float
    alpha: float
    """One-sided level of `ratio`'s lower end."""
    workloads: tuple[WorkloadEvidence, ...] = Field(min_length=1)
    ratio: Interval
    """Weighted geometric mean over the workloads."""
    versus_eager: float
    """Geometric mean of eager reference time over kernel time; a figure, not a claim."""
    null: NullRun
    host: Literal["plan", "python"] = "plan"
    """Whether a plan is run, or the candidate's own Python, in the process that is timed."""
    source_sha256: str
    resources: tuple[KernelResources, ...] = ()
    launched: tuple[str, ...] = ()
    library_only: bool = False
    checked_sizes: int
    """Public and drawn sizes whose outputs agreed."""
    checked_seeds: int = 0
    """Secret seeds that values came from."""
    distributions: tuple[str, ...] = ()
    """What values were drawn by."""
    memory_leave: float = 1.1
    """How many times the baseline's peak of memory the kernel may take, by the spec."""
    seed: int
    """The master seed of the drawn sizes and values, told after the run."""
    conditions: Conditions | None = None
    faults: tuple[str, ...] = ()
    """Why the measurement can't be trusted, such as page faults on one side only."""
    not_tested: tuple[str, ...] = ()
    profile: tuple[Profile, ...] = ()
    """The winner's beside the baseline's, taken after the timed run."""
    earlier_pairs: int = 0
    """How many of the pairs are those of earlier confirming runs of the same candidate."""
    samples_sha256: str = ""
    """The hash of all raw samples, which are kept outside git under this name."""
    search: SearchSummary | None = None
    measured_at: str
    """ISO 8601, UTC."""


class Better(Record):
    """The candidate is faster than the best peer, by more than the goal's minimum."""

    kind: Literal["better"] = "better"


class NotBetter(Record):
    """The candidate's ratio is measured well enough to say that it does not reach the goal."""

    kind: Literal["not_better"] = "not_better"
    reason: str


class Unclear(Record):
    """The interval holds both answers, or the measurement can't be trusted."""

    kind: Literal["unclear"] = "unclear"
    reason: str


Verdict = Annotated[Better | NotBetter | Unclear, Field(discriminator="kind")]
