"""Pointwise regions and table searches as C++."""

from collections.abc import Sequence
from dataclasses import dataclass

from optimizer.propose.synthesis.cpp_base import CppLoop, searches_of
from optimizer.propose.synthesis.cpp_text import type_of
from optimizer.propose.synthesis.emission import Depth, Text, indented
from optimizer.propose.synthesis.passes import uses_in
from optimizer.propose.synthesis.value import Search

BLOCKS = (512, 1024, 2048, 4096)
LANES = (32, 64, 128, 256)


@dataclass
class CppPointwise(CppLoop):
    """A region without reductions, block by block, so that few long rows occupy all threads too."""

    interleaved: bool = False
    """Search for many elements at a time, so that the table's loads overlap."""

    def lines(self) -> list[str]:
        """Return the statements of the kernel."""
        if not self.region.col:
            return self._single()
        if not self.region.rows and not self.streamed and not self.interleaved:
            return self._one_loop()
        pointers = self.row_pointers()
        inner = self._block()
        before = [*pointers, *self.emission.take(Depth.ROW)]
        body = self._blocks([*before, *inner])
        return [*self.emission.take(Depth.KERNEL), *body]

    def _single(self) -> list[str]:
        body = self.statements(self.region.stores)
        return [*self.emission.take(Depth.KERNEL), *self.emission.take(Depth.ROW), *body]

    def _one_loop(self) -> list[str]:
        body = self.statements(self.region.stores)
        vectors = "" if self.region.searches else "simd "
        return [
            *self.emission.take(Depth.KERNEL),
            f"#pragma omp parallel for {vectors}schedule(static) if ({self.worth_threads})",
            f"for (int64_t i = 0; i < {self.size}; ++i) {{",
            *indented(body, 2),
            "}",
        ]

    def _blocks(self, body: Sequence[str]) -> list[str]:
        """Return the loop over blocks, or over rows and their blocks."""
        step = "LANES" if self.interleaved else "BLOCK"
        self.tunables[step] = LANES if self.interleaved else BLOCKS
        ends = f"const int64_t last = first + {step} < {self.size} ? first + {step} : {self.size};"
        if not self.region.rows:
            return [
                f"#pragma omp parallel for schedule(static) if ({self.worth_threads})",
                f"for (int64_t first = 0; first < {self.size}; first += {step}) {{",
                *indented([ends, *body], 2),
                "}",
            ]
        start = [*self.row_indices(), f"const int64_t first = block * {step};", ends]
        return [
            f"const int64_t blocks = ({self.size} + {step} - 1) / {step};",
            f"#pragma omp parallel for collapse(2) schedule(static) if ({self.worth_threads})",
            f"for (int64_t row = 0; row < {self.row_count}; ++row) {{",
            "  for (int64_t block = 0; block < blocks; ++block) {",
            *indented([*start, *body], 4),
            "  }",
            "}",
        ]

    def _block(self) -> list[str]:
        """Return what is done for the elements from `first` to `last`."""
        if self.interleaved:
            return self._searched()
        if self.streamed:
            return self.tiled(self.region.stores)
        return self.simd(self.statements(self.region.stores), first="first", last="last")

    def _searched(self) -> list[str]:
        """Search for a block's needles together, then compute with the places found."""
        lines: list[str] = []
        arrays: dict[Search, str] = {}
        for search in searches_of(self.region):
            self._recall(arrays)
            arrays[search] = self.names.fresh("places")
            lines += self._search(search, arrays[search])
        self._recall(arrays)
        self.emission.uses = uses_in([store.value for store in self.region.stores])
        body = self.statements(self.region.stores)
        return [*lines, *self.simd(body, first="first", last="last")]

    def _search(self, search: Search, places: str) -> list[str]:
        needles = self.names.fresh("needles")
        kind = type_of(search.needle.dtype)
        col = self.printer.col
        text = self.emission.use(search.needle)
        fill = [*self.emission.take(Depth.ELEMENT), f"{needles}[lane] = {text.code};"]
        self.printer.functions["count_before"] = None
        before = "<=" if search.right else "<"
        table = type_of(search.table_dtype)
        return [
            f"{kind} {needles}[LANES];",
            f"int64_t {places}[LANES];",
            "for (int64_t lane = 0; lane < LANES; ++lane) {",
            f"  const int64_t {col} = first + lane < last ? first + lane : first;",
            *indented(fill, 2),
            "}",
            f"count_before<LANES>({search.table}, {search.size}, {needles}, {places},",
            f"    []({table} element, {kind} needle) {{ return element {before} needle; }});",
        ]

    def _recall(self, arrays: dict[Search, str]) -> None:
        """Begin a loop in which the places found so far are known."""
        self.emission.leave_loop()
        for search, places in arrays.items():
            known = Text(f"{places}[{self.printer.col} - first]")
            self.emission.known[Depth.ELEMENT][search] = known
