"""The fleet drill: many goals on a cluster whose workers, and whose scheduler, are killed.

Ray, the store, the daemon's cycle, its leases, the search and the runner are real; a trial is a
pause as long as a recorded one took. What must hold: each trial counts once, and all goals end.
"""

import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from daemon.bot import open_cycle
from daemon.fleet.drill_scheduler import STARTED, Orders
from daemon.jobs import Jobs
from daemon.origin import Signature
from daemon.planner import Work
from daemon.settings import Settings, environment_of_jobs
from daemon.workspace import Workspace, make_origin
from operator_registry.hardware import CompileTarget, HardwareSpec, Limits
from operator_registry.record import digest
from operator_registry.registry import CATALOG, load_registry
from optimizer.errors import RunnerError
from optimizer.runners.ray import local_cluster
from optimizer.store import QueuedGoal, Store

DEVICES = 8
TRIALS = 20
"""Of each goal."""
SLOW = {"slot6": 1.25, "slot7": 1.5}
"""How many times as long a trial takes there."""
_OPERATOR = "gelu_bias"
_HARDWARE = HardwareSpec(
    name="simulated",
    vendor="nobody",
    target="cpu",
    compile=CompileTarget(arch="simulated"),
    languages=("cpp",),
    limits=Limits(dram_bandwidth_gb_s=1, dram_gb=1, last_level_cache_mb=1),
)
_ANY = "cpu-x86-64-v3"
"""A registry has some hardware; the drill's own is none that a person would write down."""
_ME = Signature("drill", "drill@localhost", "2026-11-30T12:00:00+00:00")
_BUDGET_S = 3600.0
_LOOK_S = 0.25
_POST = "ray::Post"
"""What Ray calls the process of a post."""
_GOALS_A_KILL = 12
"""A worker is killed for each so many goals."""
_ROOT = Path(__file__).parents[2]


@dataclass
class Killed:
    """What was killed, and when, in seconds since 1970."""

    workers: list[float] = field(default_factory=list)
    scheduler: list[float] = field(default_factory=list)
    took_over: list[float] = field(default_factory=list)
    """When the stand-by had become the scheduler."""


@dataclass(frozen=True)
class Stage:
    """Where a drill plays."""

    folder: Path
    goals: int
    seed: int = 0
    log: Callable[[str], None] = lambda _: None

    @property
    def settings(self) -> Settings:
        """Return the settings of the daemons, but for the cluster."""
        return Settings(registry=str(self.folder / "origin.git"), state=self.folder / "state")

    def play(self, *, within_s: float) -> Killed:
        """Have all goals searched while workers and a scheduler are killed.

        Raises:
            RunnerError: It did not end in time, or a scheduler died by itself.
        """
        self._make_ready()
        killed = Killed()
        with local_cluster({f"simulated/slot{n}": 1.0 for n in range(DEVICES)}) as cluster:
            orders = Orders(
                registry=self.settings.registry,
                state=self.settings.state,
                ray=cluster.address,
                trials=TRIALS,
                slow=SLOW,
            )
            file = self.folder / "orders.json"
            file.write_text(orders.to_json(), encoding="utf-8")
            with self._scheduler("first") as first, self._scheduler("second") as second:
                self._watch(first, second, killed, until=time.monotonic() + within_s)
        return killed

    def _watch(
        self,
        first: subprocess.Popen[bytes],
        second: subprocess.Popen[bytes],
        killed: Killed,
        *,
        until: float,
    ) -> None:
        moments = self._draw_moments()
        with Store(self.settings.store_url) as store:
            while left := len(store.pending_goals()):
                ended = self.goals - left
                if moments and ended >= moments[0][0]:
                    what = moments.pop(0)[1]
                    if what == "scheduler":
                        first.kill() if self._has_role("first") else second.kill()
                        killed.scheduler.append(time.time())
                    elif kill_a_post(self._random):
                        killed.workers.append(time.time())
                    self.log(f"{ended} of {self.goals} goals have ended; a {what} was killed")
                if killed.scheduler and not killed.took_over and self._both_had_the_role():
                    killed.took_over.append(time.time())
                self._heed_deaths(first, second, killed, until)
                time.sleep(_LOOK_S)

    @property
    def _random(self) -> random.Random:
        return random.Random(time.monotonic())  # noqa: S311 - which worker is killed, no secret

    def _draw_moments(self) -> list[tuple[int, str]]:
        """Return after how many goals what is killed."""
        draw = random.Random(self.seed)  # noqa: S311 - as above
        kills = max(2, self.goals // _GOALS_A_KILL)
        moments = [(draw.randrange(self.goals), "worker") for _ in range(kills)]
        return sorted([*moments, (self.goals * 2 // 5, "scheduler")])

    def _heed_deaths(
        self,
        first: subprocess.Popen[bytes],
        second: subprocess.Popen[bytes],
        killed: Killed,
        until: float,
    ) -> None:
        alive = sum(process.poll() is None for process in (first, second))
        if alive < 2 - len(killed.scheduler):
            msg = f"a scheduler of the drill died by itself; see {self.folder}/*.log"
            raise RunnerError(msg)
        if time.monotonic() > until:
            msg = f"the drill did not end in time; see {self.folder}/*.log"
            raise RunnerError(msg)

    def _has_role(self, name: str) -> bool:
        return STARTED in self._log_of(name).read_text(encoding="utf-8", errors="replace")

    def _both_had_the_role(self) -> bool:
        return self._has_role("first") and self._has_role("second")

    def _log_of(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    @contextmanager
    def _scheduler(self, name: str) -> Iterator[subprocess.Popen[bytes]]:
        command = [sys.executable, "-m", "daemon.fleet.drill_scheduler"]
        with self._log_of(name).open("wb") as log:
            process = subprocess.Popen(
                [*command, str(self.folder / "orders.json")],
                cwd=_ROOT,
                env=environment_of_jobs(),
                stdout=log,
                stderr=log,
            )
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def _make_ready(self) -> None:
        """Make an empty registry, look at it, and queue the goals of the drill."""
        self.folder.mkdir(parents=True, exist_ok=True)
        make_origin(self.folder / "origin.git")
        git = Workspace(self.settings.registry, self.folder / "people.git")
        hardware = f"hardware/{_ANY}.yaml"
        files = {
            "registry.yaml": f"schema: 1\nhardware: [{_ANY}]\n".encode(),
            hardware: (CATALOG / hardware).read_bytes(),
        }
        git.push("main", git.commit(None, "", files, message="empty", by=_ME), expected=None)
        with open_cycle(self.settings, jobs=Jobs(), is_stopped=lambda: False) as cycle:
            cycle.run()
        with Store(self.settings.store_url) as store:
            for goal in make_goals(self.goals):
                store.enqueue(goal, now=time.time())


def make_goals(count: int) -> Iterator[QueuedGoal]:
    """Yield goals of as many operators, which differ by their names."""
    model = load_registry(CATALOG).operators[_OPERATOR]
    for number in range(count):
        name = f"drill{number:04d}"
        operator = model.model_copy(update={"spec": model.spec.model_copy(update={"name": name})})
        work = Work(
            operator=operator,
            hardware=_HARDWARE,
            minimum_gain=1.05,
            budget_s=_BUDGET_S,
            revision="0" * 40,
        )
        yield QueuedGoal(
            key=digest(name),
            operator=name,
            hardware=_HARDWARE.name,
            operator_digest=operator.digest,
            reasons=("drill",),
            payload=work.to_json(),
        )


def kill_a_post(draw: random.Random) -> bool:
    """Kill a process below this one that is at work as a post; return whether there was one."""
    posts = []
    for process in psutil.Process().children(recursive=True):
        try:
            if process.cmdline()[:1] and process.cmdline()[0].startswith(_POST):
                posts.append(process)
        except psutil.Error:
            continue
    if not posts:
        return False
    draw.choice(posts).kill()
    return True
