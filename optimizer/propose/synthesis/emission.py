"""Statements and names for values: what every emitted kernel needs, whatever its language."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Protocol

from optimizer.propose.synthesis.affine import Affine, Index
from optimizer.propose.synthesis.value import (
    Apply,
    Constant,
    Load,
    Reduce,
    Search,
    Symbol,
    Value,
    free_indices,
    parts,
    walk,
)

LINE = 60
"""From this length on, an expression gets a line and a name of its own."""


class Strength(IntEnum):
    """How tightly an expression's outermost operation binds."""

    CHOICE = 1
    OR = 2
    AND = 3
    COMPARE = 4
    SUM = 6
    PRODUCT = 7
    UNARY = 8
    ATOM = 9


@dataclass(frozen=True)
class Text:
    """An expression of the emitted language."""

    code: str
    strength: Strength = Strength.ATOM

    def within(self, strength: Strength) -> str:
        """Return the code, in parentheses where its operation binds less tightly."""
        return self.code if self.strength >= strength else f"({self.code})"


class Printer(Protocol):
    """Writes single expressions and statements of a language."""

    def write(self, value: Value, use: Callable[[Value], Text]) -> Text:
        """Return a value as an expression of its parts, which `use` returns."""
        ...

    def declare(self, name: str, value: Value, text: Text) -> str:
        """Return the statement that names a value."""
        ...


class Depth(IntEnum):
    """Where in a kernel a value is known first."""

    KERNEL = 0
    ROW = 1
    ELEMENT = 2


@dataclass
class Names:
    """Names in a kernel, each given once."""

    taken: set[str]

    def fresh(self, wanted: str) -> str:
        """Return a name like the wanted one that nothing has yet."""
        name, number = wanted, 1
        while name in self.taken:
            number += 1
            name = f"{wanted}_{number}"
        self.taken.add(name)
        return name


@dataclass
class Emission:
    """Turns values into statements, each at the depth where it is known first.

    Lines of the depths are collected in `lines`; whoever writes a loop takes those of its depth.
    """

    printer: Printer
    names: Names
    uses: Counter[Value]
    lines: dict[Depth, list[str]] = field(default_factory=lambda: {depth: [] for depth in Depth})
    known: dict[Depth, dict[Value, Text]] = field(
        default_factory=lambda: {depth: {} for depth in Depth}
    )
    depth: Callable[[Value], Depth] = field(default_factory=lambda: depth_of)
    """Tells at which depth a value is known first."""

    def use(self, value: Value, *, at: Depth = Depth.ELEMENT) -> Text:
        """Return the expression for a value where a loop at depth `at` needs it."""
        for names in self.known.values():
            if value in names:
                return names[value]
        depth = self.depth(value)
        text = self.printer.write(value, lambda part: self.use(part, at=depth))
        if _is_plain(value) or not (depth < at or self._deserves_name(value, text)):
            return text
        return self.name(value, text)

    def name(self, value: Value, text: Text, wanted: str = "") -> Text:
        """Return a name for a value, after the statement that gives it."""
        depth = self.depth(value)
        name = Text(self.names.fresh(wanted or name_for(value)))
        self.lines[depth].append(self.printer.declare(name.code, value, text))
        self.known[depth][value] = name
        return name

    def learn(self, value: Value, name: str) -> None:
        """Take note that a value has a name already."""
        self.known[self.depth(value)][value] = Text(name)

    def take(self, depth: Depth) -> list[str]:
        """Return the lines of a depth, and begin its next ones."""
        lines, self.lines[depth] = self.lines[depth], []
        return lines

    def leave_loop(self) -> None:
        """Forget what was known inside a loop over elements only."""
        self.known[Depth.ELEMENT] = {}

    def _deserves_name(self, value: Value, text: Text) -> bool:
        return self.uses[value] > 1 or len(text.code) > LINE


def depth_in_block(value: Value) -> Depth:
    """Return the depth at which a value is known first where a row's elements are one block."""
    deep = depth_of(value)
    if deep != Depth.ELEMENT:
        return deep
    rows = {index.name for index in free_indices(value)} - {"col"}
    inside = rows or any(isinstance(part, Reduce) for part in walk(value))
    return Depth.ROW if inside else Depth.KERNEL


def _is_plain(value: Value) -> bool:
    """Return whether a value is a number that needs no name: a constant or an argument."""
    if isinstance(value, Apply) and value.op == "cast":
        return _is_plain(value.args[0])
    return isinstance(value, Constant | Symbol)


def depth_of(value: Value) -> Depth:
    """Return the depth at which a value is known first."""
    free = {index.name for index in free_indices(value)}
    if "col" in free:
        return Depth.ELEMENT
    if free or any(isinstance(part, Reduce) for part in walk(value)):
        return Depth.ROW
    return Depth.KERNEL


def name_for(value: Value) -> str:
    """Return a telling name for a value."""
    match value:
        case Load(tensor=tensor):
            return f"{tensor}_value"
        case Search():
            return "place"
        case Reduce(kind=kind):
            return {"sum": "total", "max": "greatest", "min": "least", "prod": "product"}[kind]
        case _:
            if getattr(value, "op", "") == "cast" and isinstance(parts(value)[0], Load):
                return name_for(parts(value)[0])
            hint = str(getattr(value, "hint", "")).strip("_") or str(getattr(value, "op", "value"))
            return f"{hint.partition(':')[0].rstrip('_0123456789')}_value"


def unplaced(value: Value) -> str:
    """Return what to say of a value that no kernel computes in passing."""
    return f"no region for a {type(value).__name__.lower()} outside of jagged selects"


def indented(lines: Iterable[str], by: int) -> list[str]:
    """Return lines moved to the right."""
    return [" " * by + line if line else line for line in lines]


def split_place(place: Affine) -> tuple[Affine, Affine]:
    """Return the part of a place that moves along the row, and the rest."""
    col = [t for t in place.terms if _moves(t[0])]
    rest = [t for t in place.terms if not _moves(t[0])]
    return Affine(tuple(col)), Affine(tuple(rest), place.offset)


def _moves(atom: Index | Value) -> bool:
    if isinstance(atom, Index):
        return atom.name == "col"
    return any(index.name == "col" for index in free_indices(atom))
