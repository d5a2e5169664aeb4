"""The search bench: every policy on every landscape, beside random search and TPE."""

import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from typing import Final

from pydantic import ValidationError

from optimizer.bench import replace_file
from optimizer.events import Tell
from optimizer.job import PhaseEvent, SearchBenchRequest, SearchBenchResult
from optimizer.landscapes.courses import Course, RandomCourse, SearchCourse, race
from optimizer.landscapes.landscape import Landscape, load_landscapes
from optimizer.landscapes.search_record import SearchRow, SearchTable
from optimizer.landscapes.search_table import (
    RANDOM,
    TPE,
    find_failures,
    summarise,
    to_markdown,
)
from optimizer.landscapes.spaces import HELD_OUT
from optimizer.search.policies import POLICIES

DEFAULT: Final = "greedy"
"""The policy of a search that is not told another, named before the bench is run."""
Start = Callable[[Landscape, int], Course]


def methods() -> Mapping[str, Start]:
    """Return the ways of searching by name, the default first, random search and TPE last."""
    policies = sorted(POLICIES, key=lambda name: name != DEFAULT)
    by_policy: dict[str, Start] = {
        # Our own baseline among the policies draws nodes; random search draws points.
        "uniform" if name == RANDOM else name: partial(_start, name)
        for name in policies
    }
    return {**by_policy, RANDOM: RandomCourse, TPE: _start_tpe}


def bench_search(
    request: SearchBenchRequest, *, tell: Tell, stopped: Callable[[], bool]
) -> SearchBenchResult:
    """Return where the table is. Rows of the same commit, landscape and seeds are kept.

    Raises:
        LandscapeError: There is no landscape, or a file is damaged or lacks points.
    """
    landscapes = load_landscapes(request.folder)
    wanted = [(landscape.name, method) for landscape in landscapes for method in methods()]
    rows = {(row.landscape, row.method): row for row in _known_rows(request)}
    table = _write(request, [rows[key] for key in wanted if key in rows])
    for row in _races(request, landscapes, dict(rows), tell, stopped):
        rows[row.landscape, row.method] = row
        table = _write(request, [rows[key] for key in wanted if key in rows])
    return SearchBenchResult(
        file=request.file,
        summary=table.summary,
        failures=tuple(find_failures(table.summary)),
        unfinished=len(wanted) - len(table.rows),
    )


def _races(
    request: SearchBenchRequest,
    landscapes: tuple[Landscape, ...],
    known: Mapping[tuple[str, str], SearchRow],
    tell: Tell,
    stopped: Callable[[], bool],
) -> Iterator[SearchRow]:
    for landscape in landscapes:
        for name, start in methods().items():
            if (landscape.name, name) in known:
                continue
            if stopped():
                return
            tell(PhaseEvent(phase="bench", detail=f"{landscape.name}: {name}"))
            counts = [race(landscape, start(landscape, seed)) for seed in range(request.seeds)]
            yield SearchRow(
                landscape=landscape.name,
                held_out=landscape.name in HELD_OUT,
                points=landscape.size,
                near_share=landscape.near_share or 0.0,
                method=name,
                evaluations=tuple(counts),
                commit=request.commit,
            )


def _known_rows(request: SearchBenchRequest) -> tuple[SearchRow, ...]:
    """Return the rows that are there and stay: of this very revision, all of it committed."""
    if not request.commit or request.commit.endswith("+"):
        return ()
    try:
        rows = SearchTable.from_json(request.file.read_bytes()).rows
    except (FileNotFoundError, ValidationError):
        return ()
    return tuple(
        row
        for row in rows
        if row.commit == request.commit and len(row.evaluations) == request.seeds
    )


def _write(request: SearchBenchRequest, rows: Sequence[SearchRow]) -> SearchTable:
    """Write the table of what is there so far, and return it."""
    table = SearchTable(
        command=request.command,
        environment={
            "python": platform.python_version(),
            "numpy": version("numpy"),
            "optuna": version("optuna"),
        },
        summary=summarise(rows, default=DEFAULT),
        rows=tuple(rows),
    )
    request.file.parent.mkdir(parents=True, exist_ok=True)
    head = table.model_copy(update={"rows": ()}).to_json(indent=2)
    body = ",\n".join(f"    {row.to_json()}" for row in table.rows)
    text = head.removesuffix('"rows": []\n}') + f'"rows": [\n{body}\n  ]\n}}\n'
    replace_file(request.file, text)
    replace_file(request.file.with_suffix(".md"), to_markdown(table))
    return table


def _start(policy: str, landscape: Landscape, seed: int) -> Course:
    return SearchCourse(landscape, POLICIES[policy](seed), seed)


def _start_tpe(landscape: Landscape, seed: int) -> Course:
    from optimizer.landscapes.tpe import TpeCourse  # noqa: PLC0415 - of an extra dependency

    return TpeCourse(landscape, seed)
