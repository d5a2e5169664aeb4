"""What the judge of one goal works with: processes, cases, builds and peers."""

import random
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from knowledge.outcome import Failed, TimedOut
from operator_registry.hardware import HardwareSpec
from operator_registry.record import digest
from operator_registry.registry import Operator
from optimizer.binding import instances
from optimizer.candidate import Candidate
from optimizer.environment import detect_environment
from optimizer.errors import PlanError, RunnerError
from optimizer.evaluate.abreast import bytes_of_inputs, count_abreast
from optimizer.evaluate.admission import (
    DegenerateOperatorError,
    admit,
    find_admission,
    keep_admission,
)
from optimizer.evaluate.building import Builder, Built, Pending
from optimizer.evaluate.cases import CaseMaker, CheckedCase, Request
from optimizer.evaluate.draws import (
    SEED_BITS,
    distributions_under,
    draw_requests,
    telling_requests,
)
from optimizer.evaluate.guards import ALL_UP, Guard, Guards
from optimizer.evaluate.host_build import place_source
from optimizer.evaluate.lenders import make_lender
from optimizer.evaluate.memory import SharedFolder
from optimizer.evaluate.peer_table import (
    PeerProcess,
    PeerTable,
    find_table,
    keep_table,
    measure_peers,
)
from optimizer.evaluate.peers import peer_names
from optimizer.evaluate.process import Place
from optimizer.evaluate.sandbox import Limits
from optimizer.evaluate.screen import find_fault
from optimizer.targets import find_obstacle
from optimizer.targets.target import Build, Instance

JUDGE_VERSION = "3"
"""Raised with each change of what a result means: results of two versions are never compared."""
_COMPILING_S = 20.0
"""For a host side of a candidate's own, whose kernels are compiled at their first call."""
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


@dataclass(frozen=True)
class Effort:
    """How much the judge does; the defaults are what a search and its proof need."""

    drawn_sizes: int = 4
    """Held-out sizes for each batch of a search."""
    confirmed_sizes: int = 20
    """Held-out sizes in a confirming run."""
    drawn_elements: int = 1 << 17
    confirmed_elements: int = 1 << 20
    end_elements: int = 1 << 25
    """Elements of the inputs in a confirming run where an axis is at its greatest size."""
    interpreted_elements: int = 1 << 11
    run_s: float = 5.0
    """Seconds that one run of a candidate may take."""
    interpreted_run_s: float = 60.0
    build_s: float = 120.0
    measure_s: float = 0.2
    """Seconds of samples on each workload in a search."""
    pairs: int | None = None
    """The most process pairs of a confirming run; 24 if None."""
    abreast: int | None = None
    """Pairs that get ready side by side; as many as there is room for if None."""
    pair_s: float = 1.5
    """Seconds of samples in each pair."""
    narrow_enough: float = 0.02
    """Width of the ratio's interval over its estimate at which sampling stops."""
    profile_s: float = 60.0
    """Seconds after a confirming run in which a winner's profile is begun; none if 0."""
    spares: int = 3
    """Workers that start while a candidate is tried beside a device: one takes as long to start as
    several trials take that fail."""
    eager_only: bool = False
    """Peers are not compiled: where no ratio is claimed, as in the red team."""
    guards: Guards = ALL_UP


class Workbench:
    """The judge's means for one operator on one hardware."""

    def __init__(
        self, operator: Operator, hardware: HardwareSpec, *, folder: Path, effort: Effort
    ) -> None:
        """Look at the machine; no process is started yet.

        Raises:
            RunnerError: Nothing of this hardware can be run or checked here.
        """
        self.operator = operator
        self.hardware = hardware
        self.folder = folder
        self.effort = effort
        obstacle = find_obstacle(hardware)
        self.timed = obstacle is None
        if obstacle is not None and hardware.target != "cuda":
            raise RunnerError(obstacle)
        # Workers see it from their start, whatever is built into it later.
        (folder / "artefacts").mkdir(parents=True, exist_ok=True)
        self.environment = detect_environment(hardware)
        device = hardware.target if self.timed else "cpu"
        self.shared = SharedFolder()
        self.place = Place(
            device=device,
            threads=self.environment.threads,
            cache_bytes=cache_bytes(hardware),
            folder=folder,
            memory_gib=64 if device == "cuda" else 8,
            guards=effort.guards,
            shared=self.shared.path,
            compiles=not effort.eager_only,
        )
        if effort.guards.up(Guard.OUTPUTS):
            self.place = replace(self.place, lender=make_lender(self.place, self.shared))
        self.maker = CaseMaker(operator, self.place, self.shared)
        limits = Limits(wall_s=effort.build_s, memory_bytes=16 << 30, guards=effort.guards)
        self.builder = Builder(hardware, folder / "artefacts", limits=limits)

    def close(self) -> None:
        """End the oracle and all builds, and free the shared memory."""
        self.builder.close()
        self.maker.close()
        if self.place.lender is not None:
            self.place.lender.close()
        self.shared.close()

    def run_s(self, candidate: Candidate) -> float:
        """Return the seconds that one run of a candidate may take."""
        if not self.timed:
            return self.effort.interpreted_run_s
        compiles = candidate.host == "python" and self.place.device != "cpu"
        return self.effort.run_s + (_COMPILING_S if compiles else 0.0)

    def public_cases(self, *, sets: int) -> list[CheckedCase]:
        """Return a case for each public workload, under fresh secret seeds.

        Raises:
            RunnerError: The reference fails.
        """
        public = self.operator.spec.workloads_on(self.hardware.target)
        return self.maker.make([Request(w, _seeds(sets)) for w in public])

    def drawn_cases(
        self, count: int, *, seed: int, most: int, most_at_end: int = 0
    ) -> list[CheckedCase]:
        """Return cases at held-out sizes, the small ones first; see `draws.draw_requests`.

        Raises:
            RunnerError: The reference fails.
        """
        if not self.effort.guards.up(Guard.SIZES):
            return []
        requests = draw_requests(
            self.operator.spec,
            self.hardware.target,
            seed=seed,
            count=count,
            most=most,
            most_at_end=most_at_end,
            distributions=distributions_under(self.effort.guards),
        )
        return self.maker.make(requests)

    def telling_cases(self, rng: random.Random) -> list[CheckedCase]:
        """Return the public workloads at other magnitudes and from other distributions.

        Raises:
            RunnerError: The reference fails.
        """
        requests = telling_requests(
            self.operator.spec,
            self.hardware.target,
            rng=rng,
            distributions=distributions_under(self.effort.guards),
        )
        return self.maker.make(requests)

    def refuse_degenerate(self) -> None:
        """Go on only if the operator's checks prove anything; found out once for each operator.

        Raises:
            DegenerateOperatorError: They do not.
            RunnerError: The reference fails.
        """
        key = digest(self.operator.digest, self.hardware.target, JUDGE_VERSION)
        path = self.folder / "admissions" / f"{key[:32]}.json"
        admission = find_admission(path)
        if admission is None:
            admission = admit(self.maker, self.hardware.target, seed=fresh_seed())
            keep_admission(path, admission)
        if not admission.admitted:
            raise DegenerateOperatorError.of(admission)

    def screen(self, candidate: Candidate) -> Failed | None:
        """Return why a candidate is not even built, None where it is."""
        if not self.effort.guards.up(Guard.SCREEN):
            return None
        fault = find_fault(candidate, self.hardware)
        return None if fault is None else Failed(stage="screen", log=fault)

    def build(
        self, candidates: Sequence[Candidate], cases: Sequence[CheckedCase], *, anew: bool = False
    ) -> list[Built | Failed | TimedOut]:
        """Return each candidate's kernels, with all instances that the cases need.

        Args:
            candidates: What to build.
            cases: For which sizes.
            anew: Build from source even what is there already, so that nothing stale is proven.

        Raises:
            ChildRaisedError: The compiler is out of order.
        """
        if anew and self.effort.guards.up(Guard.CHAIN):
            planned = [self._plan_build(candidate, cases) for candidate in candidates]
            self.builder.forget([build for build in planned if isinstance(build, Build)])
        begun = self.start_builds(candidates, cases)
        return [build if isinstance(build, Failed) else build.result() for build in begun]

    def start_builds(
        self, candidates: Sequence[Candidate], cases: Sequence[CheckedCase]
    ) -> list[Pending | Failed]:
        """Begin to build each candidate's kernels, with all instances that the cases need."""
        wanted = [self._plan_build(c, cases) for c in candidates]
        begun = iter(self.builder.start([build for build in wanted if isinstance(build, Build)]))
        return [next(begun) if isinstance(build, Build) else build for build in wanted]

    def peer_table(self, cases: Sequence[CheckedCase]) -> PeerTable:
        """Return the peers and their times for ranking, measured now if they never were.

        Raises:
            RunnerError: No process can be started.
        """
        modes = "eager" if self.effort.eager_only else "all"
        key = digest(self.operator.digest, self.environment, JUDGE_VERSION, modes)
        path = self.folder / "peers" / f"{key[:32]}.json"
        table = find_table(path)
        if table is None:
            abreast = count_abreast(self.place, self.hardware, bytes_of_inputs(cases))
            sides = [PeerProcess(self.operator, self.hardware, self.place) for _ in range(abreast)]
            try:
                names = peer_names(self.operator, self.place.device)
                if self.effort.eager_only:
                    names = tuple(name for name in names if name.endswith("/eager"))
                table = measure_peers(sides, cases, names)
            finally:
                for side in sides:
                    side.close()
            # Where no ratio is claimed, one that was disturbed does as well.
            if table.calm or self.effort.eager_only:
                keep_table(path, table)
        return table

    def _plan_build(
        self, candidate: Candidate, cases: Sequence[CheckedCase]
    ) -> Build | Pending | Failed:
        if candidate.host == "python":
            artefacts = self.folder / "artefacts"
            return Pending.of(place_source(candidate, self.hardware, artefacts))
        found: dict[str, Instance] = {}
        try:
            for case in cases:
                for sizes in case.sizes:
                    needed = instances(
                        self.operator.spec,
                        candidate.plan,
                        candidate.chosen,
                        sizes=sizes,
                        dtypes=case.workload.dtypes,
                        attributes=case.case.attributes,
                    )
                    found |= {instance.symbol: instance for instance in needed}
        except PlanError as error:
            return Failed(stage="screen", log=str(error))
        return Build(code=candidate.code, instances=tuple(found.values()))


def fresh_seed() -> int:
    """Return a seed that nobody can foresee."""
    return secrets.randbits(SEED_BITS)


def cache_bytes(hardware: HardwareSpec) -> int:
    """Return the size of the last-level cache; a processor tells its own."""
    stated = int(hardware.limits.last_level_cache_mb * 1e6)
    if hardware.target != "cpu":
        return stated
    sizes = [path.read_text(encoding="ascii").strip() for path in _CACHES.glob("index*/size")]
    return max((_bytes(size) for size in sizes), default=stated)


def _seeds(count: int) -> tuple[int, ...]:
    return tuple(fresh_seed() for _ in range(count))


def _bytes(size: str) -> int:
    """Return the bytes of a size such as ``32768K``."""
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    return int(size[:-1]) * units[size[-1]] if size[-1] in units else int(size)
