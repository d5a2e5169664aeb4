"""What C++ loops over regions have in common: pointers to rows, stores, shares of threads."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from optimizer.propose.synthesis.affine import Affine
from optimizer.propose.synthesis.cpp_text import CppPrinter, type_of
from optimizer.propose.synthesis.emission import (
    Depth,
    Emission,
    Names,
    Strength,
    Text,
    indented,
    split_place,
)
from optimizer.propose.synthesis.passes import falling, uses_in
from optimizer.propose.synthesis.regions import LoopRegion, Store
from optimizer.propose.synthesis.signature import Signature, elements
from optimizer.propose.synthesis.value import Load, Reduce, Search, Value, walk

RESERVED = frozenset({
    "and", "or", "not", "xor", "int", "float", "double", "bool", "const", "for", "if", "return",
    "static", "row", "col", "i", "lane", "first", "last", "block", "blocks", "KERNEL",
})  # fmt: skip
GRAINS = (4096, 16384, 65536, 262144)
"""From how many elements on a second thread is worth its start."""


@dataclass
class CppLoop:
    """Writes the body of one loop region's kernel."""

    region: LoopRegion
    signature: Signature
    streamed: bool = False
    """Write outputs past the cache."""
    tunables: dict[str, tuple[int, ...]] = field(default_factory=lambda: {"GRAIN": GRAINS})
    printer: CppPrinter = field(init=False)
    names: Names = field(init=False)
    emission: Emission = field(init=False)

    def __post_init__(self) -> None:
        """Prepare the printer and the names."""
        self.printer = CppPrinter(falling=falling(self.region))
        if not self.region.rows and not self.region.reduces:
            self.printer.col = "i"
        types = {*self.signature.reads.values(), *self.signature.writes.values()}
        self.names = Names(set(self.signature.names) | RESERVED | types)
        uses = uses_in([store.value for store in self.region.stores])
        self.emission = Emission(self.printer, self.names, uses)

    @property
    def size(self) -> str:
        """Return the length of a row, as an operand."""
        return operand(str(self.region.col.size)) if self.region.col else "1"

    @property
    def worth_threads(self) -> str:
        """Return the condition on which several threads are worth their start."""
        return f"{elements(self.region)} >= GRAIN"

    @property
    def row_count(self) -> str:
        """Return the number of rows."""
        return " * ".join(operand(str(row.size)) for row in self.region.rows) or "1"

    def statements(self, stores: Sequence[Store]) -> list[str]:
        """Return what a loop does for an element."""
        lines: list[str] = []
        for store in stores:
            statement = self.store(store)
            lines += [*self.emission.take(Depth.ELEMENT), statement]
        return lines

    def store(self, store: Store) -> str:
        """Return the statement that writes a value."""
        at = Depth.ELEMENT if moves(store.place) else Depth.ROW
        text = self.emission.use(store.value, at=at)
        place = self.printer.element(store.tensor, store.place, self.emission.use)
        return f"{place} = {stored(store, text)};"

    def simd(self, body: Sequence[str], *, first: str = "0", last: str = "") -> list[str]:
        """Return a vector loop along the row."""
        col = self.printer.col
        return [
            "#pragma omp simd",
            f"for (int64_t {col} = {first}; {col} < {last or self.size}; ++{col}) {{",
            *indented(body, 2),
            "}",
        ]

    def tiled(self, stores: Sequence[Store]) -> list[str]:
        """Return a loop from `first` to `last` into small arrays that are streamed to memory."""
        arrays, body, after = [], [], []
        for store in stores:
            name = self.names.fresh(f"{store.tensor}_tile")
            arrays.append(f"alignas(64) {type_of(store.dtype)} {name}[BLOCK];")
            text = self.emission.use(store.value)
            body += self.emission.take(Depth.ELEMENT)
            col = self.printer.col
            body.append(f"{name}[{col} - first] = {stored(store, text)};")
            place = self.printer.element(store.tensor, store.place, self.emission.use)
            self.printer.functions["stream"] = None
            after.append(f"stream({place.replace(f'[{col}]', '')} + first, {name}, last - first);")
        return [*arrays, *self.simd(body, first="first", last="last"), *after]

    def row_pointers(self) -> list[str]:
        """Name the beginning of this row in each tensor that has one."""
        lines: list[str] = []
        for tensor, place in self._row_places():
            along, rest = split_place(place)
            if not along.terms or not rest.terms or (tensor, rest) in self.printer.rows:
                continue
            if any(isinstance(atom, Search | Reduce) for atom, _ in rest.terms):
                continue
            name = self.names.fresh(f"{tensor}_row")
            start = self.printer.place(rest, lambda value: self.emission.use(value, at=Depth.ROW))
            lines += self.emission.take(Depth.ROW)
            const = "const " if tensor in self.signature.reads else ""
            kind = type_of({**self.signature.reads, **self.signature.writes}[tensor])
            lines.append(f"{const}{kind}* const {name} = {tensor} + {start.within(Strength.SUM)};")
            self.printer.rows[tensor, rest] = name
        return lines

    def row_indices(self) -> list[str]:
        """Say at which place of each outer axis this row stands, where there are several."""
        rows = self.region.rows
        lines: list[str] = []
        left = "row"
        for index in reversed(rows[1:]):
            size = operand(str(index.size))
            lines.append(f"const int64_t {index.name} = {left} % {size};")
            left = f"{left} / {size}"
        return [*lines, f"const int64_t {rows[0].name} = {left};"] if len(rows) > 1 else []

    def _row_places(self) -> list[tuple[str, Affine]]:
        values = walk(*(store.value for store in self.region.stores))
        loads = [(v.tensor, v.place) for v in values if isinstance(v, Load)]
        order = list(self.signature.reads)
        loads.sort(key=lambda pair: order.index(pair[0]))
        return [*loads, *((store.tensor, store.place) for store in self.region.stores)]


def operand(text: str) -> str:
    """Return an expression that any operator can be put beside."""
    return text if text.isidentifier() or text.isdigit() else f"({text})"


def stored(store: Store, text: Text) -> str:
    """Return what is written for a value: in the tensor's own type."""
    if store.dtype == store.value.dtype:
        return text.code
    return f"{type_of(store.dtype)}({text.code})"


def moves(place: Affine) -> bool:
    """Return whether a place depends on the loop variable along the row."""
    return bool(split_place(place)[0].terms)


def searches_of(region: LoopRegion) -> list[Search]:
    """Return the searches of a region, those that others need first."""
    found: list[Value] = list(walk(*(store.value for store in region.stores)))
    return [value for value in found if isinstance(value, Search)]
