"""What Triton kernels of loop regions have in common: arguments, pointers, masks, stores."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from optimizer.propose.synthesis.affine import Affine
from optimizer.propose.synthesis.arithmetic import unrounded
from optimizer.propose.synthesis.dtypes import Dtypes
from optimizer.propose.synthesis.emission import (
    Depth,
    Emission,
    Names,
    Strength,
    depth_in_block,
    indented,
    split_place,
)
from optimizer.propose.synthesis.extent import Extent, product
from optimizer.propose.synthesis.formula import formula
from optimizer.propose.synthesis.neutral import choose_fillers, divisors
from optimizer.propose.synthesis.passes import falling
from optimizer.propose.synthesis.regions import LoopRegion, Store
from optimizer.propose.synthesis.signature import Signature
from optimizer.propose.synthesis.triton_text import TritonPrinter
from optimizer.propose.synthesis.value import Load, Reduce, Search, Value, parts, walk

RESERVED = frozenset({
    "and", "or", "not", "if", "for", "in", "is", "None", "True", "False", "def", "return", "tl",
    "triton", "row", "col", "start", "mask", "in_rows", "in_cols", "range", "load", "keep", "exp",
    "load_shared", "piece", "tanh", "float", "int", "min", "max", "lambda", "elements",
})  # fmt: skip


@dataclass
class TritonLoop:
    """Writes one loop region as a Triton kernel."""

    name: str
    region: LoopRegion
    signature: Signature
    dtypes: Dtypes
    printer: TritonPrinter = field(init=False)
    names: Names = field(init=False)
    emission: Emission = field(init=False)
    reductions: list[Reduce] = field(init=False)
    satisfied: frozenset[Reduce] = field(init=False)
    """Reductions that do not see masked-off elements as they are loaded."""

    def __post_init__(self) -> None:
        """Prepare the printer, the names and what masked-off elements hold."""
        values = list(walk(*(store.value for store in self.region.stores)))
        self.reductions = [value for value in values if isinstance(value, Reduce)]
        fillers, self.satisfied = choose_fillers(self.reductions, self.dtypes)
        fillers |= {load: 1.0 for load in divisors(values) if load not in fillers}
        tensors = {**self.signature.reads, **self.signature.writes}
        exemplars = {d: f"{n}_ptr" for n, d in tensors.items() if d in self.dtypes.variables}
        self.printer = TritonPrinter(
            exemplars,
            fillers=fillers,
            falling=falling(self.region),
            of_rows=bool(self.region.rows),
        )
        self.names = Names({*self.signature.names} | RESERVED)
        uses = _uses(values, self.region)
        self.emission = Emission(self.printer, self.names, uses, depth=depth_in_block)

    @property
    def width(self) -> Extent:
        """Return the length of a row."""
        return self.region.col.size if self.region.col else Extent((((), 1),))

    @property
    def height(self) -> Extent:
        """Return the number of rows."""
        return product(row.size for row in self.region.rows)

    def row_indices(self) -> list[str]:
        """Say at which place of each outer axis a row stands, where there are several."""
        rows = self.region.rows
        lines: list[str] = []
        left = "row"
        for index in reversed(rows[1:]):
            lines.append(f"{index.name} = {left} % {operand(index.size)}")
            left = f"{left} // {operand(index.size)}"
        return [*lines, f"{rows[0].name} = {left}"] if len(rows) > 1 else []

    def row_pointers(self) -> list[str]:
        """Name the beginning of this row in each tensor that has one."""
        lines: list[str] = []
        for tensor, place in self._row_places():
            along, rest = split_place(place)
            known = (tensor, rest) in self.printer.rows
            if known or not along.terms or not rest.terms or _computed(rest):
                continue
            name = self.names.fresh(f"{tensor}_row")
            start = self.printer.place(rest, lambda value: self.emission.use(value, at=Depth.ROW))
            lines += self.emission.take(Depth.ROW)
            lines.append(f"{name} = {tensor}_ptr + {start.within(Strength.SUM)}")
            self.printer.rows[tensor, rest] = name
        return lines

    def stores(self, stores: Sequence[Store], *, at: Depth = Depth.ROW) -> list[str]:
        """Return the statements that write values."""
        lines: list[str] = []
        for store in stores:
            text = self.emission.use(unrounded(store.value), at=at)
            pointer = self.printer.pointer(store.tensor, store.place, self.emission.use)
            masked = ", mask=mask" if self.printer.moves(store.place) else ""
            lines += self.emission.take(at)
            lines.append(f"tl.store({pointer}, {text.code}{masked})")
        return lines

    def kernel(self, body: Sequence[str], constants: Iterable[str], note: str) -> tuple[str, ...]:
        """Return the kernel's text; arguments that its body does not use are left out."""
        pointers = [f"{name}_ptr" for name in (*self.signature.reads, *self.signature.writes)]
        constexprs = [f"{name}: tl.constexpr" for name in constants]
        arguments = [*pointers, *self._numbers(body), *constexprs]
        lines = [*formula(self.region), "", note]
        return (
            "@triton.jit",
            f"def {self.name}({', '.join(arguments)}):",
            *_docstring(lines),
            *indented(body, 4),
        )

    def arguments(
        self, body: Sequence[str], renamed: Mapping[str, str] | None = None
    ) -> tuple[str, ...]:
        """Return what a launch passes, compile-time constants left out."""
        given = {name: name for name in self._numbers(body)} | dict(renamed or {})
        tensors = (*self.signature.reads, *self.signature.writes)
        return (*tensors, *(given[name] for name in self._numbers(body)))

    def search_constants(self) -> dict[str, str]:
        """Return the compile-time constants of searches, by the table's name.

        They are a plain search's steps, or the bits that number an index's buckets.
        """
        constants: dict[str, str] = {}
        for value in walk(*(store.value for store in self.region.stores)):
            if isinstance(value, Search) and value.table in self.printer.directories:
                constants[f"{value.table.upper()}_BITS"] = f"log2({value.table}_buckets)"
            elif isinstance(value, Search):
                constants[f"{value.table.upper()}_STEPS"] = f"log2({value.size})"
        return constants

    def _numbers(self, body: Sequence[str]) -> list[str]:
        words = set(re.findall(r"\w+", "\n".join(body)))
        names = ("elements", *self.signature.sizes, *self.signature.numbers)
        return [name for name in names if name in words]

    def _row_places(self) -> list[tuple[str, Affine]]:
        values = walk(*(store.value for store in self.region.stores))
        loads = [(v.tensor, v.place) for v in values if isinstance(v, Load)]
        order = list(self.signature.reads)
        loads.sort(key=lambda pair: order.index(pair[0]))
        return [*loads, *((store.tensor, store.place) for store in self.region.stores)]


def operand(size: Extent) -> str:
    """Return a size as an expression that any operator can be put beside."""
    text = str(size)
    return text if text.isidentifier() or text.isdigit() else f"({text})"


def _computed(place: Affine) -> bool:
    return any(isinstance(atom, Search | Reduce) for atom, _ in place.terms)


def _uses(values: Sequence[Value], region: LoopRegion) -> Counter[Value]:
    uses: Counter[Value] = Counter(store.value for store in region.stores)
    for value in values:
        uses.update(parts(value))
    return uses


def _docstring(lines: Sequence[str]) -> list[str]:
    if len(lines) == 1:
        return [f'    """{lines[0]}"""']
    return [f'    """{lines[0]}', *indented(lines[1:], 4), '    """']
