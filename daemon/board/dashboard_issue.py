"""The dashboard on the code host: what is ticked there is done, then it is written anew."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from daemon.board.dashboard import TITLE, Box, Used, View, find_round, find_ticks, render
from daemon.board.own_issue import OwnIssue
from daemon.config.watch import ConfigWatch
from daemon.costs import sum_up
from daemon.forge import CodeHost, PullRequest
from daemon.gate import Gate
from daemon.host import Host
from daemon.logs import find_log
from daemon.planner import queued
from daemon.pulls.branches import lifted_mark, retired_mark
from daemon.pulls.interest import find_silence, note_interest
from daemon.pulls.pull_request import branch_name, find_marker, find_pair
from daemon.status import find_status
from daemon.talk.wishes import Wish, find_wish, wish
from daemon.watch import Watch
from operator_registry.diff import Goal, goals
from operator_registry.record import digest
from operator_registry.registry import Operator, Registry
from optimizer.spending import Spending
from optimizer.store import Store, StoredGoal

log = find_log(__name__)
LABEL = "kernelevolve-dashboard"
BY = "the dashboard"
"""Who asked, where only a tick did."""
_ROUND = "dashboard/round"
_DAY_S = 86400.0


@dataclass(frozen=True)
class Dashboard:
    """One issue that shows everything, and in which people may tick what they want."""

    host: CodeHost
    store: Store
    watch: Watch
    config: ConfigWatch
    gate: Gate
    machine: Host
    clock: Callable[[], float]
    find_faults: Callable[[], tuple[str, ...]] = tuple
    """What of the daemon's own work failed last."""

    def run(self) -> None:
        """Do what is ticked, and show how things are; a closed dashboard is left alone.

        Raises:
            ForgeError: The code host can't be asked now, or refuses.
            StoreError: The database is away.
            WorkspaceError: The clone can't be read.
        """
        issue = OwnIssue(self.host, self.store, LABEL, self.clock)
        found = issue.find()
        if found is not None and found.state == "closed":
            return
        registry = self.watch.current()
        requests = self.host.pull_requests()
        written = int(self.store.recall(_ROUND) or 0)
        view = self._view(registry, requests)
        if found is not None and view.has_boxes:
            written = self._heed(found.body, view, registry, written)
            view = self._view(registry, requests)
        issue.show(found, TITLE, render(view, number=written), state="open")

    def _heed(self, body: str, view: View, registry: Registry | None, written: int) -> int:
        """Do what is ticked; return the number to write under from now on."""
        number, ticks = find_round(body), find_ticks(body)
        if number is None or not ticks:
            return written
        note_interest(self.store, self.clock())
        for box in ticks:
            if box.wish == "search" and box in view.searches and registry is not None:
                self._search(box, registry, number)
            elif box in dict(view.refused):
                self._ask_again(box)
        # Only now: killed before, the same ticks are found under the same number, and the goals
        # that they make have the same keys.
        written = max(written, number) + 1
        self.store.mark(_ROUND, str(written))
        return written

    def _search(self, box: Box, registry: Registry, number: int) -> None:
        goal = next(g for g in goals(None, registry) if (g.operator, g.hardware) == _pair(box))
        if any(_pair(waiting) == _pair(box) for waiting in self.store.pending_goals()):
            return
        revision = self.watch.processed() or ""
        asked = goal.model_copy(update={"reasons": ("asked for on the dashboard",)})
        base = queued(asked, registry, revision=revision)
        fresh = base.model_copy(update={"key": digest(base.key, f"dashboard {number}")})
        if self.store.enqueue(fresh, now=self.clock()):
            log.info("search asked for", operator=box.operator, hardware=box.hardware, by=BY)

    def _ask_again(self, box: Box) -> None:
        branch = branch_name(*_pair(box))
        if find_wish(self.store, "reopen", branch) is None:
            wish(self.store, "reopen", branch, Wish(by=BY, at=self.clock()))
            log.info("refusal taken back", branch=branch, by=BY)

    def _view(self, registry: Registry | None, requests: tuple[PullRequest, ...]) -> View:
        config = self.config.in_force()
        status = find_status(self.store, self.machine, gate=self.gate, clock=self.clock)
        ours = [p for p in requests if p.author is None or p.author.id == self.host.me.id]
        opened = tuple(p for p in ours if p.state == "open")
        can_search = registry is not None and not self.config.find_hold()
        return View(
            notices=tuple(self._notices(dry_run=config.dry_run, broken=status.broken)),
            waiting=status.waiting,
            open_requests=opened,
            refused=tuple(self._refused(ours, registry)),
            ended=status.ended,
            faults=self.find_faults(),
            used=(
                Used("open pull requests", len(opened), config.limits.open_pull_requests),
                Used(
                    "device hours today (UTC)",
                    self.gate.spent_s() / 3600,
                    config.limits.device_hours_per_day,
                ),
            ),
            spent=self._spent_today(),
            searches=tuple(
                Box("search", goal.operator, goal.hardware)
                for goal in _by_share(goals(None, registry))
                if config.selects(goal.hardware)
            )
            if registry is not None and can_search
            else (),
            # Who may write may tick, so that a box can't ask for more than that.
            has_boxes=config.permissions.optimize == config.permissions.reopen == "write",
        )

    def _spent_today(self) -> Spending:
        now = self.clock()
        return sum_up(self.store.costs(since=now - now % _DAY_S)).total

    def _notices(self, *, dry_run: bool, broken: str | None) -> Iterator[str]:
        if hold := self.config.find_hold():
            yield f"Nothing is searched: {hold}."
        if silence := find_silence(self.store, self.clock()):
            yield f"Nothing is searched: {silence}."
        for fault in self.config.find_faults():
            yield f"The configuration is broken, the last good one holds: {fault}"
        if broken:
            yield f"The registry is broken at {broken[:12]}; the last good one stays in force."
        if dry_run:
            yield "This is a dry run: kernels are searched for and proven, but not proposed."

    def _refused(
        self, requests: list[PullRequest], registry: Registry | None
    ) -> Iterator[tuple[Box, int]]:
        """Yield what people said no to, as far as that still holds."""
        seen: set[str] = set()
        for request in requests:  # the newest first
            pair = find_pair(request.head)
            if pair is None or request.head in seen:
                continue
            seen.add(request.head)
            operator = registry.operators.get(pair[0]) if registry else None
            if request.state == "closed" and self._is_no(request, operator):
                yield Box("reopen", *pair), request.number

    def _is_no(self, request: PullRequest, operator: Operator | None) -> bool:
        marker = find_marker(request.body)
        is_changed = marker and operator and marker.operator_digest != operator.digest
        is_retired = self.store.recall(retired_mark(request.number)) or (marker and marker.retired)
        is_lifted = self.store.recall(lifted_mark(request.head)) == str(request.number)
        is_wished = find_wish(self.store, "reopen", request.head) is not None
        return not (is_changed or is_retired or is_lifted or is_wished)


def _by_share(found: tuple[Goal, ...]) -> list[Goal]:
    return sorted(found, key=lambda goal: (-goal.share_of_time, goal.operator, goal.hardware))


def _pair(what: Box | Goal | StoredGoal) -> tuple[str, str]:
    return what.operator, what.hardware
