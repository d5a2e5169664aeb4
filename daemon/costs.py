"""What searches have cost, summed up for people: read from the ledger alone (pure)."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from typing import Literal, TypeVar

from pydantic import Field

from operator_registry.record import Record
from optimizer.spending import Spending
from optimizer.store import Cost

Key = TypeVar("Key", str, date, tuple[str, str, int])


class SearchCost(Record):
    """What a search cost in all."""

    operator: str
    hardware: str
    search: int
    spent: Spending


class OperatorCost(Record):
    """What all searches for an operator cost, on all hardware."""

    operator: str
    spent: Spending


class DayCost(Record):
    """What was spent in a day, in UTC."""

    day: date
    spent: Spending


class SourceCost(Record):
    """What one source spent: trials, confirming runs, a proposer."""

    source: str
    spent: Spending


class Costs(Record):
    """The same rows of the ledger, summed up in four ways; each adds up to the total."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    searches: tuple[SearchCost, ...]
    operators: tuple[OperatorCost, ...]
    days: tuple[DayCost, ...]
    """The oldest first."""
    sources: tuple[SourceCost, ...]
    total: Spending


def sum_up(costs: Sequence[Cost]) -> Costs:
    """Return the sums over the rows of the ledger."""
    by_search = _sums(costs, lambda c: (c.operator, c.hardware, c.search))
    return Costs(
        searches=tuple(
            SearchCost(operator=operator, hardware=hardware, search=search, spent=spent)
            for (operator, hardware, search), spent in by_search
        ),
        operators=tuple(
            OperatorCost(operator=operator, spent=spent)
            for operator, spent in _sums(costs, lambda c: c.operator)
        ),
        days=tuple(DayCost(day=day, spent=spent) for day, spent in _sums(costs, lambda c: c.day)),
        sources=tuple(
            SourceCost(source=source, spent=spent)
            for source, spent in _sums(costs, lambda c: c.source)
        ),
        total=_total(cost.spent for cost in costs),
    )


def _sums(costs: Iterable[Cost], key_of: Callable[[Cost], Key]) -> list[tuple[Key, Spending]]:
    """Return the sum of each key's rows, by key."""
    found: dict[Key, list[Spending]] = defaultdict(list)
    for cost in costs:
        found[key_of(cost)].append(cost.spent)
    return [(key, _total(found[key])) for key in sorted(found)]


def _total(spendings: Iterable[Spending]) -> Spending:
    return sum(spendings, start=Spending())
