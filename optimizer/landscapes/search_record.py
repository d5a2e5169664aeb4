"""The records of ``search.json``; a job's answer holds its summary, so nothing here is computed."""

from pydantic import Field

from operator_registry.record import Record


class SearchRow(Record):
    """One way of searching on one landscape."""

    landscape: str
    held_out: bool
    points: int
    near_share: float
    """The share of points within 5 % of the optimum."""
    method: str
    evaluations: tuple[int, ...] = Field(min_length=1)
    """Of each seed: until within 5 % of the optimum; at most as many as there are points."""
    commit: str


class Interval(Record):
    """A ratio with its bootstrap interval, drawn over the seeds of each landscape."""

    low: float
    estimate: float
    high: float


class Group(Record):
    """Each method in sum over some landscapes."""

    landscapes: int
    evaluations_to_5_percent: dict[str, float]
    """By method: the geometric mean over landscapes of the mean over seeds."""
    versus_random: dict[str, Interval]
    """By method: its evaluations over random search's."""
    versus_tpe: dict[str, Interval]


class SearchSummary(Record):
    """The table in few numbers."""

    landscapes: int
    seeds: int
    default: str
    """The policy that was named as default before this run."""
    evaluations_to_5_percent: dict[str, float]
    """Over all landscapes, those held out too; the default's stands under ``default`` as well."""
    tuned: Group | None
    """Landscapes that policies may have been chosen on."""
    held_out: Group | None


class SearchTable(Record):
    """``search.json``."""

    schema_version: int = Field(default=1, alias="schema")
    command: str
    environment: dict[str, str]
    """The versions that decide what a seed draws; no device takes part."""
    summary: SearchSummary
    rows: tuple[SearchRow, ...]
