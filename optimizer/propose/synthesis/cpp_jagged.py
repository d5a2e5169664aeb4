"""Jagged selects as C++: one pass over the segments finds the runs to keep, then all are copied."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from operator_registry.spec import OperatorSpec, TensorSpec
from optimizer.plan import Buffer, Launch
from optimizer.propose.synthesis.cpp_base import GRAINS, RESERVED, operand, stored
from optimizer.propose.synthesis.cpp_text import CppPrinter, type_of
from optimizer.propose.synthesis.emission import Depth, Emission, Names, Strength, indented
from optimizer.propose.synthesis.jagged import JaggedRegion, Move
from optimizer.propose.synthesis.jagged_plan import (
    described,
    limits_of,
    reads_of,
    sizes_buffer,
    symbols_in,
    tensors_read,
    tensors_written,
)
from optimizer.propose.synthesis.passes import uses_in
from optimizer.propose.synthesis.sketch import Sketch

_ZERO = "const int64_t low = 0;"
LOCALS = frozenset({
    "runs", "event", "kept", "run", "low", "high", "length", "segment", "member", "share", "piece",
    "shares", "first_run", "last_run", "read", "written", "in", "out", "count", "taken", "done",
    "run_start", "run_length", "sizes", "starts", "work",
})  # fmt: skip


@dataclass
class CppJagged:
    """Writes a jagged select's kernel."""

    name: str
    region: JaggedRegion
    spec: OperatorSpec
    emission: Emission = field(init=False)
    printer: CppPrinter = field(init=False)

    def __post_init__(self) -> None:
        """Prepare the printer and the names."""
        self.printer = CppPrinter()
        names = Names({*self.spec.inputs, *self.spec.outputs, *self.spec.axes} | RESERVED | LOCALS)
        roots = [*limits_of(self.region), *(store.value for store in self.region.stores)]
        self.emission = Emission(self.printer, names, uses_in(roots))

    def sketch(self) -> Sketch:
        """Return the kernel with its launch and the sizes that it finds."""
        body = [*self._find_runs(), *self._copy()]
        numbers = self._numbers()
        return Sketch(
            code=(
                *(f"// {line}" for line in described(self.region)),
                f'extern "C" void KERNEL({self.name})({", ".join(self._parameters(numbers))}) {{',
                *indented(body, 2),
                "}",
            ),
            steps=(
                Launch(
                    kernel=self.name,
                    arguments=(*self._tensors(), "run_start", "run_length", "sizes", *numbers),
                ),
                *reads_of(self.region),
            ),
            functions=tuple(self.printer.functions),
            tunables={"GRAIN": GRAINS},
            chosen={"GRAIN": GRAINS[1]},
            buffers={
                "run_start": Buffer(shape=(str(self.region.segments.size),), dtype="int64"),
                "run_length": Buffer(shape=(str(self.region.segments.size),), dtype="int64"),
                "sizes": sizes_buffer(self.region),
            },
            note=f"{self.region.kind}, runs found in one pass and copied whole",
        )

    def _tensors(self) -> tuple[str, ...]:
        return (*tensors_read(self.region), *tensors_written(self.region))

    def _numbers(self) -> tuple[str, ...]:
        members = () if self.region.members is None else (self.region.members,)
        used = {*self.region.segments.size.names, *members, *symbols_in(self.region)}
        return tuple(name for name in (*self.spec.axes, *self.spec.attributes) if name in used)

    def _parameters(self, numbers: Iterable[str]) -> Iterable[str]:
        for name in tensors_read(self.region):
            yield f"const {_pointer(self.spec, name)} {name}"
        for name in tensors_written(self.region):
            yield f"{_pointer(self.spec, name)} {name}"
        yield from ("int64_t* run_start", "int64_t* run_length", "int64_t* sizes")
        for name in numbers:
            real = name in self.spec.attributes and isinstance(
                self.spec.attributes[name].value, float
            )
            yield f"{'double' if real else 'int64_t'} {name}"

    def _find_runs(self) -> list[str]:
        """Find the runs of kept elements; one that begins where another ends is joined to it."""
        region = self.region
        inner = [f"const int64_t length = {region.lengths}[segment];"]
        texts = [self.emission.use(value, at=Depth.ROW) for value in limits_of(region)]
        inner += self.emission.take(Depth.ROW)
        low = texts.pop(0).within(Strength.SUM) if region.low is not None else "0"
        high = texts.pop(0).within(Strength.SUM) if region.high is not None else "length"
        inner.append(f"const int64_t low = {low} > 0 ? {low} : 0;" if region.low else _ZERO)
        inner.append(f"const int64_t high = {high} < length ? {high} : length;")
        for store in region.stores:
            text = self.emission.use(store.value, at=Depth.ROW)
            inner += self.emission.take(Depth.ROW)
            inner.append(f"{store.tensor}[segment] = {stored(store, text)};")
        return [
            *self.emission.take(Depth.KERNEL),
            "int64_t runs = 0;",
            "int64_t event = 0;",
            "int64_t kept = 0;",
            f"for (int64_t segment = 0; segment < {region.segments.size}; ++segment) {{",
            *indented(inner, 2),
            "  if (high > low) {",
            "    const int64_t start = event + low;",
            "    if (runs > 0 && run_start[runs - 1] + run_length[runs - 1] == start) {",
            "      run_length[runs - 1] += high - low;",
            "    } else {",
            "      run_start[runs] = start;",
            "      run_length[runs] = high - low;",
            "      ++runs;",
            "    }",
            "    kept += high - low;",
            "  }",
            "  event += length;",
            "}",
            "sizes[0] = kept;",
        ]

    def _copy(self) -> list[str]:
        """Copy the runs of every tensor, members of lists side by side."""
        region = self.region
        single = [move for move in region.moves if not move.listed]
        listed = [move for move in region.moves if move.listed]
        lines: list[str] = []
        if single:
            lines += ["{", *indented(self._member(single, member=None), 2), "}"]
        if listed:
            members = operand(str(region.members))
            lines += [
                f"#pragma omp parallel for schedule(dynamic, 1) if (event * {members} >= GRAIN)",
                f"for (int64_t member = 0; member < {members}; ++member) {{",
                *indented(self._member(listed, member="member"), 2),
                "}",
            ]
        return lines

    def _member(self, moves: list[Move], *, member: str | None) -> list[str]:
        """Copy the runs of one member's tensors."""
        deep = [move for move in moves if move.level > 1]
        start: list[str] = []
        for move in moves:
            kind = type_of(move.dtype)
            at = f"[{member}]" if member else ""
            start.append(f"const {kind}* const from_{move.source} = {move.source}{at};")
            start.append(f"{kind}* to_{move.output} = {move.output}{at};")
        if deep:
            return [*start, *self._deep(moves, deep, member)]
        return [
            *start,
            "for (int64_t run = 0; run < runs; ++run) {",
            *indented(_copies(moves, "run_start[run]", "run_length[run]"), 2),
            "}",
        ]

    def _deep(self, moves: list[Move], deep: list[Move], member: str | None) -> list[str]:
        """Copy runs and what belongs to their elements: sums of lengths tell where that stands."""
        inner = str(self.region.inner)
        at = f"[{member}]" if member and self.region.inner_listed else ""
        shallow = [move for move in moves if move.level == 1]
        lengths = type_of(str(self.spec.inputs[inner].dtype))
        place = f"1 + {member}" if member else "1"
        self.printer.functions["sum_of"] = None
        return [
            f"const {lengths}* const lengths = {inner}{at};",
            "int64_t done = 0;",
            "int64_t read = 0;",
            "int64_t written = 0;",
            "for (int64_t run = 0; run < runs; ++run) {",
            *indented(_copies(shallow, "run_start[run]", "run_length[run]"), 2),
            "  read += sum_of(lengths + done, run_start[run] - done);",
            "  const int64_t count = sum_of(lengths + run_start[run], run_length[run]);",
            *indented(_copies(deep, "read", "count"), 2),
            "  read += count;",
            "  written += count;",
            "  done = run_start[run] + run_length[run];",
            "}",
            f"sizes[{place}] = written;",
        ]


def _copies(moves: Iterable[Move], start: str, count: str) -> list[str]:
    lines: list[str] = []
    for move in moves:
        to, source = f"to_{move.output}", f"from_{move.source}"
        lines.append(f"std::memcpy({to}, {source} + {start}, {count} * sizeof(*{to}));")
        lines.append(f"{to} += {count};")
    return lines


def _pointer(spec: OperatorSpec, name: str) -> str:
    tensor: TensorSpec = spec.inputs[name] if name in spec.inputs else spec.outputs[name]
    kind = type_of(str(tensor.dtype))
    return f"{kind}* const*" if tensor.list_over else f"{kind}* __restrict"
