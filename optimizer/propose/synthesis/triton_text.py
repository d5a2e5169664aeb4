"""Values as Triton expressions."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from optimizer.propose.synthesis.affine import Affine, Index
from optimizer.propose.synthesis.arithmetic import DAMPED_EXP
from optimizer.propose.synthesis.cpp_text import shortest
from optimizer.propose.synthesis.dtypes import RegionError, is_float
from optimizer.propose.synthesis.emission import Strength, Text, split_place, unplaced
from optimizer.propose.synthesis.extent import ONE, Extent
from optimizer.propose.synthesis.moves import not_negative
from optimizer.propose.synthesis.value import (
    Apply,
    Constant,
    Load,
    Position,
    Search,
    Symbol,
    Value,
    indices_of,
)

_OPERATORS: Final[Mapping[str, tuple[str, Strength]]] = {
    "add": ("+", Strength.SUM), "sub": ("-", Strength.SUM), "mul": ("*", Strength.PRODUCT),
    "div": ("/", Strength.PRODUCT), "truncdiv": ("//", Strength.PRODUCT),
    "lt": ("<", Strength.COMPARE), "le": ("<=", Strength.COMPARE), "gt": (">", Strength.COMPARE),
    "ge": (">=", Strength.COMPARE), "eq": ("==", Strength.COMPARE), "ne": ("!=", Strength.COMPARE),
    "and": ("&", Strength.AND), "or": ("|", Strength.OR), "xor": ("^", Strength.OR),
    "bitand": ("&", Strength.AND), "bitor": ("|", Strength.OR), "bitxor": ("^", Strength.OR),
}  # fmt: skip
_CALLS: Final[Mapping[str, str]] = {
    "abs": "tl.abs", "sqrt": "tl.sqrt", "rsqrt": "tl.rsqrt", "floor": "tl.floor",
    "ceil": "tl.ceil", "sin": "tl.sin", "cos": "tl.cos", "log": "tl.log", "erf": "tl.erf",
}  # fmt: skip
_HELPERS: Final[Mapping[str, str]] = {
    "exp": "exp", "tanh": "tanh", "expm1": "expm1", "log1p": "log1p", "max": "maximum",
    "min": "minimum", "round": "round_to_even", "trunc": "truncate",
}  # fmt: skip
Use = Callable[[Value], Text]


@dataclass
class TritonPrinter:
    """Writes values as Triton; notes which functions they need, and which pointers to rows."""

    exemplars: Mapping[str, str]
    """For each dtype variable, a pointer to it: Triton code can't name the dtype otherwise."""
    functions: dict[str, None] = field(default_factory=dict)
    rows: dict[tuple[str, Affine], str] = field(default_factory=dict)
    falling: frozenset[Value] = frozenset()
    fillers: Mapping[Load, float] = field(default_factory=dict)
    """What masked-off elements hold, 0 if absent."""
    moving: str = "col"
    """The loop variable that is a block of elements, and so needs a mask."""
    mask: str = "mask"
    of_rows: bool = False
    """Whether the elements are those of rows, which may have other tensors in common."""
    directories: Mapping[str, str] = field(default_factory=dict)
    """Of tables that have one, the index in which a search begins: see `triton_index`."""

    def declare(self, name: str, value: Value, text: Text) -> str:
        """See `emission.Printer`."""
        return f"{name} = {text.code}"

    def write(self, value: Value, use: Use) -> Text:
        """See `emission.Printer`."""
        match value:
            case Constant():
                return _constant(value)
            case Symbol(text=text):
                return Text(text, _strength(text))
            case Position(place=place):
                return self.place(place, use)
            case Load():
                return self._load(value, use)
            case Search():
                return self._search(value, use)
            case Apply():
                return self._apply(value, use)
            case _:
                raise RegionError(unplaced(value))

    def pointer(self, tensor: str, place: Affine, use: Use) -> str:
        """Return the address of an element, by the pointer to its row where there is one."""
        along, rest = split_place(place)
        if (tensor, rest) in self.rows:
            row = self.rows[tensor, rest]
            return f"{row} + {self.place(along, use).code}"
        if not place.terms and place.offset.number == 0:
            return f"{tensor}_ptr"
        return f"{tensor}_ptr + {self.place(place, use).within(Strength.SUM)}"

    def place(self, place: Affine, use: Use) -> Text:
        """Return a place as a sum."""
        terms = [self._term(atom, stride, use) for atom, stride in place.terms]
        if place.offset.terms or not terms:
            terms.append(Text(str(place.offset), _strength(str(place.offset))))
        if len(terms) == 1:
            return terms[0]
        code = " + ".join(term.within(Strength.SUM) for term in terms)
        return Text(code.replace("+ -", "- "), Strength.SUM)

    def type_of(self, dtype: str) -> str:
        """Return a dtype's name in Triton."""
        if dtype in self.exemplars:
            return f"{self.exemplars[dtype]}.dtype.element_ty"
        return "tl.int1" if dtype == "bool" else f"tl.{dtype}"

    def call(self, function: str, *arguments: str) -> Text:
        """Return a call of a function that goes into the file."""
        self.functions[function] = None
        return Text(f"{function}({', '.join(arguments)})")

    def _term(self, atom: Index | Value, stride: Extent, use: Use) -> Text:
        name = Text(atom.name) if isinstance(atom, Index) else use(atom)
        if stride == ONE:
            return name
        size = Text(str(stride), _strength(str(stride)))
        code = f"{name.within(Strength.PRODUCT)} * {size.within(Strength.PRODUCT)}"
        return Text(code, Strength.PRODUCT)

    def _load(self, value: Load, use: Use) -> Text:
        pointer = self.pointer(value.tensor, value.place, use)
        if not self.moves(value.place):
            return Text(f"tl.load({pointer})")
        filler = self.fillers.get(value, 0.0)
        other = f'float("{filler}")' if math.isinf(filler) else f"{filler:g}"
        common = self.of_rows and all(i.name == self.moving for i in indices_of(value.place))
        return self.call("load_shared" if common else "load", pointer, self.mask, other)

    def moves(self, place: Affine) -> bool:
        """Return whether a place differs within a block of elements."""
        return any(index.name == self.moving for index in indices_of(place))

    def _apply(self, value: Apply, use: Use) -> Text:  # noqa: PLR0911 - one return a case
        op = value.op
        texts = [use(arg) for arg in value.args]
        codes = [text.code for text in texts]
        if op in _OPERATORS:
            sign, strength = _OPERATORS[op]
            return _infix(sign, strength, *texts)
        small = value.args[0] in self.falling or value.dtype != "float32"
        if op == DAMPED_EXP or (op == "exp" and small):
            return Text(f"tl.exp({codes[0]})")
        if op in {"max", "min"} and not is_float(value.dtype):
            return Text(f"tl.{op}imum({', '.join(codes)})")
        if op in _HELPERS:
            return self.call(_HELPERS[op], *codes)
        if op in _CALLS:
            return Text(f"{_CALLS[op]}({', '.join(codes)})")
        if op in {"floordiv", "mod"}:
            return self._division(value, texts)
        return self._other(value, texts)

    def _other(self, value: Apply, texts: list[Text]) -> Text:
        match value.op.partition(":")[0]:
            case "neg":
                return Text(f"-{texts[0].within(Strength.ATOM)}", Strength.UNARY)
            case "bitnot":
                return Text(f"~{texts[0].within(Strength.ATOM)}", Strength.UNARY)
            case "not":
                return Text(f"{texts[0].within(Strength.SUM)} == 0", Strength.COMPARE)
            case "select":
                return Text(f"tl.where({', '.join(text.code for text in texts)})")
            case "cast":
                return self._cast(value, texts[0])
            case "round":
                stored = self.type_of(value.op.partition(":")[2])
                back = self.type_of(value.dtype)
                return Text(f"{texts[0].within(Strength.ATOM)}.to({stored}).to({back})")
            case op:
                msg = f"there is no Triton for the operation {op} with these operands"
                raise RegionError(msg)

    def _cast(self, value: Apply, text: Text) -> Text:
        (arg,) = value.args
        if isinstance(arg, Symbol):
            # A size is a number of the launch: dividing by it gives float32 without more ado.
            return text
        return Text(f"{text.within(Strength.ATOM)}.to({self.type_of(value.dtype)})")

    def _division(self, value: Apply, texts: list[Text]) -> Text:
        """Floor division, which is Triton's own where nothing is negative."""
        sign, function = ("//", "floor_divide") if value.op == "floordiv" else ("%", "modulo")
        if all(not_negative(arg) for arg in value.args):
            return _infix(sign, Strength.PRODUCT, *texts)
        return self.call(function, *(text.code for text in texts))

    def _search(self, value: Search, use: Use) -> Text:
        needle = use(value.needle).code
        table, equal = f"{value.table}_ptr", str(value.right)
        if value.table in self.directories:
            directory, bits = f"{self.directories[value.table]}_ptr", f"{value.table.upper()}_BITS"
            return self.call("count_in_bucket", directory, table, needle, bits, equal)
        steps = f"{value.table.upper()}_STEPS"
        return self.call("count_before", table, value.size, needle, steps, equal)


def _constant(value: Constant) -> Text:
    number = value.value
    if value.dtype == "bool":
        return Text(str(bool(number)))
    if not is_float(value.dtype):
        return Text(str(int(number)), Strength.ATOM if number >= 0 else Strength.UNARY)
    if math.isinf(number) or math.isnan(number):
        return Text(f'float("{float(number)}")')
    code = shortest(float(number)) if value.dtype == "float32" else repr(float(number))
    return Text(code, Strength.UNARY if code.startswith("-") else Strength.ATOM)


def _infix(sign: str, strength: Strength, left: Text, right: Text) -> Text:
    if strength in {Strength.AND, Strength.OR, Strength.COMPARE}:
        # In Python & binds more tightly than a comparison.
        return Text(f"{left.within(Strength.SUM)} {sign} {right.within(Strength.SUM)}", strength)
    return Text(f"{left.within(strength)} {sign} {right.within(Strength(strength + 1))}", strength)


def _strength(text: str) -> Strength:
    if text.isidentifier() or text.isdigit():
        return Strength.ATOM
    return Strength.SUM if "+" in text or "-" in text else Strength.PRODUCT
