"""A region as a person would write it on paper: one line for each reduction and each output."""

from collections import Counter
from dataclasses import dataclass, field

from optimizer.propose.synthesis.affine import Affine, Index
from optimizer.propose.synthesis.cpp_text import shortest
from optimizer.propose.synthesis.dtypes import is_float
from optimizer.propose.synthesis.emission import Names, Strength, Text
from optimizer.propose.synthesis.passes import uses_in
from optimizer.propose.synthesis.regions import LoopRegion
from optimizer.propose.synthesis.value import (
    Apply,
    Constant,
    Load,
    Position,
    Reduce,
    Scan,
    Search,
    Segment,
    Symbol,
    Value,
    walk,
)

_SIGNS = {
    "add": ("+", Strength.SUM), "sub": ("-", Strength.SUM), "mul": ("*", Strength.PRODUCT),
    "div": ("/", Strength.PRODUCT), "floordiv": ("//", Strength.PRODUCT),
    "mod": ("%", Strength.PRODUCT), "lt": ("<", Strength.COMPARE), "le": ("<=", Strength.COMPARE),
    "gt": (">", Strength.COMPARE), "ge": (">=", Strength.COMPARE), "eq": ("==", Strength.COMPARE),
    "ne": ("!=", Strength.COMPARE), "and": ("and", Strength.AND), "or": ("or", Strength.OR),
}  # fmt: skip
_REDUCTIONS = {"sum": "sum", "max": "max", "min": "min", "prod": "product"}
SHORT = 32
"""Up to this length, what is used several times is written again each time."""
LONG = 72
"""Beyond this length, a part of a formula gets a line of its own."""


def formula(region: LoopRegion) -> list[str]:
    """Return the lines of a region's formula."""
    stores = [store.value for store in region.stores]
    writer = _Writer(
        Names(set()), uses_in([*stores, *(r.body for r in walk(*stores) if isinstance(r, Reduce))])
    )
    lines = []
    for value in walk(*stores):
        if isinstance(value, Reduce):
            body = writer.text(value.body).code
            name = writer.names.fresh(_named(value))
            at = "".join(f"[{row.name}]" for row in region.rows[:1])
            lines.append(f"{name}{at} = {_REDUCTIONS[value.kind]} of {body} over {value.over.name}")
            writer.known[value] = Text(f"{name}{at}")
    for store in region.stores:
        body = writer.root(store.value)
        lines += writer.take()
        lines.append(f"{store.tensor}[{writer.place(store.place)}] = {body}")
    return lines


def _named(value: Reduce) -> str:
    return {"sum": "total", "max": "greatest", "min": "least", "prod": "product"}[value.kind]


@dataclass
class _Writer:
    names: Names
    uses: Counter[Value]
    known: dict[Value, Text] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    def take(self) -> list[str]:
        lines, self.lines = self.lines, []
        return lines

    def root(self, value: Value) -> str:
        """Return a whole right side."""
        return self.known[value].code if value in self.known else self._text(value).code

    def text(self, value: Value) -> Text:
        if value not in self.known:
            self.known[value] = self._shortened(value, self._text(value))
        return self.known[value]

    def place(self, place: Affine) -> str:
        """Return a place by its loop variables: their strides are the tensor's own shape."""
        parts = [
            atom.name if isinstance(atom, Index) else self.text(atom).code
            for atom, _ in place.terms
        ]
        names = sorted(parts, key=lambda part: part == "col")
        shown = ", ".join(names)
        offset = str(place.offset)
        return shown + (f" + {offset}" if offset != "0" and shown else "") or offset

    def _shortened(self, value: Value, text: Text) -> Text:
        if not isinstance(value, Apply) or len(text.code) <= (
            SHORT if self.uses[value] > 1 else LONG
        ):
            return text
        name = self.names.fresh((value.hint or value.op).strip("_"))
        self.lines.append(f"{name} = {text.code}")
        return Text(name)

    def _text(self, value: Value) -> Text:  # noqa: PLR0911 - one return a case
        match value:
            case Constant(value=number, dtype=dtype):
                code = shortest(float(number)) if is_float(dtype) else str(number)
                return Text(code.removesuffix(".0"))
            case Symbol(text=text):
                return Text(text, Strength.ATOM if text.isidentifier() else Strength.SUM)
            case Position(place=place):
                return Text(self._sum(place))
            case Load(tensor=tensor, place=place):
                shown = self.place(place)
                return Text(f"{tensor}[{shown}]" if shown else tensor)
            case Search(table=table, needle=needle, right=right):
                side = "at or below" if right else "below"
                return Text(f"count({table} {side} {self.text(needle).code})")
            case Segment(lengths=lengths, place=place):
                return Text(f"segment({lengths}, {self._sum(place)})")
            case Scan(tensor=tensor, place=place):
                return Text(f"sum({tensor}[..{self._sum(place)}])")
            case Reduce():
                return self.text(value)
            case Apply():
                return self._apply(value)

    def _sum(self, place: Affine) -> str:
        terms = []
        for atom, stride in place.terms:
            name = atom.name if isinstance(atom, Index) else self.text(atom).code
            terms.append(name if stride.number == 1 else f"{stride} * {name}")
        if place.offset.terms or not terms:
            terms.append(str(place.offset))
        return " + ".join(terms)

    def _apply(self, value: Apply) -> Text:
        texts = [self.text(arg) for arg in value.args]
        if value.op in _SIGNS:
            sign, strength = _SIGNS[value.op]
            right = Strength.ATOM if strength == Strength.COMPARE else Strength(strength + 1)
            left = Strength.SUM if strength == Strength.COMPARE else strength
            return Text(f"{texts[0].within(left)} {sign} {texts[1].within(right)}", strength)
        if value.op == "select":
            chosen, one, other = (text.code for text in texts)
            return Text(f"{one} if {chosen} else {other}", Strength.CHOICE)
        if value.op == "neg":
            return Text(f"-{texts[0].within(Strength.ATOM)}", Strength.UNARY)
        if value.op == "cast" or value.op.startswith("round:"):
            return texts[0]
        function = value.op.partition(":")[0]
        return Text(f"{function}({', '.join(text.code for text in texts)})")
