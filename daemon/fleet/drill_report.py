"""What a drill of a fleet came to, read from its store and written as ``fleet.json``."""

import os
import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import median

from daemon.fleet.drill import DEVICES, TRIALS, Killed
from daemon.fleet.fleet_table import (
    FleetTable,
    GoalTimes,
    TrialTime,
    make_row,
    summarise,
    to_markdown,
)
from optimizer.store import Store, StoredGoal

NAME = "fleet"


def make_table(store: Store, killed: Killed, *, command: str, commit: str) -> FleetTable:
    """Return the table of a drill that has ended.

    Args:
        store: The drill's.
        killed: What was killed meanwhile.
        command: As it was typed.
        commit: The revision measured.
    """
    goals = (*store.finished_goals(limit=1 << 20), *store.pending_goals())
    opened_at = {goal.key: store.find_opening(goal.key) for goal in goals}
    found = list(_rows(store, goals, opened_at, commit=commit))
    rows = tuple(sorted((row for row, _ in found), key=lambda row: row.goal))
    lengths = [length for _, own in found for length in own]
    took = None
    if killed.scheduler and killed.took_over:
        took = round(killed.took_over[0] - killed.scheduler[0], 2)
    return FleetTable(
        command=command,
        environment={
            "machine": f"{platform.machine()}, {os.cpu_count()} cores",
            "python": platform.python_version(),
            "ray": version("ray"),
            "store": "sqlite",
        },
        summary=summarise(
            rows,
            devices=DEVICES,
            trials_each=TRIALS,
            median_trial_s=median(lengths) if lengths else 0.0,
            killed=(len(killed.workers), len(killed.scheduler)),
            taken_over_after_s=took,
        ),
        rows=rows,
    )


def write_table(table: FleetTable, folder: Path) -> Path:
    """Write ``fleet.json`` and ``fleet.md``; return where the first is."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{NAME}.json"
    file.write_text(table.to_json(indent=1) + "\n", encoding="utf-8")
    file.with_suffix(".md").write_text(to_markdown(table), encoding="utf-8")
    return file


def _rows(
    store: Store,
    goals: Sequence[StoredGoal],
    opened_at: Mapping[str, float | None],
    *,
    commit: str,
) -> Iterator[tuple[GoalTimes, list[float]]]:
    """Yield the row of each goal, with the lengths of its trials."""
    began = min((at for at in opened_at.values() if at is not None), default=0.0)
    for goal in goals:
        search_id = store.open_search(
            goal.key,
            operator=goal.operator,
            hardware=goal.hardware,
            operator_digest=goal.operator_digest,
            now=time.time(),
        )
        trials = store.trials(search_id)
        times = [TrialTime(own_s=t.evaluation.took_s, waited_s=t.spent_s) for t in trials]
        opened = opened_at.get(goal.key) or began
        row = make_row(
            goal.operator,
            goal.verdict or "",
            times,
            span_s=(opened - began, (goal.finished_at or opened) - began),
            distinct=len({trial.evaluation.key for trial in trials}),
            commit=commit,
        )
        yield row, [found.own_s for found in times]
