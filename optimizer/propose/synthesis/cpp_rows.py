"""Row reductions as C++: a thread takes whole rows, loop after loop along each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from optimizer.propose.synthesis.cpp_base import CppLoop
from optimizer.propose.synthesis.cpp_text import type_of
from optimizer.propose.synthesis.dtypes import is_float
from optimizer.propose.synthesis.emission import Depth, Text, indented, name_for
from optimizer.propose.synthesis.passes import (
    loses_nan,
    make_passes,
    outside,
    uses_in,
    worth_keeping,
)
from optimizer.propose.synthesis.regions import Store
from optimizer.propose.synthesis.value import Reduce, Value

TILES = (512, 1024, 2048)
SPAN = 256
"""So many numbers at most are added in their own format; the sums of spans are in double.

Numbers alike are rounded alike: 32768 of them, added in float32 by sixteen lanes, are off by 200
units in the last place, where eager's cascade is off by a few.
"""
_CLAUSES: Mapping[str, str] = {"sum": "+", "prod": "*", "max": "max", "min": "min"}


@dataclass
class CppRows(CppLoop):
    """A region with reductions along the rows."""

    kept: bool = False
    """Keep costly values of a row between its loops, instead of computing them again."""

    def lines(self) -> list[str]:
        """Return the statements of the kernel."""
        inner = [*self.row_indices(), *self.row_pointers()]
        arrays = self._arrays()
        inner += self._passes()
        if not self.region.rows:
            return [*self.emission.take(Depth.KERNEL), *arrays, *inner]
        loop = [
            f"for (int64_t row = 0; row < {self.row_count}; ++row) {{",
            *indented(inner, 2),
            "}",
        ]
        if not arrays:
            share = f"#pragma omp parallel for schedule(static) if ({self.worth_threads})"
            return [*self.emission.take(Depth.KERNEL), share, *loop]
        return [
            *self.emission.take(Depth.KERNEL),
            f"#pragma omp parallel if ({self.worth_threads})",
            "{",
            *indented([*arrays, "#pragma omp for schedule(static)", *loop], 2),
            "}",
        ]

    def _arrays(self) -> list[str]:
        """Make an array for each value of a row that is kept."""
        self._kept: dict[Value, str] = {}
        if self.kept:
            for value in worth_keeping(make_passes(self.region)):
                self._kept[value] = self.names.fresh(f"{name_for(value)}s")
        return [
            f"const std::unique_ptr<{type_of(v.dtype)}[]> {n}(new {type_of(v.dtype)}[{self.size}]);"
            for v, n in self._kept.items()
        ]

    def _passes(self) -> list[str]:
        passes = make_passes(self.region)
        lines: list[str] = []
        filled: set[Value] = set()
        for several in passes.reductions:
            lines += self._reducing(several, filled)
        if passes.stores:
            self._enter(filled, [store.value for store in passes.stores])
            loop = self._last_loop(passes.stores)
            lines += [*self.emission.take(Depth.ROW), *loop]
            self.emission.leave_loop()
        for store in passes.row_stores:
            self.emission.uses = uses_in([store.value])
            statement = self.store(store)
            lines += [*self.emission.take(Depth.ROW), statement]
        return lines

    def _last_loop(self, stores: Sequence[Store]) -> list[str]:
        if not self.streamed:
            return self.simd(self.statements(stores))
        self.tunables["BLOCK"] = TILES
        return [
            f"for (int64_t first = 0; first < {self.size}; first += BLOCK) {{",
            f"  const int64_t last = first + BLOCK < {self.size} ? first + BLOCK : {self.size};",
            *indented(self.tiled(stores), 2),
            "}",
        ]

    def _enter(self, filled: set[Value], roots: Sequence[Value]) -> None:
        """Begin a loop: what is kept from loops before is known, what it keeps gets a name."""
        self.emission.uses = uses_in(roots)
        for value, name in self._kept.items():
            if value in filled:
                self.emission.known[Depth.ELEMENT][value] = Text(f"{name}[col]")
            else:
                self.emission.uses[value] += 1

    def _reducing(self, several: Sequence[Reduce], filled: set[Value]) -> list[str]:
        """Return a loop that reduces, with what stands around it."""
        roots = [reduction.body for reduction in several]
        self._enter(filled, roots)
        names = {r: self.names.fresh(name_for(r)) for r in several}
        spans = {
            r: (self.names.fresh(f"{names[r]}_part"), self.names.fresh(f"{names[r]}_wide"))
            for r in several
            if r.kind == "sum" and is_float(r.dtype)
        }
        inner = names | {r: part for r, (part, _) in spans.items()}
        checked = [r for r in several if is_float(r.dtype) and loses_nan(r, self.region)]
        body = [line for r in several for line in self._step(r, inner[r], checked=r in checked)]
        body += self._keep(roots, filled)
        before = self.emission.take(Depth.ROW)
        self.emission.leave_loop()
        for reduction, name in names.items():
            self.emission.learn(reduction, name)
        clauses = [f"reduction({_CLAUSES[r.kind]} : {name})" for r, name in inner.items()]
        clauses += [f"reduction(| : {names[r]}_nan)" for r in checked]
        return [
            *before,
            *(
                f"{type_of(r.dtype)} {name} = {_start(r)};"
                for r, name in names.items()
                if r not in spans
            ),
            *(f"int32_t {names[r]}_nan = 0;" for r in checked),
            *self._spanned(body, " ".join(clauses), spans),
            *(f"if ({names[r]}_nan) {names[r]} = NAN;" for r in checked),
            *(
                f"const {type_of(r.dtype)} {names[r]} = {type_of(r.dtype)}({wide});"
                for r, (_, wide) in spans.items()
            ),
        ]

    def _spanned(
        self, body: Sequence[str], clauses: str, spans: Mapping[Reduce, tuple[str, str]]
    ) -> list[str]:
        """Return the loop that reduces: span by span where something is summed.

        Args:
            body: What an element adds.
            clauses: What the loop reduces, for the compiler.
            spans: For each sum the names of a span's and of the whole.
        """
        if not spans:
            loop = self.simd(body)
            return [f"{loop[0]} {clauses}", *loop[1:]]
        loop = self.simd(body, first="first", last="last")
        within = [
            f"const int64_t last = first + {SPAN} < {self.size} ? first + {SPAN} : {self.size};",
            *(f"{type_of(r.dtype)} {part} = 0;" for r, (part, _) in spans.items()),
            f"{loop[0]} {clauses}",
            *loop[1:],
            *(f"{wide} += {part};" for part, wide in spans.values()),
        ]
        return [
            *(f"double {wide} = 0;" for _, wide in spans.values()),
            f"for (int64_t first = 0; first < {self.size}; first += {SPAN}) {{",
            *indented(within, 2),
            "}",
        ]

    def _step(self, reduction: Reduce, name: str, *, checked: bool) -> list[str]:
        """Return what an element adds to a reduction."""
        text = self.emission.use(reduction.body)
        if reduction.kind in {"sum", "prod"}:
            sign = "+" if reduction.kind == "sum" else "*"
            return [*self.emission.take(Depth.ELEMENT), f"{name} {sign}= {text.code};"]
        if not text.code.isidentifier():
            text = self.emission.name(reduction.body, text)
        sign = ">" if reduction.kind == "max" else "<"
        lines = self.emission.take(Depth.ELEMENT)
        lines.append(f"{name} = {text.code} {sign} {name} ? {text.code} : {name};")
        return [*lines, f"{name}_nan |= {text.code} != {text.code};"] if checked else lines

    def _keep(self, roots: Sequence[Value], filled: set[Value]) -> list[str]:
        """Return what a loop writes to the arrays for later loops."""
        inside = set(outside(roots))
        lines: list[str] = []
        for value, name in self._kept.items():
            if value in inside and value not in filled:
                lines.append(f"{name}[col] = {self.emission.use(value).code};")
                filled.add(value)
        return [*self.emission.take(Depth.ELEMENT), *lines]


def _start(reduction: Reduce) -> str:
    """Return what a reduction of nothing is."""
    if reduction.kind in {"sum", "prod"}:
        return "0" if reduction.kind == "sum" else "1"
    low = reduction.kind == "max"
    if is_float(reduction.dtype):
        return "-INFINITY" if low else "INFINITY"
    return f"std::numeric_limits<{type_of(reduction.dtype)}>::{'lowest' if low else 'max'}()"
