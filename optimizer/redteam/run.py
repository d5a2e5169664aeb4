"""The red team's job: from a request to the report and its files."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

from pydantic import ValidationError

from operator_registry.record import digest
from optimizer.bench import replace_file
from optimizer.environment import detect_environment
from optimizer.errors import RunnerError
from optimizer.job import RedteamRequest, RedteamResult
from optimizer.redteam import bait
from optimizer.redteam.hardware import redteam_hardware
from optimizer.redteam.kind import TARGETS, Kind, Target, load_corpus
from optimizer.redteam.logbook import Logbook
from optimizer.redteam.report import (
    KindRow,
    Report,
    Tried,
    digest_of,
    find_faults,
    make_report,
    make_row,
    table,
)
from optimizer.redteam.squad import Squad, Trio, effort_on, plan_trio
from optimizer.stop import StoppedError
from optimizer.store.engine import file_lock
from optimizer.targets import find_obstacle

_FILE = "redteam.json"
_LOGBOOK = "redteam.log.jsonl"
"""Attempts of a run that has not come to its end."""


def redteam(
    request: RedteamRequest, *, tell: Callable[[str], None], stopped: Callable[[], bool]
) -> RedteamResult:
    """Return what became of the kinds for a hardware, and write the report if a folder is given.

    Raises:
        RunnerError: The hardware is not here, or no kind has that name.
        StoppedError: Somebody said stop; what is done is in the report, or in the log beside it.
    """
    hardware = redteam_hardware(request.hardware)
    if obstacle := find_obstacle(hardware):
        raise RunnerError(obstacle)
    target: Target = next(target for target in TARGETS if target == hardware.target)
    kinds = _left(request, _chosen(target, request.only))
    environment = detect_environment(hardware)
    logbook = Logbook(request.folder / _LOGBOOK if request.folder is not None else None)
    if not request.resume:
        logbook.close()
    with bait.laid_out() as laid, TemporaryDirectory(prefix="redteam-") as folder:
        trios = {kind.id: plan_trio(kind, laid) for kind in kinds}
        squad = Squad(
            hardware, Path(folder), effort_on(target), tell, stopped, environment, logbook
        )
        squad.run([errand for trio in trios.values() for errand in trio.errands])
    done = [kind for kind in kinds if all(e.key in squad.done for e in trios[kind.id].errands)]
    rows = [make_row(kind, _tried(trios[kind.id], squad), commit=request.commit) for kind in done]
    report = make_report(rows, target=target, command=request.command, environment=environment)
    file = None
    if request.folder is not None:
        file, report = _add(request.folder, report, target, keep=request.resume)
    if stopped():
        raise StoppedError
    logbook.close()
    return RedteamResult(file=file, summary=report.summary.model_dump(), faults=report.faults)


def _chosen(target: Target, only: str) -> list[Kind]:
    found = [kind for kind in load_corpus(target) if re.search(only, kind.id)]
    if not found:
        msg = f"no kind of cheat for {target} is named like {only!r}"
        raise RunnerError(msg)
    return found


def _left(request: RedteamRequest, kinds: Sequence[Kind]) -> list[Kind]:
    """Return the kinds without those whose rows are there and can stay."""
    known = _known(request.folder) if request.resume and request.folder is not None else ()
    sound = {row.digest for row in known if not any(find_faults(row))}
    return [kind for kind in kinds if digest_of(kind) not in sound]


def _tried(trio: Trio, squad: Squad) -> Tried:
    return Tried(
        unguarded=squad.done[trio.unguarded.key],
        guarded=squad.done[trio.guarded.key],
        honest=squad.done[trio.honest.key],
        layer=squad.done[trio.layer.key] if trio.layer else None,
    )


def _known(folder: Path) -> tuple[KindRow, ...]:
    try:
        return Report.from_json((folder / _FILE).read_text(encoding="utf-8")).rows
    except (FileNotFoundError, ValidationError):
        return ()


def _add(folder: Path, fresh: Report, target: Target, *, keep: bool) -> tuple[Path, Report]:
    """Write a report, with the rows of other kinds that are there; return it with its file."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / _FILE
    lock = f"kernelevolve-{digest(str(folder.resolve()))[:16]}.lock"
    with file_lock(Path(gettempdir()) / lock):
        rows = {row.kind: row for row in (*(_known(folder) if keep else ()), *fresh.rows)}
        corpus = {kind.id: digest_of(kind) for kind in load_corpus(target)}
        both = [row for name, row in sorted(rows.items()) if corpus.get(name) == row.digest]
        report = make_report(
            both, target=target, command=fresh.command, environment=fresh.environment
        )
        replace_file(file, report.to_json(indent=2) + "\n")
        replace_file(file.with_suffix(".md"), table(report))
    return file, report
