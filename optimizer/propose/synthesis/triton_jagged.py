"""Jagged selects as Triton: runs of kept elements, their sums and scans, then one copy of all."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from operator_registry.spec import OperatorSpec
from optimizer.plan import Buffer, Launch
from optimizer.propose.synthesis.cpp_jagged import (
    described,
    reads_of,
    sizes_buffer,
    symbols_in,
    tensors_read,
)
from optimizer.propose.synthesis.dtypes import Dtypes
from optimizer.propose.synthesis.emission import Depth, Emission, Names, indented
from optimizer.propose.synthesis.jagged import SEGMENT, JaggedRegion, Move
from optimizer.propose.synthesis.passes import uses_in
from optimizer.propose.synthesis.sketch import Sketch
from optimizer.propose.synthesis.triton_base import RESERVED
from optimizer.propose.synthesis.triton_text import TritonPrinter
from optimizer.propose.synthesis.value import Constant, Load, Value, walk

LOCALS = frozenset({
    "segment", "low", "high", "length", "kept", "starts", "places", "first", "inside", "lane",
    "member", "address", "lengths", "run_start", "run_length", "run_place", "read", "written",
    "total", "begin", "end", "count", "sizes", "carry", "before", "source", "target", "at",
})  # fmt: skip


@dataclass
class TritonJagged:
    """Writes a jagged select's kernels: `runs`, then for a second level `sums` and `scan`, `copy`."""

    name: str
    region: JaggedRegion
    spec: OperatorSpec
    dtypes: Dtypes
    printer: TritonPrinter = field(init=False)
    emission: Emission = field(init=False)

    def __post_init__(self) -> None:
        self.printer = TritonPrinter({}, moving=SEGMENT, mask="inside")
        tensors = {*self.spec.inputs, *self.spec.outputs, *self.spec.axes}
        limits = [v for v in (self.region.low, self.region.high) if v is not None]
        roots = [*limits, *(store.value for store in self.region.stores)]
        self.emission = Emission(self.printer, Names(tensors | RESERVED | LOCALS), uses_in(roots))

    @property
    def segments(self) -> str:
        """Return the number of segments."""
        return str(self.region.segments.size)

    @property
    def members(self) -> str:
        """Return the number of a list's members, 1 where there is no list."""
        return self.region.members or "1"

    def sketch(self) -> Sketch:
        """Return the kernels with their launches and the sizes that they find."""
        kernels = [self._runs()]
        if self.region.inner:
            kernels += [self._sums(), self._scan()]
        kernels.append(self._copy())
        code: list[str] = []
        for lines, _ in kernels:
            code += [*lines, "", ""]
        return Sketch(
            code=tuple(code[:-2]),
            steps=(*(launch for _, launch in kernels), *reads_of(self.region)),
            functions=tuple(self.printer.functions),
            tunables={"BLOCK": (64, 128, 256, 512), "WARPS": (1, 2, 4), "SCANNED": (1024, 2048, 4096)},
            chosen={"BLOCK": 128, "WARPS": 1, "SCANNED": 1024},
            buffers=self._buffers(),
            note=f"{self.region.kind}, {len(kernels)} launches for all members",
        )

    def _buffers(self) -> dict[str, Buffer]:
        one = Buffer(shape=(self.segments,), dtype="int64")
        each = Buffer(shape=(self.members, self.segments), dtype="int64")
        buffers = {"run_start": one, "run_place": one, "run_length": one}
        if self.region.inner:
            buffers |= {"starts": one, "skipped": each, "total": each, "kept": each}
            buffers |= {"read": each, "written": each}
        if any(move.dtype in self.dtypes.variables for move in self.region.moves):
            for dtype in dict.fromkeys(self._variables()):
                buffers[_sample(dtype)] = Buffer(shape=("1",), dtype=dtype)
        return {**buffers, "sizes": sizes_buffer(self.region)}

    def _variables(self) -> list[str]:
        return [m.dtype for m in self.region.moves if m.listed and m.dtype in self.dtypes.variables]

    def _runs(self) -> tuple[list[str], Launch]:
        """The run of each segment, where it starts and where it goes; one program scans them."""
        region = self.region
        limits = {"low": region.low, "high": region.high}
        texts = {
            name: self.emission.use(value, at=Depth.ROW).code
            for name, value in limits.items()
            if value is not None
        }
        inner = [
            "segment = first + tl.arange(0, SCANNED)",
            f"inside = segment < {self.segments}",
            f"length = tl.load({region.lengths}_ptr + segment, mask=inside, other=0).to(tl.int64)",
            *self.emission.take(Depth.ROW),
            f"high = tl.minimum({texts['high']}, length)" if "high" in texts else "high = length",
            self._low(texts["low"]),
            "kept = tl.maximum(high - low, 0)",
            "before = event + tl.cumsum(length, 0) - length",
            "tl.store(run_start_ptr + segment, before + low, mask=inside)",
            "tl.store(run_length_ptr + segment, kept, mask=inside)",
            "tl.store(run_place_ptr + segment, place + tl.cumsum(kept, 0) - kept, mask=inside)",
        ]
        if region.inner:
            inner.append("tl.store(starts_ptr + segment, before, mask=inside)")
        for store in region.stores:
            code = self.emission.use(store.value, at=Depth.ROW).code
            inner += self.emission.take(Depth.ROW)
            inner.append(f"tl.store({store.tensor}_ptr + segment, {code}, mask=inside)")
        inner += ["event += tl.sum(length, 0)", "place += tl.sum(kept, 0)"]
        body = [
            "event = tl.full([], 0, tl.int64)",
            "place = tl.full([], 0, tl.int64)",
            f"for first in range(0, {self.segments}, SCANNED):",
            *indented([line for line in inner if line], 4),
            "tl.store(sizes_ptr, place)",
        ]
        tensors = [*self._segment_inputs(), *(store.tensor for store in region.stores)]
        buffers = ["run_start", "run_length", "run_place", *(["starts"] if region.inner else [])]
        numbers = self._numbers({*region.segments.size.names, *symbols_in(region)})
        what = [*described(region), "", "One program finds the run of each segment and scans them."]
        arguments = (*tensors, *buffers, "sizes", *numbers)
        return self._kernel("runs", what, arguments, numbers, body, ("SCANNED",)), Launch(
            kernel=f"{self.name}_runs",
            arguments=arguments,
            constants={"SCANNED": "SCANNED"},
            warps="8",
        )

    def _sums(self) -> tuple[list[str], Launch]:
        """How many second-level values stand before, in and behind each segment's run."""
        inner = str(self.region.inner)
        skips = not _is_zero(self.region.low)
        lead = [
            "ahead = begin + lane < run_start",
            "skipped += tl.where(ahead, part, 0)",
        ]
        body = [
            "segment = tl.program_id(0)",
            "member = tl.program_id(1)",
            *self._base(inner, "lengths", listed=self.region.inner_listed),
            "begin = tl.load(starts_ptr + segment)",
            f"end = begin + tl.load({self.region.lengths}_ptr + segment)",
            "run_start = tl.load(run_start_ptr + segment)",
            "run_end = run_start + tl.load(run_length_ptr + segment)",
            "lane = tl.arange(0, BLOCK)",
            "total = tl.zeros([BLOCK], tl.int64)",
            "kept = tl.zeros([BLOCK], tl.int64)",
            *(["skipped = tl.zeros([BLOCK], tl.int64)"] if skips else []),
            "for begin in range(begin, end, BLOCK):",
            "    part = tl.load(lengths + begin + lane, mask=begin + lane < end, other=0)",
            "    part = part.to(tl.int64)",
            "    total += part",
            "    taken = (begin + lane >= run_start) & (begin + lane < run_end)",
            "    kept += tl.where(taken, part, 0)",
            *indented(lead if skips else [], 4),
            f"at = member * {self.segments} + segment",
            "tl.store(total_ptr + at, tl.sum(total, 0))",
            "tl.store(kept_ptr + at, tl.sum(kept, 0))",
            *(["tl.store(skipped_ptr + at, tl.sum(skipped, 0))"] if skips else []),
        ]
        skipped = ["skipped"] if skips else []
        buffers = ["starts", "run_start", "run_length", "total", "kept", *skipped]
        numbers = self._numbers(set(self.region.segments.size.names))
        arguments = (self.region.lengths, inner, *buffers, *numbers)
        what = ["A program sums one segment's lengths of one member: all, and those of its run."]
        return self._kernel("sums", what, arguments, numbers, body, ("BLOCK",)), Launch(
            kernel=f"{self.name}_sums",
            grid=(self.segments, self.members),
            arguments=arguments,
            constants={"BLOCK": "BLOCK"},
            warps="WARPS",
            when=f"{self.segments} > 0",
        )

    def _scan(self) -> tuple[list[str], Launch]:
        """Where each segment's values are read from and written to, by scans of the sums."""
        skips = not _is_zero(self.region.low)
        read = "read + tl.cumsum(total, 0) - total"
        if skips:
            read += " + tl.load(skipped_ptr + at, mask=inside, other=0)"
        body = [
            "member = tl.program_id(0)",
            "read = tl.full([], 0, tl.int64)",
            "written = tl.full([], 0, tl.int64)",
            f"for first in range(0, {self.segments}, SCANNED):",
            "    segment = first + tl.arange(0, SCANNED)",
            f"    inside = segment < {self.segments}",
            f"    at = member * {self.segments} + segment",
            "    total = tl.load(total_ptr + at, mask=inside, other=0)",
            "    kept = tl.load(kept_ptr + at, mask=inside, other=0)",
            f"    tl.store(read_ptr + at, {read}, mask=inside)",
            "    tl.store(written_ptr + at, written + tl.cumsum(kept, 0) - kept, mask=inside)",
            "    read += tl.sum(total, 0)",
            "    written += tl.sum(kept, 0)",
            "tl.store(sizes_ptr + 1 + member, written)",
        ]
        buffers = ["total", "kept", *(["skipped"] if skips else []), "read", "written", "sizes"]
        numbers = self._numbers(set(self.region.segments.size.names))
        arguments = (*buffers, *numbers)
        what = ["A program scans one member's sums: where each segment is read from and goes to."]
        return self._kernel("scan", what, arguments, numbers, body, ("SCANNED",)), Launch(
            kernel=f"{self.name}_scan",
            grid=(self.members,),
            arguments=arguments,
            constants={"SCANNED": "SCANNED"},
            warps="8",
        )

    def _copy(self) -> tuple[list[str], Launch]:
        """Copy each segment's run, and the second-level values of its elements."""
        shallow = [move for move in self.region.moves if move.level == 1]
        deep = [move for move in self.region.moves if move.level > 1]
        body = [
            "segment = tl.program_id(0)",
            "member = tl.program_id(1)",
            "lane = tl.arange(0, BLOCK)",
            *self._copied(shallow, "run_start", "run_place", "run_length", "segment"),
            *([f"at = member * {self.segments} + segment"] if deep else []),
            *self._copied(deep, "read", "written", "kept", "at"),
        ]
        tensors = [name for m in self.region.moves for name in (m.source, m.output)]
        buffers = ["run_start", "run_place", "run_length"] if shallow else []
        buffers += ["read", "written", "kept"] if deep else []
        samples = [_sample(dtype) for dtype in dict.fromkeys(self._variables())]
        numbers = self._numbers(set(self.region.segments.size.names) if deep else set())
        arguments = (*tensors, *buffers, *samples, *numbers)
        what = ["A program copies what is kept of one segment of one member."]
        return self._kernel("copy", what, arguments, numbers, body, ("BLOCK",)), Launch(
            kernel=f"{self.name}_copy",
            grid=(self.segments, self.members),
            arguments=arguments,
            constants={"BLOCK": "BLOCK"},
            warps="WARPS",
            when=f"{self.segments} > 0",
        )

    def _copied(
        self, moves: Sequence[Move], source: str, target: str, count: str, at: str
    ) -> list[str]:
        if not moves:
            return []
        lines = [
            f"source = tl.load({source}_ptr + {at})",
            f"target = tl.load({target}_ptr + {at})",
            f"count = tl.load({count}_ptr + {at})",
        ]
        for move in moves:
            from_, to = f"{move.source}_from", f"{move.output}_to"
            lines += self._base(move.source, from_, listed=move.listed, dtype=move.dtype)
            lines += self._base(move.output, to, listed=move.listed, dtype=move.dtype)
        lines.append("for first in range(0, count, BLOCK):")
        lines.append("    inside = first + lane < count")
        for move in moves:
            lines += [
                f"    part = tl.load({move.source}_from + source + first + lane, mask=inside)",
                f"    tl.store({move.output}_to + target + first + lane, part, mask=inside)",
            ]
        return lines

    def _base(self, tensor: str, name: str, *, listed: bool, dtype: str = "int64") -> list[str]:
        """Name the beginning of a tensor, of a list the beginning of this member."""
        if not listed:
            return [f"{name} = {tensor}_ptr"]
        if dtype in self.dtypes.variables:
            kind = f"{_sample(dtype)}_ptr.dtype"
        else:
            kind = f"tl.pointer_type(tl.{dtype})"
        return [f"{name} = tl.load({tensor}_ptr + member).to({kind})"]

    def _low(self, code: str) -> str:
        """Name the first kept position, which lies in the segment even where nothing is kept."""
        if _is_zero(self.region.low):
            return "low = 0"
        return f"low = tl.minimum(tl.maximum({code}, 0), length)"

    def _segment_inputs(self) -> list[str]:
        roots = [self.region.low, self.region.high, *(s.value for s in self.region.stores)]
        loads = [v.tensor for v in walk(*(r for r in roots if r is not None)) if isinstance(v, Load)]
        return [n for n in tensors_read(self.region) if n in {self.region.lengths, *loads}]

    def _numbers(self, names: set[str]) -> list[str]:
        return [n for n in (*self.spec.axes, *self.spec.attributes) if n in names]

    def _kernel(
        self,
        part: str,
        what: Sequence[str],
        arguments: Sequence[str],
        numbers: Sequence[str],
        body: Sequence[str],
        constants: Sequence[str],
    ) -> list[str]:
        pointers = [name if name in numbers else f"{name}_ptr" for name in arguments]
        parameters = [*pointers, *(f"{name}: tl.constexpr" for name in constants)]
        shown = [f'    """{what[0]}', *(f"    {line}".rstrip() for line in what[1:]), '    """']
        if len(what) == 1:
            shown = [f'    """{what[0]}"""']
        return [
            "@triton.jit",
            f"def {self.name}_{part}({', '.join(parameters)}):",
            *shown,
            *indented(body, 4),
        ]


def _sample(dtype: str) -> str:
    """Return the name of a buffer that only tells what a dtype variable is bound to."""
    return f"{dtype.lower()}_sample"


def _is_zero(value: Value) -> bool:
    return isinstance(value, Constant) and value.value == 0
