"""The terminal: what people read, what scripts read, and a job's progress while it runs."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console, RenderableType
from rich.live import Live
from rich.markdown import Markdown
from rich.table import Table
from rich.text import Text

from daemon.jobs import Progress
from operator_registry.record import Record
from optimizer.job import PhaseEvent, TrialEvent

PHASES = {
    "capture": "reading the reference",
    "baseline": "measuring the peers",
    "search": "searching",
    "confirm": "proving the winner in fresh processes",
    "write": "writing the kernel",
    "check": "checking",
    "bench": "optimising",
    "compare": "comparing",
}


@dataclass(frozen=True)
class Terminal:
    """Results go to `out`, all else to `err`: a script can read the one and drop the other."""

    out: Console
    err: Console
    as_json: bool = False

    def say(self, text: str, *, style: str = "") -> None:
        """Print a line for people, just as it is."""
        self.out.print(Text(text, style=style), soft_wrap=True)

    def show(self, renderable: RenderableType) -> None:
        """Print what rich can draw."""
        self.out.print(renderable)

    def show_markdown(self, text: str) -> None:
        """Print Markdown: as it reads on a terminal, as it is written elsewhere."""
        if self.out.is_terminal:
            self.show(Markdown(text))
        else:
            self.say(text)

    def tell(self, record: Record | dict[str, object]) -> None:
        """Print a record for scripts."""
        value = record.model_dump(mode="json") if isinstance(record, Record) else record
        self.out.file.write(json.dumps(value, indent=2) + "\n")

    def complain(self, text: str) -> None:
        """Print an error, or anything that is no result."""
        self.err.print(Text(text), soft_wrap=True)

    @contextmanager
    def progress(self, title: str) -> Iterator[Callable[[Progress], None]]:
        """Show a job's progress: live on a terminal, in plain lines otherwise."""
        if not self.err.is_terminal:
            yield _Lines(title, self.complain).take
            return
        state = _State(title)
        with Live(
            console=self.err,
            get_renderable=lambda: state.render(time.monotonic()),
            refresh_per_second=4,
            transient=True,
        ):
            yield lambda event: state.take(event, time.monotonic())


def make_table(*columns: str) -> Table:
    """Return an empty table in the one style that all have."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


@dataclass
class _State:
    """What is known of a running job, drawn again and again."""

    title: str
    phase: str = "starting"
    trials: int = 0
    passed: int = 0
    best: float = 0.0
    last: str = ""
    ends_at: float | None = None

    def take(self, event: Progress, now: float) -> None:
        if isinstance(event, PhaseEvent):
            self.phase = phrase(event)
        else:
            self.trials, self.best = event.number, event.best
            self.passed += event.outcome == "passed"
            self.last = describe(event)
        if event.seconds_left is not None:
            self.ends_at = now + event.seconds_left

    def render(self, now: float) -> RenderableType:
        left_s = 0.0 if self.ends_at is None else self.ends_at - now
        left = f"{left_s:.0f} s left" if left_s > 0 else ""
        grid = Table.grid(padding=(0, 2))
        grid.add_row(
            Text(self.title, style="bold"),
            Text(self.phase),
            Text(f"{self.trials} trials, {self.passed} passed"),
            Text(f"best {self.best:.2f}x" if self.best else "", style="green"),
            Text(left, style="dim"),
        )
        lines = Table.grid()
        lines.add_row(grid)
        lines.add_row(Text(f"  {self.last}", style="dim", no_wrap=True, overflow="ellipsis"))
        return lines


@dataclass
class _Lines:
    """One line for each phase, each better candidate and, now and then, for the rest."""

    title: str
    write: Callable[[str], None]
    _best: float = field(default=0.0, init=False)

    def take(self, event: Progress) -> None:
        if isinstance(event, PhaseEvent):
            left = event.seconds_left
            self.write(f"{self.title}: {phrase(event)}{'' if left is None else f' ({left:.0f} s)'}")
        elif event.best > self._best or event.number % _EVERY == 0:
            self._best = max(self._best, event.best)
            self.write(f"{self.title}: {describe(event)}, {event.seconds_left:.0f} s left")


_EVERY = 20


def phrase(event: PhaseEvent) -> str:
    """Return what a phase is, in words."""
    return f"{PHASES[event.phase]}{f': {event.detail}' if event.detail else ''}"


def describe(event: TrialEvent) -> str:
    """Return a trial in a line."""
    outcome = event.outcome.replace("_", " ")
    if event.outcome == "passed":
        outcome = f"passed, {event.fitness:.2f}x" if event.fitness else "passed, not timed"
    elif event.detail:
        outcome = f"{outcome} ({event.detail})"
    return f"trial {event.number} {outcome}, best {event.best:.2f}x: {event.note or event.origin}"
