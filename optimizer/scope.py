"""The names that a plan's expressions may use, with their values (no torch)."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from optimizer.errors import CallError, PlanError
from optimizer.expression import ExpressionError, evaluate, integer, names_in
from optimizer.plan import Launch

_GRID_RANKS = range(1, 4)


@dataclass(frozen=True)
class Scope:
    """The names of a plan with their values."""

    values: Mapping[str, object]
    unread: frozenset[str] = frozenset()
    """Names whose value is only an upper bound, until a step has read a size."""

    def knows(self, expression: str) -> bool:
        """Return whether the value of an expression is final."""
        return not names_in(expression) & self.unread

    def number(self, expression: str) -> int | float:
        """Return the value of an expression that must be a number.

        Raises:
            PlanError: Not a number.
        """
        with speaking_of(repr(expression)):
            value = evaluate(expression, self.values)
        if isinstance(value, int | float):
            return value
        msg = f"{expression!r} is {value!r}, not a number"
        raise PlanError(msg)

    def fixed(self, expression: str) -> int | float:
        """Return the value of an expression that must be a number and final.

        Raises:
            PlanError: Not a number, or it depends on a size that the data decide.
        """
        if not self.knows(expression):
            msg = f"{expression!r} must be known before the call, but the data decide it"
            raise PlanError(msg)
        return self.number(expression)

    def grid(self, step: Launch) -> tuple[int, ...]:
        """Return the number of program instances along each of one to three dimensions.

        Raises:
            PlanError: Not one to three integers of at least 0.
        """
        with speaking_of(f"grid of {step.kernel}"):
            grid = tuple(integer(text, self.values) for text in step.grid)
        if len(grid) not in _GRID_RANKS or min(grid) < 0:
            msg = f"grid of {step.kernel} is {grid}; wanted are 1 to 3 sizes of at least 0"
            raise PlanError(msg)
        return grid


@contextmanager
def speaking_of(what: str) -> Generator[None]:
    """Say where in a plan an expression fails.

    Raises:
        PlanError: In place of an expression's own error, or with the place before its message.
    """
    try:
        yield
    except (ExpressionError, CallError, PlanError) as error:
        msg = f"{what}: {error}"
        raise PlanError(msg) from error
