"""Runners of a code host: runs come to be, and end in answers, as a test says."""

from dataclasses import dataclass, field

from daemon.actions.parcel import Answer, SearchParcel, fingerprint, unpack
from daemon.forge import ForgeError, WorkflowRun
from optimizer.job import ErrorEvent, OptimizeRequest, OptimizeResult, ResultEvent
from tests.daemon.scripted_job import CANDIDATE, conclude, prove


@dataclass
class Runners:
    """What `daemon.actions.errand.RunsWorkflows` asks for, in memory."""

    lost: int = 0
    """So many dispatches make no run."""
    hidden: int = 0
    """So often the newest run is not listed."""
    faults: list[ForgeError] = field(default_factory=list)
    """Raised by the next calls, one each, after a dispatch has had its effect."""
    dispatched: list[dict[str, str]] = field(default_factory=list)
    cancelled: list[int] = field(default_factory=list)
    runs: dict[int, WorkflowRun] = field(default_factory=dict)
    artefacts: dict[int, bytes] = field(default_factory=dict)

    def dispatch(self, workflow: str, *, ref: str, inputs: dict[str, str]) -> None:
        self.dispatched.append(inputs)
        if self.lost:
            self.lost -= 1
            return
        self.add(inputs["tag"])
        self._fail()

    def add(self, tag: str) -> int:
        number = 1000 + len(self.runs)
        self.runs[number] = WorkflowRun(
            id=number, name=f"kernelevolve {tag}", status="queued", url=f"https://ci/{number}"
        )
        return number

    def workflow_runs(self, workflow: str) -> tuple[WorkflowRun, ...]:
        self._fail()
        if self.hidden:
            self.hidden -= 1
            return ()
        return tuple(reversed(self.runs.values()))

    def cancel_run(self, run_id: int) -> None:
        self._fail()
        self.cancelled.append(run_id)
        self.end(run_id, None, conclusion="cancelled")

    def artefact(self, run_id: int, name: str) -> bytes | None:
        assert name == "answer"
        self._fail()
        return self.artefacts.get(run_id)

    def start(self, run_id: int) -> None:
        self.runs[run_id] = self.runs[run_id].model_copy(update={"status": "in_progress"})

    def end(self, run_id: int, answer: bytes | None, *, conclusion: str = "success") -> None:
        done = {"status": "completed", "conclusion": conclusion}
        self.runs[run_id] = self.runs[run_id].model_copy(update=done)
        if answer is not None:
            self.artefacts[run_id] = answer

    def _fail(self) -> None:
        if self.faults:
            raise self.faults.pop(0)


def result_of(request: OptimizeRequest, ratio: float | None) -> OptimizeResult:
    """Return what a runner finds: a kernel that is so many times faster, or none."""
    evidence = None if ratio is None else prove(request, ratio)
    elsewhere = request.model_copy(update={"out_folder": request.state_folder / "elsewhere"})
    result = conclude(elsewhere, evidence, stopped=False)
    return result.model_copy(update={"candidate": CANDIDATE, "kernel_folder": None})


def answer_to(inputs: dict[str, str], request: OptimizeRequest, ratio: float | None) -> bytes:
    """Return a runner's answer to what was dispatched."""
    parcel = unpack(inputs["request"])
    assert isinstance(parcel, SearchParcel)
    assert parcel.operator == request.operator
    return pack_end(inputs, ResultEvent(result=result_of(request, ratio)))


def pack_end(inputs: dict[str, str], end: ResultEvent | ErrorEvent) -> bytes:
    return Answer(request=fingerprint(inputs["request"]), end=end).to_json().encode()
