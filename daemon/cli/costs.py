"""The command `status --costs`: what was spent, as a table or for scripts."""

from daemon.bot import open_store
from daemon.cli.terminal import Terminal, make_table
from daemon.costs import Costs, sum_up
from daemon.settings import Settings
from optimizer.spending import Spending


def show_costs(terminal: Terminal) -> int:
    """Show what searches cost: by search, by source, by day, in all."""
    with open_store(Settings.load()) as store:
        costs = sum_up(store.costs())
    if terminal.as_json:
        terminal.tell(costs)
    elif costs.searches:
        _draw(costs, terminal)
    else:
        terminal.say("nothing was spent yet")
    return 0


def _draw(costs: Costs, terminal: Terminal) -> None:
    table = make_table("what", "device", "processor", "tokens", "money")
    for search in costs.searches:
        name = f"{search.operator} on {search.hardware}, search {search.search}"
        table.add_row(name, *_cells(search.spent))
    for title, rows in (
        ("by operator", [(o.operator, o.spent) for o in costs.operators]),
        ("by source", [(s.source, s.spent) for s in costs.sources]),
        ("by day", [(str(d.day), d.spent) for d in costs.days]),
    ):
        table.add_section()
        for name, spent in rows:
            table.add_row(f"{title}: {name}", *_cells(spent))
    table.add_section()
    table.add_row("in all", *_cells(costs.total), style="bold")
    terminal.show(table)


def _cells(spent: Spending) -> tuple[str, str, str, str]:
    return (
        f"{spent.device_s:,.1f} s",
        f"{spent.cpu_s:,.1f} s",
        f"{spent.tokens:,}",
        f"${spent.money_usd:,.4f}",
    )
