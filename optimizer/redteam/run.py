"""The red team's job: from a request to the report and its files."""

import re
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from optimizer.environment import detect_environment
from optimizer.errors import RunnerError
from optimizer.job import RedteamRequest, RedteamResult
from optimizer.redteam import bait
from optimizer.redteam.hardware import redteam_hardware
from optimizer.redteam.kind import TARGETS, Kind, Target, load_corpus
from optimizer.redteam.report import Report, Tried, make_report, make_row, table
from optimizer.redteam.squad import Squad, Trio, effort_on, plan_trio
from optimizer.stop import StoppedError
from optimizer.targets import find_obstacle


def redteam(
    request: RedteamRequest, *, tell: Callable[[str], None], stopped: Callable[[], bool]
) -> RedteamResult:
    """Return what became of all kinds for a hardware, and write the report if a folder is given.

    Raises:
        RunnerError: The hardware is not here, or no kind has that name.
        StoppedError: Somebody said stop.
    """
    hardware = redteam_hardware(request.hardware)
    if obstacle := find_obstacle(hardware):
        raise RunnerError(obstacle)
    target: Target = next(target for target in TARGETS if target == hardware.target)
    kinds = _chosen(target, request.only)
    with bait.laid_out() as laid, TemporaryDirectory(prefix="redteam-") as folder:
        trios = {kind.id: plan_trio(kind, laid) for kind in kinds}
        squad = Squad(hardware, Path(folder), effort_on(target), tell, stopped)
        squad.run([errand for trio in trios.values() for errand in trio.errands])
    if stopped():
        raise StoppedError
    rows = [make_row(kind, _tried(trios[kind.id], squad), commit=request.commit) for kind in kinds]
    report = make_report(
        rows, target=target, command=request.command, environment=detect_environment(hardware)
    )
    file = _write(report, request.folder) if request.folder is not None else None
    return RedteamResult(file=file, summary=report.summary.model_dump(), faults=report.faults)


def _chosen(target: Target, only: str) -> list[Kind]:
    found = [kind for kind in load_corpus(target) if re.search(only, kind.id)]
    if not found:
        msg = f"no kind of cheat for {target} is named like {only!r}"
        raise RunnerError(msg)
    return found


def _tried(trio: Trio, squad: Squad) -> Tried:
    return Tried(
        unguarded=squad.done[trio.unguarded.key],
        guarded=squad.done[trio.guarded.key],
        honest=squad.done[trio.honest.key],
        layer=squad.done[trio.layer.key] if trio.layer else None,
    )


def _write(report: Report, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "redteam.json"
    file.write_text(report.to_json(indent=2) + "\n", encoding="utf-8")
    file.with_suffix(".md").write_text(table(report), encoding="utf-8")
    return file
