"""Situations of a search, each with the document that should be found among the first three.

Logs of builds are real (see `tests.knowledge.faulty`). Reasons of wrong outputs and the words of
crashes are made by the judge's own code.
"""

import signal
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from knowledge.diagnosis import diagnose, make_query
from knowledge.evidence import KernelResources
from knowledge.library import Query
from knowledge.outcome import (
    Cheated,
    Counterexample,
    Failed,
    Incorrect,
    Outcome,
    Passed,
    PeerTime,
    TimedOut,
    WorkloadTime,
)
from operator_registry.hardware import HardwareSpec
from operator_registry.registry import CATALOG, load_registry
from operator_registry.spec import PrecisionPolicy
from optimizer.evaluate.checking import Mismatch, check, make_standard
from optimizer.evaluate.child_errors import ChildDiedError
from optimizer.targets.driver import DriverError
from tests.knowledge.faulty import FAULTY

_HARDWARE = load_registry(CATALOG).hardware
H200, CPU = _HARDWARE["h200"], _HARDWARE["cpu-x86-64-v3"]


@dataclass(frozen=True)
class Situation:
    """What a search knows of a node, and the document that helps there."""

    name: str
    wanted: str
    outcome: Outcome | None
    hardware: HardwareSpec
    language: str
    regions: tuple[str, ...] = ()
    roofline_ms: float | None = None
    resources: tuple[KernelResources, ...] = ()

    @property
    def query(self) -> Query:
        """Return the query that an engine would ask."""
        found = None
        if self.outcome is not None:
            found = diagnose(
                self.outcome,
                rooflines_ms={"w": self.roofline_ms} if self.roofline_ms else {},
                resources=self.resources,
                on_device=self.hardware is H200,
            )
        return make_query(
            found, hardware=self.hardware, language=self.language, regions=self.regions
        )


def mismatch(got: list[float], wanted: list[float], **how: object) -> Incorrect:
    """Return what the judge's comparison says of an output, with a counterexample."""
    oracle = torch.tensor(wanted, dtype=torch.float64)
    standard = make_standard([oracle.float()], [oracle], PrecisionPolicy())
    found = check([torch.tensor(got)], standard)
    assert isinstance(found, Mismatch)
    assert found.index is not None
    fields = {"sizes": {"rows": 4, "cols": 64}, "seed": 1, **how}
    shown = Counterexample(
        output="y", index=found.index, got=found.got, wanted=found.wanted, **fields
    )  # fmt: skip
    return Incorrect(reason=f"y: {found.reason}", counterexample=shown)


def wrong_form() -> Incorrect:
    oracle = torch.ones(4, dtype=torch.float64)
    standard = make_standard([oracle.float()], [oracle], PrecisionPolicy())
    found = check([torch.ones(5)], standard)
    assert isinstance(found, Mismatch)
    return Incorrect(reason=f"y {found.reason}")


def inexact() -> Incorrect:
    ids = torch.arange(4)
    standard = make_standard([ids], [ids.double()], PrecisionPolicy())
    found = check([ids + 1], standard)
    assert isinstance(found, Mismatch)
    return Incorrect(reason=f"y: {found.reason}")


def crash(number: signal.Signals) -> Failed:
    return Failed(stage="run", log=str(ChildDiedError(-number, "")))


def driver(code: int, words: str) -> Failed:
    error = DriverError("cuCtxSynchronize", code, words)
    return Failed(stage="run", log=f"Traceback (most recent call last):\nDriverError: {error}")


def timed(device_ms: float, call_ms: float, *, peer_ms: float, peer_call_ms: float) -> Passed:
    peer = PeerTime(name="reference/eager", device_ms=peer_ms, call_ms=peer_call_ms)
    time = WorkloadTime(workload="w", weight=1, device_ms=device_ms, call_ms=call_ms, peers=(peer,))
    return Passed(times=(time,))


def resources(registers: int, *, spill_bytes: int = 0, shared_bytes: int = 0) -> KernelResources:
    warps = min(64, 65536 // (registers * 32), 8 * (233472 // (shared_bytes + 1024)))
    return KernelResources(
        kernel="kernel",
        artefact_sha256="0" * 64,
        registers=registers,
        spill_bytes=spill_bytes,
        shared_bytes=shared_bytes,
        occupancy=warps / 64,
    )


_BUILDS = {
    "too_much_shared_memory": "debugging/out_of_resources",
    "block_too_large": "debugging/out_of_resources",
    "arguments_missing": "debugging/triton_build",
    "constants_missing": "debugging/triton_build",
    "kernel_missing": "debugging/triton_build",
    "no_export": "debugging/linking",
}
"""The document for a build's log; the compiler's own where nothing stands here."""


def _of_builds() -> Iterator[Situation]:
    for faulty in FAULTY:
        triton = faulty.language == "triton"
        usual = "debugging/triton_build" if triton else "debugging/cpp_build"
        yield Situation(
            name=faulty.name,
            wanted=_BUILDS.get(faulty.name, usual),
            outcome=faulty.failure(),
            hardware=H200 if triton else CPU,
            language=faulty.language,
        )


def _on_device(name: str, wanted: str, outcome: Outcome | None, **how: object) -> Situation:
    return Situation(name, wanted, outcome, H200, "triton", **how)  # type: ignore[arg-type]


def _on_cpu(name: str, wanted: str, outcome: Outcome | None, **how: object) -> Situation:
    return Situation(name, wanted, outcome, CPU, "cpp", **how)  # type: ignore[arg-type]


_ROWS = ("row reduction",)
_TF32 = [1.0 + 3e-4] + [1.0] * 63
_ONES = [1.0] * 64
_SHORT = timed(0.004, 0.009, peer_ms=0.008, peer_call_ms=0.01)
_SLOW = timed(1.0, 1.01, peer_ms=0.8, peer_call_ms=0.82)

SITUATIONS: tuple[Situation, ...] = (
    *_of_builds(),
    # while it ran
    _on_device("illegal_access", "debugging/memory_faults",
               driver(700, "an illegal memory access was encountered")),
    _on_device("misaligned", "debugging/memory_faults", driver(716, "misaligned address")),
    _on_device("launch_resources", "debugging/out_of_resources",
               driver(701, "too many resources requested for launch")),
    _on_device("torch_says_illegal_access", "debugging/memory_faults",
               Failed(stage="run", log="RuntimeError: CUDA error: an illegal memory access was "
                      "encountered\nCompile with `TORCH_USE_CUDA_DSA` to enable assertions.")),
    _on_device("tritons_own_words", "debugging/out_of_resources",
               Failed(stage="run", log="triton.runtime.errors.OutOfResources: out of resource: "
                      "shared memory, Required: 131072, Hardware limit: 101376. Reducing block "
                      "sizes or `num_stages` may help.")),
    _on_device("device_memory_full", "debugging/out_of_resources",
               Failed(stage="run", log="torch.OutOfMemoryError: CUDA out of memory. Tried to "
                      "allocate 64.00 GiB.")),
    _on_cpu("segmentation_fault", "debugging/memory_faults", crash(signal.SIGSEGV)),
    _on_cpu("division_by_zero", "debugging/memory_faults", crash(signal.SIGFPE)),
    _on_cpu("illegal_instruction", "debugging/linking", crash(signal.SIGILL)),
    _on_cpu("foreign_symbol", "debugging/linking",
            Cheated(guard="launched", detail="calls helper, which is in no library of its own")),
    _on_cpu("undefined_symbol", "debugging/linking",
            Failed(stage="load", log="OSError: /x/kernels.so: undefined symbol: cblas_sgemm")),
    _on_device("hangs", "debugging/timed_out", TimedOut(stage="run", deadline_s=10)),
    _on_device("builds_for_ever", "debugging/timed_out", TimedOut(stage="build", deadline_s=60)),
    # wrong outputs
    _on_device("tail_is_wrong", "debugging/odd_sizes",
               mismatch([*_ONES[:-1], 7.0], _ONES, sizes={"rows": 3, "cols": 781}),
               regions=_ROWS),
    _on_device("ids_are_wrong", "debugging/odd_sizes", inexact(), regions=("table search",)),
    _on_device("writes_outside", "debugging/odd_sizes",
               Incorrect(reason="memory beside an output or scratch buffer is written to")),
    _on_device("input_written", "debugging/odd_sizes",
               Incorrect(reason="the input x is written to")),
    _on_device("nan", "debugging/not_finite", mismatch([float("nan"), *_ONES[1:]], _ONES),
               regions=_ROWS),
    _on_device("overflow", "debugging/not_finite",
               mismatch([float("inf"), *_ONES[1:]], _ONES, scale=1e4, distribution="hostile"),
               regions=_ROWS),
    _on_device("tf32", "languages/triton/precision", mismatch(_TF32, _ONES),
               regions=("matrix product",)),
    _on_cpu("sum_is_imprecise", "debugging/imprecise", mismatch(_TF32, _ONES), regions=_ROWS),
    _on_device("two_runs_differ", "debugging/nondeterminism",
               Incorrect(reason="y differs between two runs on the same inputs")),
    _on_cpu("two_runs_differ_on_cpu", "debugging/nondeterminism",
            Incorrect(reason="y differs by more than 4 eps between two runs on the same inputs")),
    _on_cpu("unaligned_inputs", "debugging/memory_faults",
            Incorrect(reason="y: the error's max-norm is 3, allowed is 1e-06; at inputs that begin "
                      "at an odd address")),
    # slow ones
    _on_device("near_roofline", "performance/memory_bound", _SLOW, roofline_ms=0.9),
    _on_device("far_from_roofline", "performance/uncoalesced", _SLOW, roofline_ms=0.2),
    _on_device("half_of_roofline", "performance/memory_bound", _SLOW, roofline_ms=0.5),
    _on_device("launch_bound", "performance/launch_bound",
               timed(0.006, 0.04, peer_ms=0.01, peer_call_ms=0.05), roofline_ms=0.001),
    _on_device("latency_bound", "performance/latency_bound", _SHORT, roofline_ms=0.0005),
    _on_device("spills", "performance/occupancy", _SLOW, roofline_ms=0.2,
               resources=(resources(255, spill_bytes=7704),)),
    _on_device("low_occupancy", "performance/occupancy", _SLOW, roofline_ms=0.2,
               resources=(resources(168, shared_bytes=160000),)),
    _on_device("library_only", "performance/launch_bound",
               _SLOW.model_copy(update={"library_only": True}), regions=("matrix product",)),
    _on_cpu("slow_on_cpu", "languages/cpp/vectorisation", _SLOW, roofline_ms=0.2, regions=_ROWS),
    _on_cpu("slow_search_on_cpu", "patterns/table_search", _SLOW, regions=("table search",)),
    # first drafts
    _on_device("draft_softmax", "patterns/row_reduction", None, regions=_ROWS),
    _on_device("draft_product", "hardware/nvidia/hopper_matrix", None,
               regions=("matrix product",)),
    _on_device("draft_jagged", "patterns/jagged_select", None, regions=("jagged select",)),
    _on_cpu("draft_pointwise", "patterns/pointwise", None, regions=("pointwise",)),
    _on_device("draft_attention", "patterns/attention", None, regions=("attention",)),
    _on_cpu("draft_sort", "patterns/sort_top_k", None, regions=("sort",)),
)  # fmt: skip

QUESTIONS: tuple[tuple[str, str], ...] = (
    ("how many registers per thread before spilling", "performance/occupancy"),
    ("bank conflicts when transposing a tile", "performance/bank_conflicts"),
    ("autotune configs num_warps num_stages", "languages/triton/tunables"),
    ("bfloat16 accumulate in float32", "languages/triton/precision"),
    ("MI300X LDS size wavefront", "hardware/amd/cdna3"),
    ("AVX-512 masked loads", "hardware/cpu/x86_64_vectors"),
    ("non-temporal streaming stores", "hardware/cpu/caches"),
    ("OpenMP NUMA first touch page faults", "languages/cpp/threads"),
    ("TMA bulk copy tensor descriptor", "hardware/nvidia/hopper_memory"),
    ("atomic add order of additions", "debugging/nondeterminism"),
    ("prefix sum over blocks look-back", "patterns/scan"),
    ("channels last conv1d", "patterns/convolution"),
    ("embedding gather of rows by ids", "performance/uncoalesced"),
    ("masked load other value -inf for maximum", "debugging/not_finite"),
)
"""What a person may type, and the document that answers."""
