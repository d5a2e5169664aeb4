"""Real SIGKILLs at random moments of ``kernelevolve run --once``, then a run to the end.

They fall on the daemon, on the judge that works for it, or on one of the judge's children.
"""

import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil
import pytest

from daemon.bot import make_forge, make_workspace, open_store
from optimizer.store import Store, StoredGoal, Trial
from tests.daemon.origins import HERE, Origin
from tests.processes import runs_module

pytestmark = pytest.mark.drill
ROOT = Path(__file__).parents[2]
KILLS = 20
_LONGEST_S = 60
_AFTERMATH_S = 3.0
_PHASES = ("", "", "capture", "baseline", "baseline", "search", "search", "search", "confirm")
JUDGE = "optimizer"
CHILD = "optimizer.evaluate.child"
_JUDGE_KILLS = 2
"""A goal whose judge has died three times is given up: that is another fact, tested elsewhere."""
REAL = (sys.executable, "-m", "daemon")
SCRIPTED = (sys.executable, "-m", "tests.daemon.scripted_cli")


@dataclass(frozen=True)
class Moment:
    """So many seconds after the start, or after the search entered a phase."""

    phase: str
    later_s: float
    victim: str = ""
    """The module that the victim runs; the daemon itself if empty."""


@dataclass
class Drill:
    """A daemon that is killed again and again, and all that was seen of it."""

    origin: Origin
    command: tuple[str, ...]
    seen: list[set[str]] = field(default_factory=list)
    """The trials in the store after each kill."""
    started: list[psutil.Process] = field(default_factory=list)
    killed: list[str] = field(default_factory=list)
    """Of those below the daemon: the modules that they ran."""

    def kill_once(self, moment: Moment) -> None:
        written = self.log.stat().st_size if self.log.exists() else 0
        process = self._start()
        until = time.monotonic() + _LONGEST_S
        if moment.phase:
            self._watch(process, until=until, seen=(moment.phase, written))
        self._watch(process, until=min(until, time.monotonic() + moment.later_s))
        if moment.victim:
            self._kill_below(process, moment.victim)
            # The daemon gets over it, for a while.
            self._watch(process, until=min(until, time.monotonic() + _AFTERMATH_S))
        process.kill()
        process.wait()
        self.seen.append({trial.evaluation.key for trial in self.trials()})

    def finish(self) -> None:
        process = self._start()
        self._watch(process, until=time.monotonic() + 4 * _LONGEST_S)
        assert process.wait() == 0, self.log.read_text()[-3000:]

    @property
    def log(self) -> Path:
        return self.origin.folder / "daemon.log"

    def goals(self) -> tuple[StoredGoal, ...]:
        with open_store(self.origin.settings) as store:
            return (*store.pending_goals(), *store.finished_goals(limit=100))

    def trials(self) -> tuple[Trial, ...]:
        with open_store(self.origin.settings) as store:
            return tuple(t for goal in self.goals() for t in trials_of(store, goal))

    def alive(self) -> list[psutil.Process]:
        return [p for p in self.started if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]

    def _kill_below(self, process: subprocess.Popen[bytes], module: str) -> None:
        """Kill one of the processes below that run a module, if there is one just now."""
        for below in self.alive():
            with suppress(psutil.Error):
                if runs_module(below, module):
                    below.kill()
                    self.killed.append(module)
                    return

    def _start(self) -> subprocess.Popen[bytes]:
        settings = self.origin.settings
        mine = {
            "KERNELEVOLVE_REGISTRY": settings.registry,
            "KERNELEVOLVE_STATE": str(settings.state),
            "KERNELEVOLVE_LOG": "json",
        }
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [*self.command, "run", "--once"],
                cwd=ROOT,
                env={**os.environ, **mine},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _watch(
        self, process: subprocess.Popen[bytes], *, until: float, seen: tuple[str, int] | None = None
    ) -> None:
        """Note what it starts, until it ends, the time is up, or a phase stands in the log."""
        while time.monotonic() < until and process.poll() is None:
            try:
                below = psutil.Process(process.pid).children(recursive=True)
            except psutil.NoSuchProcess:
                break
            self.started += [p for p in below if p not in self.started]
            if seen and f'"phase": "{seen[0]}"'.encode() in self.log.read_bytes()[seen[1] :]:
                break
            time.sleep(0.02)


def trials_of(store: Store, goal: StoredGoal) -> tuple[Trial, ...]:
    search = store.open_search(
        goal.key,
        operator=goal.operator,
        hardware=goal.hardware,
        operator_digest=goal.operator_digest,
        now=0.0,
    )
    return store.trials(search)


def run_drill(drill: Drill, moments: Sequence[Moment]) -> None:
    for moment in moments:
        drill.kill_once(moment)
    drill.finish()


def draw_moments(seed: int, phases: Sequence[str], *, later_s: float) -> list[Moment]:
    random_ = random.Random(seed)  # noqa: S311 - moments, not secrets
    drawn = [random_.choice(phases) for _ in range(KILLS)]
    return [Moment(phase, later_s * random_.random()) for phase in drawn]


def check_nothing_is_lost_or_doubled(drill: Drill) -> None:
    trials = drill.trials()
    keys = Counter(trial.evaluation.key for trial in trials)
    assert [key for key, times in keys.items() if times > 1] == []
    assert sorted(trial.number for trial in trials) == list(range(1, len(trials) + 1))
    for before, after in zip(drill.seen, [*drill.seen[1:], set(keys)], strict=True):
        assert before <= after
    assert [(g.operator, g.hardware) for g in drill.goals()] == [("gelu_bias", HERE)]


def check_one_pull_request(drill: Drill) -> None:
    settings = drill.origin.settings
    branch = f"kernelevolve/gelu_bias/{HERE}"
    shown = make_forge(settings, make_workspace(settings)).pull_requests()
    assert [(p.state, p.head) for p in shown] == [("open", branch)]
    assert drill.origin.branches() == {"main", branch}
    assert drill.origin.run_git("rev-list", "--count", f"main..{branch}") == "1"


def check_no_orphans(drill: Drill) -> None:
    until = time.monotonic() + 15
    while drill.alive() and time.monotonic() < until:
        time.sleep(0.1)
    assert drill.alive() == []


def test_killed_between_its_own_steps(tmp_path: Path) -> None:
    """Jobs of a moment, so that the kills fall on git, queue and forge."""
    origin = Origin(tmp_path)
    origin.add_operator("trial 1; sleep 0.3; better 2.0")
    drill = Drill(origin, SCRIPTED)

    run_drill(drill, draw_moments(1, [""], later_s=2.5))

    check_nothing_is_lost_or_doubled(drill)
    assert [goal.verdict for goal in drill.goals()] == ["better"]
    check_one_pull_request(drill)
    check_no_orphans(drill)


def test_killed_while_it_searches(tmp_path: Path) -> None:
    """Real searches, so that the kills fall on builds, trials and the proof."""
    origin = Origin(tmp_path, budget_s=25.0)
    origin.add_cheap_operator()
    drill = Drill(origin, REAL)

    run_drill(drill, draw_moments(2, _PHASES, later_s=4.0))

    check_nothing_is_lost_or_doubled(drill)
    assert drill.trials()
    (goal,) = drill.goals()
    if goal.verdict == "better":
        check_one_pull_request(drill)
    else:  # a busy machine proves nothing, and then there must be nothing
        assert origin.branches() == {"main"}
    check_no_orphans(drill)


def test_its_judge_and_its_workers_are_killed(tmp_path: Path) -> None:
    origin = Origin(tmp_path, budget_s=25.0)
    origin.add_cheap_operator()
    drill = Drill(origin, REAL)
    drawn = draw_moments(3, _PHASES[2:], later_s=4.0)
    judges = [replace(moment, victim=JUDGE) for moment in drawn[:_JUDGE_KILLS]]
    children = [replace(moment, victim=CHILD) for moment in drawn[_JUDGE_KILLS:12]]

    run_drill(drill, [*children[:5], *judges, *children[5:]])

    assert {JUDGE, CHILD} <= set(drill.killed)
    check_nothing_is_lost_or_doubled(drill)
    assert drill.trials()
    # No candidate pays for a worker that somebody else has killed.
    assert "SIGKILL" not in "".join(t.evaluation.outcome.to_json() for t in drill.trials())
    check_no_orphans(drill)
