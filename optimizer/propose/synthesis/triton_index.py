"""Table searches in Triton that begin in an index of the table, built at the start of a call.

A plain binary search of a million entries reads twenty of them. The index is a directory of
buckets, each a range of values of one power of two: a search reads where its bucket begins and
ends, and then only halves what lies between. Where the values are spread evenly that is an entry or
two; where they are not, a search takes up to as many steps as a plain one, and is as right.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from optimizer.plan import Buffer, Launch, Step
from optimizer.propose.synthesis.dtypes import Dtypes, is_float
from optimizer.propose.synthesis.emission import indented
from optimizer.propose.synthesis.regions import LoopRegion
from optimizer.propose.synthesis.signature import Signature, elements
from optimizer.propose.synthesis.sketch import Sketch
from optimizer.propose.synthesis.triton_loops import TritonElements, TritonTile
from optimizer.propose.synthesis.value import Search, walk

LEAST_ENTRIES = 65536
"""A smaller table is near at hand in any case, and is searched without an index."""
LEAST_SEARCHES = 262144
"""Fewer searches save less than another launch takes."""
_TITLE = (
    '"""directory[bucket] = count(table below table[0] + bucket * 2^shift)',
    "",
    "The shift is the least with which 2^BITS buckets hold the table. Behind them stand the number",
    "of entries and the shift. A program takes BLOCK buckets.",
    '"""',
)
_BODY = (
    "first = tl.load(table_ptr).to(tl.int64)",
    "span = (tl.load(table_ptr + (size - 1)).to(tl.int64) - first).to(tl.uint64)",
    "shift = bucket_shift(span, BITS)",
    "bucket = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)",
    "begin = bucket.to(tl.uint64) << shift",
    "place = count_before(table_ptr, size, first + begin.to(tl.int64), STEPS, False)",
    "inside = (bucket < (1 << BITS)) & (begin <= span)",
    "entry = tl.where(inside, place, size).to(tl.int32)",
    "entry = tl.where(bucket > (1 << BITS), shift.to(tl.int32), entry)",
    "tl.store(directory_ptr + bucket, entry, mask=bucket < (1 << BITS) + 2)",
)


def find_indexable(region: LoopRegion, dtypes: Dtypes) -> tuple[Search, ...]:
    """Return one search of each table that an index can be built of: whole numbers only."""
    found: dict[str, list[Search]] = {}
    for value in walk(*(store.value for store in region.stores)):
        if isinstance(value, Search):
            found.setdefault(value.table, []).append(value)
    return tuple(
        several[0]
        for several in found.values()
        if all(_is_whole(dtypes.computed(s.table_dtype), s.needle.dtype) for s in several)
    )


def _is_whole(*several: str) -> bool:
    return not any(is_float(dtype) or dtype == "bool" for dtype in several)


@dataclass(frozen=True)
class TritonIndexed:
    """A search region with an index where that pays, and without one elsewhere."""

    name: str
    region: LoopRegion
    signature: Signature
    dtypes: Dtypes
    kind: type[TritonElements | TritonTile]
    """How elements are shared among programs."""

    def sketch(self) -> Sketch:
        """Return the plain kernel, or the index and the kernel that uses it, by the sizes."""
        tables = find_indexable(self.region, self.dtypes)
        plain = self.kind(self.name, self.region, self.signature, self.dtypes).sketch()
        lookup = self._lookup(tables)
        indexed = f"{self.name}_indexed"
        return Sketch(
            code=(*plain.code, "", "", *self._index_kernel(), "", "", *lookup.code),
            steps=(
                *_where(plain.steps, f"{indexed} == 0"),
                *(self._index_launch(table, indexed) for table in tables),
                *_where(lookup.steps, indexed),
            ),
            functions=(*plain.functions, "bucket_shift", "count_before", *lookup.functions),
            tunables={**plain.tunables, "PER_BUCKET": (1, 2, 4, 8, 16)},
            chosen={**plain.chosen, "PER_BUCKET": 2},
            let={
                **{_buckets(t): f"max(2, next_power_of_2({t.size}) // PER_BUCKET)" for t in tables},
                indexed: self._pays(tables),
                **plain.let,
                **lookup.let,
            },
            buffers={
                _directory(table): Buffer(
                    shape=(f"({_buckets(table)} + 2) * {indexed}",), dtype="int32"
                )
                for table in tables
            },
            note=f"{plain.note}, by an index built in the call",
        )

    def _lookup(self, tables: Iterable[Search]) -> Sketch:
        directories = {table.table: _directory(table) for table in tables}
        reads = {**self.signature.reads, **dict.fromkeys(directories.values(), "int32")}
        signature = replace(self.signature, reads=reads)
        loop = self.kind(f"{self.name}_lookup", self.region, signature, self.dtypes)
        loop.printer.directories = directories
        return loop.sketch()

    def _index_kernel(self) -> tuple[str, ...]:
        constants = "BITS: tl.constexpr, STEPS: tl.constexpr, BLOCK: tl.constexpr"
        return (
            "@triton.jit",
            f"def {self.name}_index(table_ptr, directory_ptr, size, {constants}):",
            *indented((*_TITLE, *_BODY), 4),
        )

    def _index_launch(self, table: Search, indexed: str) -> Launch:
        return Launch(
            kernel=f"{self.name}_index",
            grid=(f"cdiv({_buckets(table)} + 2, 256)",),
            arguments=(table.table, _directory(table), table.size),
            constants={
                "BITS": f"log2({_buckets(table)})",
                "STEPS": f"log2({table.size})",
                "BLOCK": "256",
            },
            when=indexed,
        )

    def _pays(self, tables: Iterable[Search]) -> str:
        """Return the condition under which the index is worth its launch and its searches."""
        searches = elements(self.region)
        return " * ".join(
            f"({table.size} >= {LEAST_ENTRIES})"
            f" * ({searches} >= max({LEAST_SEARCHES}, {table.size} // 2))"
            for table in tables
        )


def _directory(table: Search) -> str:
    return f"{table.table}_directory"


def _buckets(table: Search) -> str:
    return f"{table.table}_buckets"


def _where(steps: Iterable[Step], condition: str) -> Iterable[Step]:
    """Yield a region's launches with one more condition."""
    for step in steps:
        if isinstance(step, Launch):
            yield step.model_copy(update={"when": f"({step.when or 1}) * ({condition})"})
