"""Values as C++ expressions."""

import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from optimizer.propose.synthesis.affine import Affine, Index
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
)

TYPES: Mapping[str, str] = {
    "float64": "double", "float32": "float", "float16": "fp16", "bfloat16": "bf16",
    "int64": "int64_t", "int32": "int32_t", "int16": "int16_t", "int8": "int8_t",
    "uint8": "uint8_t", "bool": "bool",
}  # fmt: skip
_OPERATORS: Final[Mapping[str, tuple[str, Strength]]] = {
    "add": ("+", Strength.SUM), "sub": ("-", Strength.SUM), "mul": ("*", Strength.PRODUCT),
    "div": ("/", Strength.PRODUCT), "truncdiv": ("/", Strength.PRODUCT),
    "lt": ("<", Strength.COMPARE), "le": ("<=", Strength.COMPARE), "gt": (">", Strength.COMPARE),
    "ge": (">=", Strength.COMPARE), "eq": ("==", Strength.COMPARE), "ne": ("!=", Strength.COMPARE),
    "and": ("&", Strength.AND), "or": ("|", Strength.OR), "xor": ("!=", Strength.COMPARE),
    "bitand": ("&", Strength.AND), "bitor": ("|", Strength.OR), "bitxor": ("^", Strength.OR),
}  # fmt: skip
_STANDARD: Final[Mapping[str, str]] = {
    "abs": "std::abs", "sqrt": "std::sqrt", "floor": "std::floor", "ceil": "std::ceil",
    "trunc": "std::trunc", "round": "std::nearbyint", "sin": "std::sin", "cos": "std::cos",
    "expm1": "std::expm1", "log1p": "std::log1p", "pow": "std::pow",
}  # fmt: skip
_FAST: Final[Mapping[str, str]] = {
    "exp": "fast_exp", "log": "fast_log", "tanh": "fast_tanh", "erf": "fast_erf",
}  # fmt: skip
_INT32: Final = 2**31

Use = Callable[[Value], Text]


def type_of(dtype: str) -> str:
    """Return the C++ type of a dtype; a variable of the spec is a macro of the same name."""
    return TYPES.get(dtype, dtype)


@dataclass
class CppPrinter:
    """Writes values as C++; notes which functions they need, and which pointers to rows."""

    functions: dict[str, None] = field(default_factory=dict)
    rows: dict[tuple[str, Affine], str] = field(default_factory=dict)
    """Pointers that a loop over rows has set, by the tensor and the place that they point to."""
    col: str = "col"
    """The name of the loop variable along a row."""
    falling: frozenset[Value] = frozenset()
    """Values that surely are at most 0."""
    found: str = ""
    """Where the places that a search found stand, as an array over the loop variable."""

    def declare(self, name: str, value: Value, text: Text) -> str:
        """See `emission.Printer`."""
        return f"const {type_of(value.dtype)} {name} = {text.code};"

    def write(self, value: Value, use: Use) -> Text:
        """See `emission.Printer`."""
        match value:
            case Constant():
                return self._constant(value)
            case Symbol(text=text, dtype=dtype):
                return Text(f"float({text})") if is_float(dtype) else Text(text, _strength(text))
            case Position(place=place):
                return self.place(place, use)
            case Load(tensor=tensor, place=place):
                return Text(self.element(tensor, place, use))
            case Search():
                return self._search(value, use)
            case Apply():
                return self._apply(value, use)
            case _:
                raise RegionError(unplaced(value))

    def element(self, tensor: str, place: Affine, use: Use) -> str:
        """Return an element of a tensor, by the pointer to its row where there is one."""
        along, rest = split_place(place)
        if (tensor, rest) in self.rows:
            return f"{self.rows[tensor, rest]}[{self.place(along, use).code}]"
        return f"{tensor}[{self.place(place, use).code}]"

    def place(self, place: Affine, use: Use) -> Text:
        """Return a place as a sum."""
        terms = [self._term(atom, stride, use) for atom, stride in place.terms]
        if place.offset.terms or not terms:
            terms.append(Text(str(place.offset), _strength(str(place.offset))))
        if len(terms) == 1:
            return terms[0]
        code = " + ".join(term.within(Strength.SUM) for term in terms)
        return Text(code.replace("+ -", "- "), Strength.SUM)

    def _term(self, atom: Index | Value, stride: Extent, use: Use) -> Text:
        name = (
            Text(self.col if atom.name == "col" else atom.name)
            if isinstance(atom, Index)
            else use(atom)
        )
        if stride == ONE:
            return name
        size = Text(str(stride), _strength(str(stride)))
        parts = f"{name.within(Strength.PRODUCT)} * {size.within(Strength.PRODUCT)}"
        return Text(parts, Strength.PRODUCT)

    def call(self, function: str, *arguments: str) -> Text:
        """Return a call of a function that goes into the file."""
        self.functions[function] = None
        return Text(f"{function}({', '.join(arguments)})")

    def _typed_call(self, function: str, value: Apply, arguments: list[str]) -> Text:
        """Return a template's call, with its type where a literal would deduce another."""
        self.functions[function] = None
        literal = any(isinstance(a, Constant | Symbol) for a in value.args)
        kind = f"<{type_of(value.dtype)}>" if literal and not is_float(value.dtype) else ""
        return Text(f"{function}{kind}({', '.join(arguments)})")

    def _apply(self, value: Apply, use: Use) -> Text:
        op, args = value.op.removesuffix(":damped"), value.args
        if op in _OPERATORS:
            sign, strength = _OPERATORS[op]
            return _infix(sign, strength, use(args[0]), use(args[1]))
        texts = [use(arg) for arg in args]
        codes = [text.code for text in texts]
        number = args[0].dtype
        if op in _FAST and number == "float32":
            falling = op == "exp" and args[0] in self.falling
            return self.call("fast_exp_falling" if falling else _FAST[op], *codes)
        if op in _FAST or op in _STANDARD:
            return Text(f"{_STANDARD.get(op, f'std::{op}')}({', '.join(codes)})")
        if op in {"max", "min"}:
            return self._typed_call("maximum" if op == "max" else "minimum", value, codes)
        if op in {"floordiv", "mod"}:
            return self._division(value, texts)
        return self._other(value, texts)

    def _other(self, value: Apply, texts: list[Text]) -> Text:  # noqa: PLR0911 - one return a case
        kind = type_of(value.dtype)
        match value.op.partition(":")[0]:
            case "neg":
                return Text(f"-{texts[0].within(Strength.ATOM)}", Strength.UNARY)
            case "not":
                return Text(f"!{texts[0].within(Strength.ATOM)}", Strength.UNARY)
            case "bitnot":
                return Text(f"~{texts[0].within(Strength.ATOM)}", Strength.UNARY)
            case "rsqrt":
                return _infix(
                    "/", Strength.PRODUCT, Text("1.0f"), Text(f"std::sqrt({texts[0].code})")
                )
            case "select":
                first, *rest = (text.within(Strength.OR) for text in texts)
                return Text(f"{first} ? {rest[0]} : {rest[1]}", Strength.CHOICE)
            case "cast":
                return Text(f"{kind}({texts[0].code})")
            case "round":
                stored = type_of(value.op.partition(":")[2])
                return Text(f"{kind}({stored}({texts[0].code}))")
            case _:
                msg = f"there is no C++ for the operation {value.op}"
                raise RegionError(msg)

    def _division(self, value: Apply, texts: list[Text]) -> Text:
        """Floor division, which is C++'s own where nothing is negative."""
        sign, function = ("/", "floor_divide") if value.op == "floordiv" else ("%", "modulo")
        if all(not_negative(arg) for arg in value.args):
            return _infix(sign, Strength.PRODUCT, *texts)
        return self._typed_call(function, value, [text.code for text in texts])

    def _search(self, value: Search, use: Use) -> Text:
        kind = type_of(value.table_dtype)
        before = f"element {'<=' if value.right else '<'} {use(value.needle).within(Strength.SUM)}"
        look = f"[=]({kind} element) {{ return {before}; }}"
        return self.call("count_before", value.table, value.size, look)

    def _constant(self, value: Constant) -> Text:
        number = value.value
        if value.dtype == "bool":
            return Text("true" if number else "false")
        if not is_float(value.dtype):
            long = "" if -_INT32 < number < _INT32 else "LL"
            return Text(f"{int(number)}{long}", Strength.ATOM if number >= 0 else Strength.UNARY)
        if math.isinf(number) or math.isnan(number):
            code = "NAN" if math.isnan(number) else f"{'-' * (number < 0)}INFINITY"
        else:
            code = (
                shortest(float(number)) + "f" if value.dtype == "float32" else repr(float(number))
            )
        return Text(code, Strength.UNARY if code.startswith("-") else Strength.ATOM)


def shortest(number: float) -> str:
    """Return the shortest decimal that is the same float32."""
    wanted = _float32(number)
    for digits in range(1, 10):
        text = f"{number:.{digits}g}"
        if _float32(float(text)) == wanted:
            return text if "." in text or "e" in text else f"{text}.0"
    return repr(number)


def _float32(number: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError:
        return math.copysign(math.inf, number)


def _infix(sign: str, strength: Strength, left: Text, right: Text) -> Text:
    if strength in {Strength.AND, Strength.OR, Strength.COMPARE}:
        # Compilers warn, and readers stumble, at & between comparisons without parentheses.
        return Text(f"{left.within(Strength.SUM)} {sign} {right.within(Strength.SUM)}", strength)
    # The right side of a - (b - c) keeps its parentheses: sums are not reordered.
    return Text(f"{left.within(strength)} {sign} {right.within(Strength(strength + 1))}", strength)


def _strength(text: str) -> Strength:
    if text.isidentifier() or text.isdigit():
        return Strength.ATOM
    return Strength.SUM if "+" in text or "-" in text else Strength.PRODUCT
