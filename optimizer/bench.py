"""The catalogue bench: the optimise job for each operator, and a table of what came out."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import ValidationError

from operator_registry.record import digest
from operator_registry.registry import Operator
from optimizer.catalog import Catalog, OperatorRow, make_row, summarise, table
from optimizer.errors import OptimizerError
from optimizer.events import Tell
from optimizer.job import BenchRequest, BenchResult, OptimizeRequest, OptimizeResult, PhaseEvent
from optimizer.kernel import VERIFICATIONS, write_files
from optimizer.store.engine import file_lock

Optimize = Callable[[OptimizeRequest], OptimizeResult]


def bench(request: BenchRequest, *, optimize: Optimize, tell: Tell) -> BenchResult:
    """Return where the table is. Rows that are there for the same operator are kept."""
    file = request.folder / "catalog.json"
    unfinished = []
    for operator in _shard(request):
        if any(row.operator_digest == operator.digest for row in _known_rows(file)):
            continue
        tell(PhaseEvent(phase="bench", detail=operator.name, seconds_left=request.budget_s))
        try:
            result = optimize(_job(request, operator))
        except OptimizerError as error:
            unfinished.append(f"{operator.name}: {error}")
            continue
        if result.message == "stopped":
            unfinished.append(f"{operator.name}: stopped")
            break
        _publish(request, result)
        _add(request, make_row(operator, result, commit=request.commit))
    summary = summarise(_known_rows(file)).model_dump(exclude_none=True)
    return BenchResult(file=file, summary=summary, unfinished=tuple(unfinished))


def _shard(request: BenchRequest) -> Sequence[Operator]:
    part, parts = request.shard
    return sorted(request.operators, key=lambda operator: operator.name)[part - 1 :: parts]


def _job(request: BenchRequest, operator: Operator) -> OptimizeRequest:
    what = digest(operator.digest, request.hardware, str(request.budget_s), request.commit)
    return OptimizeRequest(
        operator=operator,
        hardware=request.hardware,
        goal_key=f"bench-{operator.name}-{what[:16]}",
        store_url=request.store_url,
        state_folder=request.state_folder / operator.name,
        out_folder=request.state_folder / "kernels",
        budget_s=request.budget_s,
        minimum_gain=request.minimum_gain,
    )


def _publish(request: BenchRequest, result: OptimizeResult) -> None:
    if request.kernels_folder is None or result.kernel_folder is None:
        return
    folder = result.kernel_folder
    files = {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in folder.rglob("*")
        if path.is_file() and path.name != VERIFICATIONS
    }
    write_files(request.kernels_folder / result.operator / result.hardware, files)


def _known_rows(file: Path) -> tuple[OperatorRow, ...]:
    try:
        return Catalog.from_json(file.read_text(encoding="utf-8")).rows
    except (FileNotFoundError, ValidationError):
        return ()


def _add(request: BenchRequest, fresh: OperatorRow) -> None:
    """Put a row into the table; another shard may be doing the same."""
    request.folder.mkdir(parents=True, exist_ok=True)
    request.state_folder.mkdir(parents=True, exist_ok=True)
    with file_lock(request.state_folder / "catalog.lock"):
        known = _known_rows(request.folder / "catalog.json")
        others = [row for row in known if row.operator != fresh.operator]
        _write(request, sorted([*others, fresh], key=lambda row: row.operator))


def _write(request: BenchRequest, rows: Sequence[OperatorRow]) -> None:
    environment = next((row.environment for row in rows if row.environment), None)
    catalog = Catalog(
        command=request.command,
        environment=environment,
        summary=summarise(rows),
        rows=tuple(rows),
    )
    replace_file(request.folder / "catalog.json", catalog.to_json(indent=2) + "\n")
    replace_file(request.folder / "catalog.md", table(catalog))


def replace_file(file: Path, text: str) -> None:
    """Write a file; whoever reads sees all of it or what was there before."""
    with tempfile.NamedTemporaryFile(
        "w", dir=file.parent, prefix=f".{file.name}", delete=False, encoding="utf-8"
    ) as fresh:
        fresh.write(text)
    Path(fresh.name).chmod(0o644)
    Path(fresh.name).replace(file)
