"""Jagged selects as Triton: runs of kept elements, their sums and scans, then one copy of all."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from operator_registry.spec import OperatorSpec
from optimizer.plan import Buffer, Launch
from optimizer.propose.synthesis.dtypes import Dtypes
from optimizer.propose.synthesis.emission import Depth, Emission, Names, indented
from optimizer.propose.synthesis.jagged import JaggedRegion, Move
from optimizer.propose.synthesis.jagged_plan import (
    described,
    limits_of,
    reads_of,
    segment_inputs,
    sizes_buffer,
    symbols_in,
)
from optimizer.propose.synthesis.passes import uses_in
from optimizer.propose.synthesis.runs import SEGMENT
from optimizer.propose.synthesis.sketch import Sketch
from optimizer.propose.synthesis.triton_base import RESERVED
from optimizer.propose.synthesis.triton_text import TritonPrinter

LOCALS = frozenset({
    "segment", "low", "high", "length", "kept", "starts", "places", "first", "inside", "lane",
    "member", "lengths", "run_start", "run_length", "run_place", "run_end", "read", "written",
    "total", "begin", "end", "count", "sizes", "skipped", "before", "source", "target", "at",
    "event", "place", "part", "taken", "ahead",
})  # fmt: skip


@dataclass(frozen=True)
class _Part:
    """One of the kernels: what it says of itself, takes and does."""

    name: str
    about: Sequence[str]
    pointers: Sequence[str]
    numbers: Sequence[str]
    constant: str
    body: Sequence[str]
    grid: tuple[str, ...] = ("1",)
    warps: str = "8"

    @property
    def code(self) -> list[str]:
        """Return the kernel's lines."""
        parameters = [*(f"{pointer}_ptr" for pointer in self.pointers), *self.numbers]
        parameters.append(f"{self.constant}: tl.constexpr")
        shown = [f'"""{self.about[0]}"""']
        if len(self.about) > 1:
            shown = [f'"""{self.about[0]}', *self.about[1:], '"""']
        head = f"def {self.name}({', '.join(parameters)}):"
        return ["@triton.jit", head, *indented([*shown, *self.body], 4)]

    @property
    def launch(self) -> Launch:
        """Return the kernel's launch."""
        return Launch(
            kernel=self.name,
            grid=self.grid,
            arguments=(*self.pointers, *self.numbers),
            constants={self.constant: self.constant},
            warps=self.warps,
            when=f"{self.grid[0]} > 0" if len(self.grid) > 1 else None,
        )


@dataclass
class TritonJagged:
    """Writes a jagged select's kernels: `runs`, `sums` and `scan` for a second level, `copy`."""

    name: str
    region: JaggedRegion
    spec: OperatorSpec
    dtypes: Dtypes
    printer: TritonPrinter = field(init=False)
    emission: Emission = field(init=False)

    def __post_init__(self) -> None:
        """Prepare the printer and the names."""
        self.printer = TritonPrinter({}, moving=SEGMENT, mask="inside")
        tensors = {*self.spec.inputs, *self.spec.outputs, *self.spec.axes}
        roots = [*limits_of(self.region), *(store.value for store in self.region.stores)]
        self.emission = Emission(self.printer, Names(tensors | RESERVED | LOCALS), uses_in(roots))

    @property
    def segments(self) -> str:
        """Return the number of segments."""
        return str(self.region.segments.size)

    @property
    def members(self) -> str:
        """Return the number of a list's members, 1 where there is no list."""
        return self.region.members or "1"

    @property
    def skips(self) -> bool:
        """Return whether elements before a segment's run may be left out."""
        return self.region.low is not None

    def sketch(self) -> Sketch:
        """Return the kernels with their launches and the sizes that they find."""
        parts = [self._runs()]
        if self.region.inner:
            parts += [self._sums(self.region.inner), self._scan()]
        parts.append(self._copy())
        code = [line for part in parts for line in ("", "", *part.code)]
        tunables = {"BLOCK": (64, 128, 256, 512), "WARPS": (1, 2, 4), "SCANNED": (1024, 2048, 4096)}
        return Sketch(
            code=tuple(code[2:]),
            steps=(*(part.launch for part in parts), *reads_of(self.region)),
            functions=tuple(self.printer.functions),
            tunables=tunables,
            chosen={"BLOCK": 128, "WARPS": 1, "SCANNED": 1024},
            buffers=self._buffers(),
            note=f"{self.region.kind}, {len(parts)} launches for all members",
        )

    def _buffers(self) -> dict[str, Buffer]:
        one = Buffer(shape=(self.segments,), dtype="int64")
        each = Buffer(shape=(self.members, self.segments), dtype="int64")
        buffers = {"run_start": one, "run_place": one, "run_length": one}
        if self.region.inner:
            buffers["starts"] = one
            names = ("total", "kept", *self._skipped(), "read", "written")
            buffers |= dict.fromkeys(names, each)
        samples = {_sample(dtype): Buffer(shape=("1",), dtype=dtype) for dtype in self._variables()}
        return {**buffers, **samples, "sizes": sizes_buffer(self.region)}

    def _variables(self) -> list[str]:
        """Return the dtype variables of lists, whose members' types code can't name."""
        listed = [move.dtype for move in self.region.moves if move.listed]
        return [dtype for dtype in dict.fromkeys(listed) if dtype in self.dtypes.variables]

    def _skipped(self) -> list[str]:
        return ["skipped"] if self.skips else []

    def _runs(self) -> _Part:
        """The run of each segment, where it starts and where it goes; one program scans them."""
        region = self.region
        low = self.emission.use(region.low, at=Depth.ROW).code if region.low else ""
        high = self.emission.use(region.high, at=Depth.ROW).code if region.high else ""
        inner = [
            "segment = first + tl.arange(0, SCANNED)",
            f"inside = segment < {self.segments}",
            f"length = tl.load({region.lengths}_ptr + segment, mask=inside, other=0).to(tl.int64)",
            *self.emission.take(Depth.ROW),
            f"high = tl.minimum({high}, length)" if high else "high = length",
            # Inside the segment even where nothing is kept of it.
            f"low = tl.minimum(tl.maximum({low}, 0), length)" if low else "low = 0",
            "kept = tl.maximum(high - low, 0)",
            "before = event + tl.cumsum(length, 0) - length",
            *(["tl.store(starts_ptr + segment, before, mask=inside)"] if region.inner else []),
            "tl.store(run_start_ptr + segment, before + low, mask=inside)",
            "tl.store(run_length_ptr + segment, kept, mask=inside)",
            "tl.store(run_place_ptr + segment, place + tl.cumsum(kept, 0) - kept, mask=inside)",
            *self._segment_stores(),
            "event += tl.sum(length, 0)",
            "place += tl.sum(kept, 0)",
        ]
        starts = ["starts"] if region.inner else []
        written = [store.tensor for store in region.stores]
        runs = ["run_start", "run_length", "run_place"]
        return _Part(
            name=f"{self.name}_runs",
            about=[*described(region), "", "One program finds each segment's run and scans them."],
            pointers=[*segment_inputs(region), *written, *starts, *runs, "sizes"],
            numbers=self._numbers({*region.segments.size.names, *symbols_in(region)}),
            constant="SCANNED",
            body=[
                "event = tl.full([], 0, tl.int64)",
                "place = tl.full([], 0, tl.int64)",
                f"for first in range(0, {self.segments}, SCANNED):",
                *indented(inner, 4),
                "tl.store(sizes_ptr, place)",
            ],
        )

    def _segment_stores(self) -> list[str]:
        lines: list[str] = []
        for store in self.region.stores:
            code = self.emission.use(store.value, at=Depth.ROW).code
            lines += self.emission.take(Depth.ROW)
            lines.append(f"tl.store({store.tensor}_ptr + segment, {code}, mask=inside)")
        return lines

    def _sums(self, inner: str) -> _Part:
        """How many second-level values stand before and in each segment's run, and in it all."""
        ahead = ["skipped += tl.where(begin + lane < run_start, part, 0)"] if self.skips else []
        names = ["total", "kept", *self._skipped()]
        runs = ["starts", "run_start", "run_length"]
        return _Part(
            name=f"{self.name}_sums",
            about=["A program sums one segment's lengths of one member: all, and its run's."],
            pointers=[self.region.lengths, inner, *runs, *names],
            numbers=self._numbers(set(self.region.segments.size.names)),
            constant="BLOCK",
            grid=(self.segments, self.members),
            warps="WARPS",
            body=[
                "segment = tl.program_id(0)",
                "member = tl.program_id(1)",
                *self._base(inner, "lengths", listed=self.region.inner_listed),
                "start = tl.load(starts_ptr + segment)",
                f"end = start + tl.load({self.region.lengths}_ptr + segment)",
                "run_start = tl.load(run_start_ptr + segment)",
                "run_end = run_start + tl.load(run_length_ptr + segment)",
                "lane = tl.arange(0, BLOCK)",
                *(f"{name} = tl.zeros([BLOCK], tl.int64)" for name in names),
                "for begin in range(start, end, BLOCK):",
                "    part = tl.load(lengths + begin + lane, mask=begin + lane < end, other=0)",
                "    part = part.to(tl.int64)",
                "    taken = (begin + lane >= run_start) & (begin + lane < run_end)",
                "    total += part",
                "    kept += tl.where(taken, part, 0)",
                *indented(ahead, 4),
                f"at = member * {self.segments} + segment",
                *(f"tl.store({name}_ptr + at, tl.sum({name}, 0))" for name in names),
            ],
        )

    def _scan(self) -> _Part:
        """Where each segment's values are read from and written to, by scans of the sums."""
        ahead = " + tl.load(skipped_ptr + at, mask=inside, other=0)" if self.skips else ""
        inner = [
            "segment = first + tl.arange(0, SCANNED)",
            f"inside = segment < {self.segments}",
            f"at = member * {self.segments} + segment",
            "total = tl.load(total_ptr + at, mask=inside, other=0)",
            "kept = tl.load(kept_ptr + at, mask=inside, other=0)",
            f"begin = read + tl.cumsum(total, 0) - total{ahead}",
            "tl.store(read_ptr + at, begin, mask=inside)",
            "tl.store(written_ptr + at, written + tl.cumsum(kept, 0) - kept, mask=inside)",
            "read += tl.sum(total, 0)",
            "written += tl.sum(kept, 0)",
        ]
        return _Part(
            name=f"{self.name}_scan",
            about=["A program scans one member's sums: where each segment's values stand and go."],
            pointers=["total", "kept", *self._skipped(), "read", "written", "sizes"],
            numbers=self._numbers(set(self.region.segments.size.names)),
            constant="SCANNED",
            grid=(self.members,),
            body=[
                "member = tl.program_id(0)",
                "read = tl.full([], 0, tl.int64)",
                "written = tl.full([], 0, tl.int64)",
                f"for first in range(0, {self.segments}, SCANNED):",
                *indented(inner, 4),
                "tl.store(sizes_ptr + 1 + member, written)",
            ],
        )

    def _copy(self) -> _Part:
        """Copy each segment's run, and the second-level values of its elements."""
        shallow = [move for move in self.region.moves if move.level == 1]
        deep = [move for move in self.region.moves if move.level > 1]
        tensors = [name for move in self.region.moves for name in (move.source, move.output)]
        places = ["run_start", "run_place", "run_length"] if shallow else []
        places += ["read", "written", "kept"] if deep else []
        return _Part(
            name=f"{self.name}_copy",
            about=["A program copies what is kept of one segment of one member."],
            pointers=[*dict.fromkeys(tensors), *places, *map(_sample, self._variables())],
            numbers=self._numbers(set(self.region.segments.size.names) if deep else set()),
            constant="BLOCK",
            grid=(self.segments, self.members),
            warps="WARPS",
            body=[
                "segment = tl.program_id(0)",
                "member = tl.program_id(1)",
                "lane = tl.arange(0, BLOCK)",
                *self._copied(shallow, ("run_start", "run_place", "run_length"), "segment"),
                *([f"at = member * {self.segments} + segment"] if deep else []),
                *self._copied(deep, ("read", "written", "kept"), "at"),
            ],
        )

    def _copied(self, moves: Sequence[Move], places: tuple[str, str, str], at: str) -> list[str]:
        if not moves:
            return []
        names = ("source", "target", "count")
        lines = [
            f"{name} = tl.load({place}_ptr + {at})"
            for name, place in zip(names, places, strict=True)
        ]
        inner = ["inside = first + lane < count"]
        for move in moves:
            from_, to = f"{move.output}_from", f"{move.output}_to"
            lines += self._base(move.source, from_, listed=move.listed, dtype=move.dtype)
            lines += self._base(move.output, to, listed=move.listed, dtype=move.dtype)
            inner.append(f"part = tl.load({from_} + source + first + lane, mask=inside)")
            inner.append(f"tl.store({to} + target + first + lane, part, mask=inside)")
        return [*lines, "for first in range(0, count, BLOCK):", *indented(inner, 4)]

    def _base(self, tensor: str, name: str, *, listed: bool, dtype: str = "int64") -> list[str]:
        """Name the beginning of a tensor, of a list the beginning of this member."""
        if not listed:
            return [f"{name} = {tensor}_ptr"]
        known = f"tl.pointer_type(tl.{dtype})"
        kind = f"{_sample(dtype)}_ptr.dtype" if dtype in self.dtypes.variables else known
        return [f"{name} = tl.load({tensor}_ptr + member).to({kind})"]

    def _numbers(self, names: set[str]) -> list[str]:
        return [n for n in (*self.spec.axes, *self.spec.attributes) if n in names]


def _sample(dtype: str) -> str:
    """Return the name of a buffer that only tells what a dtype variable is bound to."""
    return f"{dtype.lower()}_sample"
