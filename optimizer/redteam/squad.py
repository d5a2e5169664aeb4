"""Puts every kind before the judge: unguarded, guarded, and its honest twin."""

import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from knowledge.evaluation import Environment
from operator_registry.hardware import HardwareSpec
from operator_registry.record import digest
from optimizer.candidate import Candidate
from optimizer.evaluate.evaluator import JUDGE_VERSION, Effort, Evaluator
from optimizer.evaluate.guards import Guard, without
from optimizer.redteam import attempt as attempts
from optimizer.redteam.attempt import Attempt
from optimizer.redteam.kind import Kind, Target, Text
from optimizer.redteam.logbook import Logbook
from optimizer.redteam.operators import OPERATORS

Verb = Literal["evaluate", "confirm"]
Down = frozenset[Guard]
_CLOSE = 0.5
"""Above this share of its twin's time, what a cheat tells is measured alone."""
_REPEATS = 2
_CPU_WIDTH, _DEVICE_WIDTH = 2, 12
"""How many judges work side by side."""
_CONFIRM_WEIGHT = 4
"""A confirming run takes as long as so many evaluations."""


@dataclass(frozen=True)
class Errand:
    """One candidate before one judge."""

    operator: str
    down: Down
    verb: Verb
    candidate: Candidate
    alone: bool
    """Its time is a measure for others, or tells little: nothing else runs meanwhile."""
    wanted: bool
    """It must get through: where only the clocks speak against it, that may be noise."""
    name: str
    """To tell people of it; one that two kinds have in common has the name of either."""

    @property
    def key(self) -> tuple[str, Down, Verb, str]:
        """Return what makes two errands the same: many kinds share a twin."""
        return self.operator, self.down, self.verb, self.candidate.id

    @property
    def weight(self) -> int:
        """Return about how long it takes, in evaluations."""
        return _CONFIRM_WEIGHT if self.verb == "confirm" else 1


@dataclass(frozen=True)
class Trio:
    """The errands of a kind."""

    unguarded: Errand
    guarded: Errand
    honest: Errand
    layer: Errand | None
    """With all other guards down that stop it too, and its own guard up."""

    @property
    def errands(self) -> tuple[Errand, ...]:
        """Return all of them."""
        three = (self.unguarded, self.guarded, self.honest)
        return (*three, self.layer) if self.layer is not None else three


def plan_trio(kind: Kind, bait: Mapping[str, str]) -> Trio:
    """Return the errands of a kind."""

    def errand(
        text: Text, down: Iterable[Guard], *, alone: bool = False, wanted: bool = False
    ) -> Errand:
        candidate = kind.candidate(text, bait=bait)
        place = (kind.operator, frozenset(down), kind.by, candidate)
        who = kind.id if text is kind.cheat else f"{kind.id}'s twin"
        name = f"{who}, {'without ' + ', '.join(sorted(down)) if down else 'all guards up'}"
        return Errand(*place, alone=alone, wanted=wanted, name=name)

    timed = kind.pays == "time"
    # A cheat that tells a tenth of the time does so beside others as well.
    close = timed and kind.share > _CLOSE
    return Trio(
        unguarded=errand(kind.cheat, kind.down, alone=close, wanted=True),
        guarded=errand(kind.cheat, (), alone=close),
        honest=errand(kind.twin, (), alone=timed, wanted=True),
        layer=errand(kind.cheat, kind.beside, alone=close) if kind.beside else None,
    )


@dataclass
class Squad:
    """Runs errands, each once."""

    hardware: HardwareSpec
    folder: Path
    """For artefacts, a folder for each set of guards: a cheat may damage its own."""
    effort: Effort
    tell: Callable[[str], None]
    stopped: Callable[[], bool]
    environment: Environment | None = None
    logbook: Logbook = field(default_factory=Logbook)
    done: dict[tuple[str, Down, Verb, str], Attempt] = field(default_factory=dict)
    _whole: int = 0

    def run(self, errands: Sequence[Errand]) -> None:
        """Run all errands: some alone, one after another, the others side by side.

        Those with all guards up come first; the peers that they measure serve the others too. What
        the logbook tells is not run again.
        """
        once = {e.key: e for e in sorted(errands, key=lambda e: e.alone)}
        self._whole = len(once)
        known = self.logbook.read()
        self.done |= {k: known[n] for k, e in once.items() if (n := self._name(e)) in known}
        groups = _group(errand for key, errand in once.items() if key not in self.done)
        for guarded in (True, False):
            batch = {key: group for key, group in groups.items() if (not key[1]) == guarded}
            width = _CPU_WIDTH if self.hardware.target == "cpu" else _DEVICE_WIDTH
            beside = [group for key, group in batch.items() if not key[2]]
            with ThreadPoolExecutor(width) as pool:
                list(pool.map(self._run_group, share_out(beside, 2 * width)))
            for key, group in batch.items():
                if key[2]:
                    self._run_group(group)
        for _ in range(_REPEATS):
            for group in _group(once.values()).values():
                self._repeat(group)

    def _repeat(self, group: Sequence[Errand]) -> None:
        """Run alone once more what noise may have kept from getting through."""
        again = [e for e in group if e.wanted and e.key in self.done and self.done[e.key].noisy]
        if again:
            self._run_group(again)

    def _run_group(self, group: Sequence[Errand]) -> None:
        """Run errands before one judge; they have the operator and the guards in common."""
        if self.stopped():
            return
        operator, down = group[0].operator, group[0].down
        effort = replace(self.effort, guards=without(down))
        with Evaluator(
            OPERATORS[operator], self.hardware, folder=self._folder(down), effort=effort
        ) as judge:
            tried = {e.candidate.id: e for e in group if e.verb == "evaluate"}
            began_s = time.monotonic()

            def note(candidate: str, attempt: Attempt) -> None:
                nonlocal began_s
                self._note(tried[candidate], attempt, time.monotonic() - began_s)
                began_s = time.monotonic()

            # Even of nothing, an evaluation would draw cases and start a worker.
            if tried:
                attempts.evaluate(judge, [e.candidate for e in tried.values()], note)
            for errand in group:
                if errand.verb == "confirm" and not self.stopped():
                    began_s = time.monotonic()
                    found = attempts.confirm(judge, errand.candidate)
                    self._note(errand, found, time.monotonic() - began_s)

    def _note(self, errand: Errand, attempt: Attempt, took_s: float) -> None:
        again = errand.key in self.done
        self.done[errand.key] = attempt
        self.logbook.note(self._name(errand), attempt)
        told = f"{len(self.done)} of {self._whole}" + (", again" if again else "")
        how = attempt.how + (attempt.broke and f": {attempt.broke}")
        self.tell(f"{told}: {errand.name}: {how} ({took_s:.0f} s)")

    def _name(self, errand: Errand) -> str:
        """Return what an attempt holds for: the errand, here, by this judge."""
        what = OPERATORS[errand.operator].digest, " ".join(sorted(errand.down)), errand.verb
        return digest(*what, errand.candidate.id, JUDGE_VERSION, self.environment or "")

    def _folder(self, down: Down) -> Path:
        folder = self.folder / ("-".join(sorted(down)) or "all-up")
        if down and not folder.exists():
            folder.mkdir(parents=True)
            for name in ("admissions", "peers"):
                known = self.folder / "all-up" / name
                if known.is_dir():
                    shutil.copytree(known, folder / name, dirs_exist_ok=True)
        return folder


def _group(errands: Iterable[Errand]) -> Mapping[tuple[str, Down, bool], Sequence[Errand]]:
    groups: dict[tuple[str, Down, bool], list[Errand]] = defaultdict(list)
    for errand in errands:
        groups[errand.operator, errand.down, errand.alone].append(errand)
    return groups


def share_out(groups: Iterable[Sequence[Errand]], parts: int) -> list[Sequence[Errand]]:
    """Return the groups, those in pieces that weigh more than such a part of all; heaviest first.

    The pieces of a group need a judge each, which pays only where others would be idle.
    """
    whole = [list(group) for group in groups]
    most = max(1, -(-sum(errand.weight for group in whole for errand in group) // parts))
    pieces: list[Sequence[Errand]] = []
    for group in whole:
        begun: list[Errand] = []
        for errand in sorted(group, key=lambda e: e.verb):
            if begun and sum(e.weight for e in begun) + errand.weight > most:
                pieces.append(begun)
                begun = []
            begun.append(errand)
        pieces.append(begun)
    return sorted(pieces, key=lambda piece: -sum(errand.weight for errand in piece))


def effort_on(target: Target) -> Effort:
    """Return as much effort as shows whether a cheat gets through."""
    return Effort(
        drawn_sizes=6,
        confirmed_sizes=4,
        drawn_elements=1 << 13,
        confirmed_elements=1 << 13,
        end_elements=1 << 13,
        run_s=2.0 if target == "cpu" else 4.0,
        measure_s=0.05,
        pairs=1,
        pair_s=0.2,
        spares=0,  # most judges here try one candidate
        eager_only=True,
    )
