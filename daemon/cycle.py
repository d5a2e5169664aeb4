"""One turn of the daemon: look, plan, queue; then search, judge and publish what is queued.

A goal leaves the queue only when nothing is left to do for it. A job that is asked for a finished
search again tells the old result at once, so that a kill anywhere costs no more than that.
"""

import math
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from daemon.agenda import in_order
from daemon.fleet.lending import Lending
from daemon.fleet.pool import LOST, Pool
from daemon.fleet.shift import Shift
from daemon.forge import ForgeError
from daemon.gate import Gate
from daemon.host import Host
from daemon.jobs import JobError, JobRefusedError, Progress, RunsJobs
from daemon.logs import find_log
from daemon.origin import WorkspaceError
from daemon.planner import Work, plan, queued
from daemon.published import copy_kernel, copy_kin
from daemon.pulls.proposing import make_proposal, read_folder
from daemon.pulls.publish import HeldBack, Publication, Publisher
from daemon.pulls.pull_request import branch_name
from daemon.report import End, Held, Report
from daemon.sealing import seal
from daemon.talk.wishes import find_stop, is_held
from daemon.watch import Broken, Changed, Watch
from operator_registry.hardware import HardwareSpec
from optimizer.errors import KeyFileError
from optimizer.job import OptimizeRequest, OptimizeResult, PhaseEvent
from optimizer.kernel import VERIFICATIONS
from optimizer.propose.model import ModelSettings
from optimizer.store import QueuedGoal, Store, StoredGoal

log = find_log(__name__)
_ATTEMPTS = 3
_LOSSES = 30
"""Of a device or its host under a search: no fault of the goal, as a rule."""
"""A goal whose job died so often is given up."""
_CLAIM_S = 3600.0
_AWAY = "a runner of the code host works on it"


@dataclass
class Cycle:
    """The daemon's parts, and the turns it makes with them."""

    store: Store
    watch: Watch
    make_publisher: Callable[[str], Publisher]
    """From the name of the branch that pull requests go to."""
    jobs: RunsJobs
    host: Host
    find_machine_obstacle: Callable[[HardwareSpec], str | None]
    """Why no device of a hardware is to be had, here or anywhere; None where one is."""
    state: Path
    store_url: str
    holder: str
    clock: Callable[[], float]
    gate: Gate
    keep_going: Callable[[], bool]
    """False once the daemon should stop, or has lost its role."""
    signing_key: Path | None = None
    """What kernels are signed with; unsigned where it is None."""
    accept_weak_sandbox: bool = False
    warm_start: float = 0.1
    """See `OptimizeRequest.warm_start`."""
    model: ModelSettings | None = None
    """What proposes beside this program, in searches on this machine."""
    on_progress: Callable[[Work, Progress], None] = lambda _work, _event: None
    is_away: Callable[[str], bool] = lambda _key: False
    """Whether the search of a goal's key runs on another machine; a later turn asks again."""
    replay: Callable[[], None] = lambda: None
    """What else needs a device: done before each search, so that it never waits for all of them."""
    tidy: Callable[[], None] = lambda: None
    """Done at the end of each turn, while no search of this daemon runs on this machine."""
    lending: Lending | None = None
    """Lends the devices; None where nobody keeps records of them."""
    pool: Pool | None = None
    """Where there are several devices: has jobs done side by side."""
    turn_s: float = math.inf
    """A turn on several devices ends after so long; what runs on is taken up by the next one."""
    _planned: list[str] = field(default_factory=list, init=False)
    _ends: list[End] = field(default_factory=list, init=False)
    _errors: list[str] = field(default_factory=list, init=False)

    def run(self) -> Report:
        """Return what one turn did. What is wrong with one goal does not keep the others.

        Raises:
            OtherRegistryError: The state folder belongs to another origin.
            StoreError: The database is away.
        """
        self._planned, self._ends, self._errors = [], [], []
        held: tuple[Held, ...] = ()
        self._began = time.monotonic()
        if self.lending is not None:
            self.lending.look()
        try:
            seen = self.watch.look()
            self.gate.config.look(seen.revision)
            if isinstance(seen, Changed):
                self._queue(seen)
            elif isinstance(seen, Broken):
                self._complain(seen)
            held = self._work(seen.base, seen.revision)
        except WorkspaceError as error:
            self._fail("registry can't be read now", error)
        if self.pool is None or not self.pool.is_busy():
            self.tidy()
        return Report(
            planned=tuple(self._planned),
            ends=tuple(self._ends),
            held=held,
            errors=tuple(self._errors),
            stopped=not self.keep_going(),
        )

    def _queue(self, seen: Changed) -> None:
        published = self.watch.published(seen.revision) if seen.before is None else {}
        goals = plan(seen.before, seen.after, published=published)
        self._drop_obsolete(seen)
        # In agenda order: of goals that are worth the same, the one queued first goes first.
        kernels = frozenset(published)
        for goal in in_order(goals, kernels=kernels, budget_s=seen.after.config.budget_s):
            fresh = queued(goal, seen.after, revision=seen.revision)
            if self.store.enqueue(fresh, now=self.clock()):
                self._planned.append(f"{goal.operator} on {goal.hardware}")
                log.info(
                    "goal queued",
                    operator=goal.operator,
                    hardware=goal.hardware,
                    reasons=list(goal.reasons),
                )
        self.watch.accept(seen)
        log.info("registry read", revision=seen.revision, goals=len(goals))

    def _drop_obsolete(self, seen: Changed) -> None:
        for goal in self.store.pending_goals():
            wanted = goal.hardware in seen.after.config.hardware
            if goal.operator not in seen.after.operators or not wanted:
                self._finish(goal, End.of(goal, "obsolete", "the registry no longer asks for it"))

    def _complain(self, seen: Broken) -> None:
        faults = seen.error.faults
        message = f"registry at {seen.revision[:12]} is broken, the last good one stays in force:"
        self._errors.append("\n  ".join((message, *map(str, faults))))
        if seen.is_news:
            log.error("registry is broken", revision=seen.revision, faults=[*map(str, faults)])

    def _work(self, base: str, revision: str) -> tuple[Held, ...]:
        """Work on what is queued and can be done here; return what can't."""
        held: list[Held] = []
        works: dict[str, Work] = {}
        self.replay()
        pending = self._drop_superseded(self.store.pending_goals())
        for goal in pending:
            if (work := self._read(goal)) is None:
                continue
            if obstacle := self._find_obstacle(goal, work):
                held.append(Held(operator=goal.operator, hardware=goal.hardware, why=obstacle))
            else:
                works[goal.key] = work
        if works:
            publisher = self.make_publisher(base)
            kernels = frozenset(self.watch.published(revision))
            can_do = in_order(
                [goal for goal in pending if goal.key in works], kernels=kernels, budget_s=1.0
            )
            if self.pool is not None:
                theirs = [g for g in can_do if self.pool.knows(works[g.key].hardware)]
                held += self._share_out(self.pool, theirs, works, publisher, revision)
                can_do = tuple(goal for goal in can_do if goal not in theirs)
            for goal in can_do:
                self.replay()
                if not self.keep_going():
                    break
                if obstacle := self._find_obstacle(goal, works[goal.key]):  # since a search ended
                    held.append(Held(operator=goal.operator, hardware=goal.hardware, why=obstacle))
                else:
                    self._begin(goal, works[goal.key], publisher, revision)
                    if self.is_away(goal.key):
                        held.append(Held(operator=goal.operator, hardware=goal.hardware, why=_AWAY))
        return tuple(held)

    def _share_out(
        self,
        pool: Pool,
        goals: Sequence[StoredGoal],
        works: Mapping[str, Work],
        publisher: Publisher,
        revision: str,
    ) -> list[Held]:
        """Work on goals side by side; return those that could not be begun."""
        shift = Shift(
            pool=pool,
            begin=lambda goal: self._begin(goal, works[goal.key], publisher, revision),
            find_obstacle=lambda goal: self._find_obstacle(goal, works[goal.key]),
            hand_back=lambda goal: self.store.release(goal.key, self.holder),
            keep_going=self.keep_going,
            is_late=lambda: time.monotonic() - self._began > self.turn_s,
            before=self.replay,
        )
        shift.run(goals, lambda goal: works[goal.key].hardware)
        return [
            Held(operator=goal.operator, hardware=goal.hardware, why=why)
            for goal, why in shift.held
        ]

    def _begin(self, goal: StoredGoal, work: Work, publisher: Publisher, revision: str) -> bool:
        """Claim a goal and try it; return whether it has ended."""
        if not self.store.claim(goal.key, self.holder, ttl_s=_CLAIM_S, now=self.clock()):
            return False
        return self._try(goal, work, publisher, revision)

    def _find_obstacle(self, goal: StoredGoal, work: Work) -> str | None:
        if is_held(self.store, branch_name(goal.operator, goal.hardware)):
            return "people hold its pull request"
        if obstacle := self.find_machine_obstacle(work.hardware):
            return obstacle
        begun = self.is_away(goal.key) or self.store.has_result(goal.key)
        return self.gate.find_obstacle(goal.hardware, budget_s=None if begun else work.budget_s)

    def _read(self, goal: StoredGoal) -> Work | None:
        try:
            return Work.from_json(goal.payload)
        except ValidationError as error:
            why = f"queued by another version of this program: {error.errors()[0]['msg']}"
            self._finish(goal, End.of(goal, "failed", why))
            return None

    def _drop_superseded(self, pending: tuple[StoredGoal, ...]) -> tuple[StoredGoal, ...]:
        newest: dict[tuple[str, str], StoredGoal] = {}
        for goal in sorted(pending, key=lambda goal: goal.queued_at):
            if older := newest.get((goal.operator, goal.hardware)):
                self._finish(older, End.of(older, "superseded", "a later revision asks again"))
            newest[goal.operator, goal.hardware] = goal
        return tuple(newest.values())

    def _try(self, goal: StoredGoal, work: Work, publisher: Publisher, revision: str) -> bool:
        """Search, or take up a search that has ended; return whether the goal has ended."""
        try:
            end = self._find_stop(goal) or self._search(goal, work, publisher, revision)
        except JobError as error:
            if (end := self._find_stop(goal)) is None:
                end = self._count_attempt(goal, error)
                self._fail("job failed", error, goal=goal)
        except (WorkspaceError, ForgeError, KeyFileError) as error:
            end = None
            self._fail("not published yet", error, goal=goal)
        if end is not None:
            self._finish(goal, end)
        elif not self.is_away(goal.key):
            self.store.release(goal.key, self.holder)
        return end is not None

    def _search(
        self, goal: StoredGoal, work: Work, publisher: Publisher, revision: str
    ) -> End | None:
        """Return how the goal ended; None where it goes on in a later turn."""
        refusal = publisher.find_refusal(goal.operator, goal.hardware, goal.operator_digest)
        if refusal is not None:
            why = f"pull request #{refusal.number} was closed, which is a no"
            return End.of(goal, "declined", why, publication=refusal)
        if publisher.find_hold(goal.operator, goal.hardware) is not None:
            return None  # it is proven already, and told again once it may be shown
        if not self.is_away(goal.key):
            log.info("search started", operator=goal.operator, hardware=goal.hardware)
        request = self._request(goal, work, revision)
        with self.gate.counting(goal.key):
            result = self.jobs.run(
                "optimize",
                request,
                on_progress=lambda event: self._progress(work, event),
                keep_going=lambda: self.keep_going() and self._is_wanted(goal),
            )
        if end := self._find_stop(goal):
            return end
        if (
            not isinstance(result, OptimizeResult)
            or result.message == "stopped"
            or not self.keep_going()  # the role may be another's by now, who finds what has ended
        ):
            if not self.is_away(goal.key):
                log.info("search handed back", operator=goal.operator, hardware=goal.hardware)
            return None
        return self._conclude(goal, work, result, publisher, revision)

    def _conclude(
        self,
        goal: StoredGoal,
        work: Work,
        result: OptimizeResult,
        publisher: Publisher,
        revision: str,
    ) -> End | None:
        """Return how a searched goal ended; None where what it found is shown in a later turn."""
        proven = result.evidence if result.kernel_folder else None
        if objection := self.gate.find_objection(proven):
            end = End.of_result(goal, result, None)
            return end.model_copy(update={"verdict": "not_better", "why": objection})
        publication = self._publish(goal, work, result, publisher, revision)
        if isinstance(publication, HeldBack):
            return None
        return End.of_result(goal, result, publication)

    def _is_wanted(self, goal: StoredGoal) -> bool:
        """Return whether a search should go on; asked from other threads too."""
        if find_stop(self.store, goal.key) is not None or self.gate.config.find_hold():
            return False
        known = self.store.find_goal(goal.key)  # a later revision may have taken its place
        return known is not None and known.finished_at is None

    def _find_stop(self, goal: StoredGoal) -> End | None:
        """Return the end of a goal that a person wants no more of."""
        by = find_stop(self.store, goal.key)
        return None if by is None else End.of(goal, "stopped", f"{by} said stop")

    def _request(self, goal: StoredGoal, work: Work, revision: str) -> OptimizeRequest:
        return OptimizeRequest(
            operator=work.operator,
            hardware=work.hardware,
            goal_key=goal.key,
            store_url=self.store_url,
            state_folder=self.state / "artefacts",
            out_folder=self._folder(goal, "kernels"),
            budget_s=work.budget_s,
            minimum_gain=self.gate.minimum_gain(work.minimum_gain),
            incumbent_folder=self._incumbent(goal, revision),
            published_folders=self._kin(goal, work, revision),
            warm_start=self.warm_start,
            accept_weak_sandbox=self.accept_weak_sandbox,
            model=self.model,
        )

    def _incumbent(self, goal: StoredGoal, revision: str) -> Path | None:
        """Return a copy of the published kernel's folder, if there is one."""
        path = f"{goal.operator}/{goal.hardware}"
        folder = self._folder(goal, "incumbents")
        return copy_kernel(self.watch.workspace, revision, path, folder)

    def _kin(self, goal: StoredGoal, work: Work, revision: str) -> tuple[Path, ...]:
        """Return copies of the published kernels that the search may begin with."""
        begun = self.is_away(goal.key) or self.store.has_result(goal.key)
        if begun or self.warm_start <= 0:
            return ()
        return copy_kin(self.watch.workspace, revision, work, self._folder(goal, "kin"))

    def _publish(
        self,
        goal: StoredGoal,
        work: Work,
        result: OptimizeResult,
        publisher: Publisher,
        revision: str,
    ) -> Publication | None:
        proposal = make_proposal(
            work,
            result,
            incumbent_folder=self._folder(goal, "incumbents"),
            find_evaluation=self.store.find_evaluation,
            signed_by=seal(result.kernel_folder, self.signing_key),
        )
        if proposal is None or result.kernel_folder is None:
            return None
        # What was verified of earlier kernels stays told: that file is only ever appended to.
        told = self.watch.workspace.files(revision, proposal.path, under=[VERIFICATIONS])
        return publisher.publish(proposal, {**read_folder(result.kernel_folder), **told})

    def _progress(self, work: Work, event: Progress) -> None:
        if isinstance(event, PhaseEvent):
            log.info(
                "search phase",
                operator=work.operator.name,
                phase=event.phase,
                detail=event.detail,
                seconds_left=event.seconds_left,
            )
        elif event.fitness == event.best > 0:
            log.info(
                "better candidate",
                operator=work.operator.name,
                trial=event.number,
                fitness=round(event.fitness, 3),
                seconds_left=round(event.seconds_left),
            )
        self.on_progress(work, event)

    def _count_attempt(self, goal: StoredGoal, error: JobError) -> End | None:
        lost = isinstance(error, JobRefusedError) and error.error in LOST
        mark, most = ("losses", _LOSSES) if lost else ("attempts", _ATTEMPTS)
        attempts = int(self.store.recall(f"{mark}/{goal.key}") or 0) + 1
        self.store.mark(f"{mark}/{goal.key}", str(attempts))
        return End.of(goal, "failed", str(error)) if attempts >= most else None

    def _finish(self, goal: StoredGoal, end: End) -> None:
        now = self.clock()
        self.gate.settle(goal.key, end.seconds)
        self.store.finish(goal.key, verdict=end.verdict, result=end.to_json(), now=now)
        for what in ("kernels", "incumbents", "kin"):
            shutil.rmtree(self._folder(goal, what), ignore_errors=True)
        if self.pool is not None:
            self.pool.forget(goal.key)
        self._ends.append(end)
        log.info("goal ended", **end.model_dump(mode="json", exclude_none=True))

    def _folder(self, goal: QueuedGoal, what: str) -> Path:
        return self.state / what / goal.key[:16]

    def _fail(self, phrase: str, error: Exception, *, goal: StoredGoal | None = None) -> None:
        where = {"operator": goal.operator, "hardware": goal.hardware} if goal else {}
        log.error(phrase, error=str(error), **where)
        told = f"{goal.operator} on {goal.hardware}: " if goal else ""
        self._errors.append(f"{told}{phrase}: {error}")
