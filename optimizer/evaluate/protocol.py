"""What the judge tells its worker processes and what they answer: JSON over a private socket.

Tensors travel in files of shared memory that the judge owns; the messages only name them.
"""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from knowledge.profile import KernelCounters
from operator_registry.hardware import HardwareSpec
from operator_registry.record import Record
from operator_registry.registry import Operator
from operator_registry.spec import Distribution, DType, OperatorSpec, Scalar, Workload
from optimizer.candidate import Choice
from optimizer.evaluate.guards import Guard
from optimizer.plan import Plan
from optimizer.profilers.trace import Trace
from optimizer.targets.target import Artefact, Build

Size = int | tuple[int, ...]
"""One size, or one for each member of a list of tensors."""
CANDIDATE = "candidate"
"""The name of the candidate among a worker's subjects; peers are named ``form/mode``."""


class Form(Record):
    """Shape and dtype of a tensor."""

    shape: tuple[int, ...]
    dtype: DType


class TensorFile(Form):
    """A tensor's elements in a file of shared memory, contiguous."""

    path: str


Stored = TensorFile | tuple[TensorFile, ...]
"""A tensor, or a list of them."""


class LentMemory(Record):
    """Memory of the judge, as a process finds it."""

    path: str
    """A file of shared memory; on a device the socket through which it is handed over."""
    nbytes: int


class Case(Record):
    """Inputs at one workload's sizes: all that a candidate's process is told of it."""

    key: str
    attributes: dict[str, Scalar]
    sets: tuple[tuple[Stored, ...], ...] = Field(min_length=1)
    """Several draws of all inputs, in the spec's order."""


class LoadCandidate(Record):
    """Load a built candidate; it becomes the subject `CANDIDATE`."""

    kind: Literal["load_candidate"] = "load_candidate"
    spec: OperatorSpec
    hardware: HardwareSpec
    plan: Plan
    chosen: Choice
    folder: str
    """Where the artefact lies."""
    interpreted: str | None = None
    """Triton code to run under the interpreter, in the artefact's stead."""
    reference: Operator | None = None
    """Stands beside the candidate where nothing separates them: for the red team."""


class LoadPeers(Record):
    """Load the forms of an operator: never sent to a process that holds a candidate."""

    kind: Literal["load_peers"] = "load_peers"
    operator: Operator
    hardware: HardwareSpec


class Hello(Record):
    """Import what is slow to import and touch the device."""

    kind: Literal["hello"] = "hello"
    device: str
    cache_bytes: int
    """The last-level cache, to be flushed before each sample."""
    flush_file: str | None = None
    """What is written to flush it, where many processes share that memory: on a processor a file,
    on a device the socket through which this process is handed it."""
    guards_down: tuple[Guard, ...] = ()


class Probe(Record):
    """Compute on the device what the judge knows beforehand: see `probe_answer`."""

    kind: Literal["probe"] = "probe"
    factor: int = Field(ge=1, lt=1 << 16)


class Take(Record):
    """Copy a case's inputs into the worker, and onto the device."""

    kind: Literal["take"] = "take"
    case: Case


class Drop(Record):
    """Forget a case."""

    kind: Literal["drop"] = "drop"
    case: str


class Lend(Record):
    """From now on, make the outputs of a case in memory of the judge."""

    kind: Literal["lend"] = "lend"
    case: str
    memory: LentMemory
    slots: tuple[int, ...]
    """Where in it each output begins."""


class Prepare(Record):
    """Compile and warm a subject up on a case's sets."""

    kind: Literal["prepare"] = "prepare"
    case: str
    subject: str
    sets: int | None = None
    """Only on the first so many: what is left is new to the subject when it is timed."""


class Seat(Record):
    """Where a set's inputs lie for a run."""

    slot: int = Field(default=0, ge=0)
    """Which of the case's places: as many as it has sets, counted round."""
    shift: int = Field(default=0, ge=0)
    """By how many elements each input begins later than an aligned address."""
    strided: tuple[int, ...] = ()
    """Which inputs have gaps between their rows, or elements where there is but one axis."""


class Run(Record):
    """Run a subject once and store its outputs in the given files."""

    kind: Literal["run"] = "run"
    case: str
    set: int
    subject: str
    outputs: tuple[Stored, ...]
    """Empty where outputs are made in memory of the judge."""
    shift: int = 0
    """By how much outputs in the judge's memory lie further back."""
    poison: int = Field(ge=0)
    """Seed of the random bytes that outputs and scratch memory hold beforehand."""
    seat: Seat | None = None
    """Where the inputs lie; None: where the set last was."""


class Measure(Record):
    """Take samples of one subject, one after another, with the sets in turn."""

    kind: Literal["measure"] = "measure"
    case: str
    subject: str
    budget_s: float
    least: int
    most: int


class Arm(Record):
    """Get ready for a sample: bind the inputs and flush the caches."""

    kind: Literal["arm"] = "arm"
    case: str
    set: int
    subject: str
    shift: int = 0
    """See `Run.shift`."""
    roll: int = 0
    """By how much the values of `rolled` are moved on, around the end."""
    rolled: tuple[int, ...] = ()
    """The places of the inputs whose values may stand in any order."""


class Burst(Record):
    """Make calls one after another and answer once the device is idle: for the judge's clock."""

    kind: Literal["burst"] = "burst"
    case: str
    subject: str
    calls: int = Field(ge=1)


class WarmUp(Record):
    """Make a call on the set after the armed one, if the device's clock wants it."""

    kind: Literal["warm_up"] = "warm_up"


class Fire(Record):
    """Take the sample that was armed, then store its outputs if files are given."""

    kind: Literal["fire"] = "fire"
    outputs: tuple[Stored, ...] | None = None


class Observe(Record):
    """Run a subject once under a profiler; it slows what runs, so nothing is timed meanwhile."""

    kind: Literal["observe"] = "observe"
    case: str
    set: int
    subject: str


class Weigh(Record):
    """Call a subject and tell how much memory that takes; nothing that is timed comes after."""

    kind: Literal["weigh"] = "weigh"
    case: str
    subject: str


class Count(Record):
    """Mark one call for a tool that counts what the device does, and that runs this process."""

    kind: Literal["count"] = "count"
    case: str
    set: int
    subject: str


Message = Annotated[
    LoadCandidate
    | LoadPeers
    | Hello
    | Probe
    | Take
    | Drop
    | Lend
    | Prepare
    | Run
    | Measure
    | Arm
    | WarmUp
    | Fire
    | Burst
    | Observe
    | Weigh
    | Count,
    Field(discriminator="kind"),
]
MESSAGES: TypeAdapter[Message] = TypeAdapter(Message)


class Done(Record):
    """The message was heeded."""


class Probed(Record):
    """What the device computed."""

    sum: int


class Prepared(Record):
    """Whether the subject can be measured on the case."""

    absent: str | None = None
    """Why it can't be."""
    first_ms: float | None = None
    """Of its first call there, compiling included, by this process's own clock."""


class Sample(Record):
    """One logical call."""

    device_ms: float = Field(gt=0)
    call_ms: float = Field(gt=0)
    faults: int = Field(ge=0)
    """Minor page faults of the process meanwhile."""
    preemptions: int = Field(default=0, ge=0)
    """How often another process took a thread's place meanwhile."""
    late_ms: float = Field(default=0.0, ge=0)
    """How long the device was still busy after the end event, on whatever stream."""
    dry: bool = False
    """The device came to the call before all of it was enqueued: `device_ms` may hold a wait."""


class Samples(Record):
    """Several samples."""

    samples: tuple[Sample, ...]
    changed: tuple[int, ...] = ()
    """Which inputs were written to meanwhile, by their place."""
    trampled: tuple[int, ...] = ()
    """Beside which inputs something was written meanwhile."""


class Ran(Record):
    """What came out, and of which form; a list of forms for a list of tensors."""

    outputs: tuple[Form | tuple[Form, ...], ...]
    changed: tuple[int, ...] = ()
    """Which inputs were written to, by their place."""
    trampled: tuple[int, ...] = ()
    """Beside which inputs something was written, by their place."""
    overrun: bool = False
    """Whether something was written beside an output or scratch memory."""


class Fired(Record):
    """A sample, and the form of its outputs where they were asked for."""

    sample: Sample
    outputs: tuple[Form | tuple[Form, ...], ...] = ()


class Weighed(Record):
    """Memory of one call."""

    peak_bytes: int
    """Inputs, outputs and all else that was held at once."""
    workspace_bytes: int
    """What of it is neither input nor output."""
    held_bytes: int = 0
    """What of it was taken in the call: outputs and workspace."""
    resident_bytes: int = 0
    """By how much the process grew; see `profilers.memory`."""


class CountRequest(Record):
    """Count in a process of its own: to `optimizer.profilers.counters` only."""

    worker: str
    """``package.module:name`` of the worker that the messages are for."""
    messages: tuple[str, ...]
    """Its messages, the one that marks the call last; JSON."""


class CountAnswer(Record):
    """What was counted, or why nothing was."""

    counters: tuple[KernelCounters, ...] = ()
    fault: str = ""


class Observed(Record):
    """What the profiler saw of the call."""

    trace: Trace


class MakeCase(Record):
    """Draw a case and compute what is expected of it: to the oracle's process only."""

    operator: Operator
    workload: Workload
    device: str
    key: str
    seeds: tuple[int, ...]
    scales: tuple[float, ...]
    """The factor on floating inputs, for each seed."""
    distribution: Distribution = "stated"
    inputs_folder: str
    expected_folder: str


class ExpectedFiles(Record):
    """What one output must be."""

    reference: tuple[TensorFile, ...]
    oracle: tuple[TensorFile, ...]
    """Empty for integers: there the reference is the oracle."""


class MadeCase(Record):
    """A case, its axes' sizes, and what is expected."""

    case: Case
    sizes: tuple[dict[str, Size], ...]
    """For each set, as far as the inputs show them."""
    output_sizes: tuple[dict[str, Size], ...]
    """For each set, those of axes that only outputs have."""
    expected: tuple[tuple[ExpectedFiles, ...], ...]
    """For each set, for each output."""


class BuildRequest(Record):
    """Compile some candidates' kernels in one process."""

    hardware: HardwareSpec
    builds: tuple[Build, ...]
    folders: tuple[str, ...]


class BuildAnswer(Record):
    """For each build the artefact, or the compiler's log."""

    results: tuple[Artefact | str, ...]
