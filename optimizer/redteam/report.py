"""What the red team found: ``redteam.json`` and its Markdown (pure)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import Field

from knowledge.evaluation import Environment
from operator_registry.record import Record, digest
from optimizer.evaluate.evaluator import JUDGE_VERSION
from optimizer.evaluate.guards import Guard
from optimizer.redteam.attempt import Attempt
from optimizer.redteam.kind import FORMS, Kind, Target
from optimizer.redteam.operators import OPERATORS
from optimizer.redteam.rows import INEXPRESSIBLE, ROWS


class KindRow(Record):
    """A kind, and what became of it."""

    kind: str
    digest: str = ""
    """Of the kind, its operator and the judge's version: what the row holds for."""
    summary: str
    rows: tuple[str, ...]
    guard: Guard
    beside: tuple[Guard, ...]
    verb: str
    pays: str
    unguarded: Attempt
    """The cheat, with its guard and those beside it down."""
    guarded: Attempt
    """The cheat, with all guards up."""
    honest: Attempt
    """Its twin, with all guards up."""
    layer: Attempt | None = None
    """The cheat, with the guards beside its own down and its own up."""
    succeeds: bool
    """Unguarded, it pays."""
    caught: bool
    """Guarded, it does not, and the judge goes on."""
    accepted: bool
    """The twin passes."""
    needed: bool
    """It pays unguarded, and its own guard alone keeps it from paying."""
    commit: str


class GuardRow(Record):
    """A guard, and the cheats that show that it is needed."""

    guard: Guard
    alone: tuple[str, ...]
    """Kinds that get through with this guard down and all others up."""
    layered: tuple[str, ...]
    """Kinds that others stop as well: with those down, this guard still stops them."""


class CatalogueRow(Record):
    """A row of the catalogue of exploits."""

    row: str
    exploit: str
    kinds: tuple[str, ...]
    inexpressible: dict[str, str]
    """By form of candidate: why it can't be written."""


class Summary(Record):
    """The red team in five numbers."""

    cheats: int
    caught: int
    succeed_unguarded: int
    honest: int
    accepted: int


class Report(Record):
    """``redteam.json``."""

    schema_version: int = Field(default=1, alias="schema")
    command: str
    environment: Environment | None
    summary: Summary
    rows: tuple[KindRow, ...]
    guards: tuple[GuardRow, ...]
    catalogue: tuple[CatalogueRow, ...]

    @property
    def faults(self) -> tuple[str, ...]:
        """Return a line for each cheat that got through or proves nothing, each refused twin."""
        return tuple(line for row in self.rows for line in find_faults(row))


@dataclass(frozen=True)
class Tried:
    """The attempts of a kind; see `KindRow`."""

    unguarded: Attempt
    guarded: Attempt
    honest: Attempt
    layer: Attempt | None = None


def digest_of(kind: Kind) -> str:
    """Return what a kind's row holds for."""
    return digest(kind, OPERATORS[kind.operator].digest, JUDGE_VERSION)


def make_row(kind: Kind, tried: Tried, *, commit: str) -> KindRow:
    """Return the row of a kind from its attempts."""
    honest = tried.honest
    succeeds = _pays(kind, tried.unguarded, honest)
    holds = tried.guarded if tried.layer is None else tried.layer
    return KindRow(
        kind=kind.id,
        digest=digest_of(kind),
        summary=kind.summary,
        rows=kind.rows,
        guard=kind.guard,
        beside=kind.beside,
        verb=kind.by,
        pays=kind.pays,
        unguarded=tried.unguarded,
        guarded=tried.guarded,
        honest=honest,
        layer=tried.layer,
        succeeds=succeeds,
        caught=not tried.guarded.broke and not _pays(kind, tried.guarded, honest),
        accepted=honest.through,
        needed=succeeds and not holds.broke and not _pays(kind, holds, honest),
        commit=commit,
    )


def make_report(
    rows: Sequence[KindRow],
    *,
    target: Target,
    command: str,
    environment: Environment | None,
) -> Report:
    """Return the report of a target."""
    return Report(
        command=command,
        environment=environment,
        summary=Summary(
            cheats=len(rows),
            caught=sum(row.caught for row in rows),
            succeed_unguarded=sum(row.succeeds for row in rows),
            honest=len(rows),
            accepted=sum(row.accepted for row in rows),
        ),
        rows=tuple(rows),
        guards=tuple(_guard(guard, rows) for guard in Guard),
        catalogue=tuple(_catalogue(name, rows, target) for name in ROWS),
    )


def table(report: Report) -> str:
    """Return the report in Markdown."""
    return "\n".join([*_head(report), *_kinds(report), *_guards(report), *_rows(report), ""])


def _pays(kind: Kind, attempt: Attempt, honest: Attempt) -> bool:
    """Return whether a cheat earned what it did not work for."""
    if not attempt.through or kind.pays == "output":
        return attempt.through
    if attempt.told_ms is None or honest.told_ms is None:
        return True
    return attempt.told_ms < kind.share * honest.told_ms


def _guard(guard: Guard, rows: Sequence[KindRow]) -> GuardRow:
    needed = [row for row in rows if row.guard is guard and row.needed]
    return GuardRow(
        guard=guard,
        alone=tuple(row.kind for row in needed if not row.beside),
        layered=tuple(row.kind for row in needed if row.beside),
    )


def _catalogue(name: str, rows: Sequence[KindRow], target: Target) -> CatalogueRow:
    kinds = tuple(row.kind for row in rows if name in row.rows)
    forms = {form: INEXPRESSIBLE[target, form] for form in FORMS}
    return CatalogueRow(
        row=name,
        exploit=ROWS[name],
        kinds=kinds,
        inexpressible={form: why[name] for form, why in forms.items() if name in why},
    )


def find_faults(row: KindRow) -> Iterator[str]:
    """Yield what is wrong with a kind: each a reason to doubt the judge, or the kind."""
    if not row.caught:
        yield f"{row.kind} gets through with all guards up: {row.guarded.broke or row.guarded.how}"
    if not row.accepted:
        yield f"{row.kind}: its honest twin is refused: {row.honest.broke or row.honest.how}"
    if not row.succeeds:
        down = ", ".join((row.guard, *row.beside))
        how = row.unguarded.broke or row.unguarded.how
        yield f"{row.kind} proves nothing: without {down} it is refused too: {how}"


def _head(report: Report) -> Iterator[str]:
    s = report.summary
    yield "# Red team"
    yield ""
    yield f"`{report.command}`" + (
        f", on {report.environment.device}" if report.environment else ""
    )
    yield ""
    yield (
        f"{s.cheats} kinds of cheats: {s.succeed_unguarded} succeed without their guard, "
        f"{s.caught} are caught with all guards up; {s.accepted} of {s.honest} honest twins are "
        "accepted."
    )


def _kinds(report: Report) -> Iterator[str]:
    yield from ("", "| kind | does | rows | guard | without it | with all | twin |")
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for row in report.rows:
        down = " + ".join((row.guard, *row.beside))
        marks = (
            "succeeds" if row.succeeds else f"**refused**: {row.unguarded.how}",
            f"caught: {row.guarded.how}" if row.caught else f"**through**: {row.guarded.how}",
            "accepted" if row.accepted else f"**refused**: {row.honest.how}",
        )
        cells = (row.kind, row.summary, ", ".join(row.rows), down, *marks)
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _guards(report: Report) -> Iterator[str]:
    yield from ("", "## Guards", "", "| guard | only it stops | it stops where others are down |")
    yield "| --- | --- | --- |"
    for row in report.guards:
        alone, layered = ", ".join(row.alone), ", ".join(row.layered)
        yield f"| {row.guard} | {alone or ('-' if layered else '**nothing here**')} | {layered} |"


def _rows(report: Report) -> Iterator[str]:
    yield from ("", "## Catalogue", "", "| row | exploit | kinds | can't be written |")
    yield "| --- | --- | --- | --- |"
    for row in report.catalogue:
        yield f"| {row.row} | {row.exploit} | {', '.join(row.kinds)} | {_why(row.inexpressible)} |"


def _why(reasons: Mapping[str, str]) -> str:
    if len(set(reasons.values())) == 1 and len(reasons) == len(FORMS):
        return next(iter(reasons.values()))
    return "; ".join(f"{form}: {why}" for form, why in reasons.items())
