"""First candidates for a graph: the structural variants of its regions, the likeliest first."""

from collections.abc import Callable, Iterator, Sequence

from operator_registry.hardware import HardwareSpec, Language
from operator_registry.spec import OperatorSpec, RangeAxis, TargetName
from optimizer.candidate import Candidate
from optimizer.plan import Buffer, Launch, Step
from optimizer.propose.synthesis.coalesce import coalesce
from optimizer.propose.synthesis.cpp_file import CppForm, make_candidate, sketch_loop, write_cpp
from optimizer.propose.synthesis.cpp_jagged import CppJagged
from optimizer.propose.synthesis.dtypes import Dtypes
from optimizer.propose.synthesis.extent import Extent, make_extent
from optimizer.propose.synthesis.graph import Graph
from optimizer.propose.synthesis.jagged import JaggedRegion, cut_jagged
from optimizer.propose.synthesis.passes import make_passes, worth_keeping
from optimizer.propose.synthesis.regions import LoopRegion, Partition, cut_outputs
from optimizer.propose.synthesis.rename import (
    rename_graph,
    rename_plan,
    rename_spec,
    safe_names,
)
from optimizer.propose.synthesis.signature import Signature, signature_of
from optimizer.propose.synthesis.simplify import simplify
from optimizer.propose.synthesis.sketch import Sketch
from optimizer.propose.synthesis.triton_file import write_triton
from optimizer.propose.synthesis.triton_index import (
    LEAST_ENTRIES,
    TritonIndexed,
    find_indexable,
)
from optimizer.propose.synthesis.triton_jagged import TritonJagged
from optimizer.propose.synthesis.triton_kept import TritonKept
from optimizer.propose.synthesis.triton_loops import (
    TritonElements,
    TritonLooped,
    TritonRow,
    TritonTile,
)
from optimizer.propose.synthesis.triton_online import TritonOnline, find_pair

LONGEST_IN_REGISTERS = 32768
"""Rows longer than this are read block by block."""
SHORT_ROW = 1024
"""Up to this length, a program does better with several rows; of a longer one it takes one."""
Variant = Callable[[], Sketch]


def make_drafts(spec: OperatorSpec, graph: Graph, hardware: HardwareSpec) -> tuple[Candidate, ...]:
    """Return the variants of a graph's kernels for a device.

    Raises:
        RegionError: A part of the graph has no region; says which and why.
    """
    dtypes = Dtypes(spec.dtypes)
    renaming = safe_names(spec)
    spec, graph = rename_spec(spec, renaming), rename_graph(graph, renaming)
    own_names = {safe: name for name, safe in renaming.items()}
    partition = cut(spec, graph, dtypes)
    drafts: dict[str, Candidate] = {}
    for language in hardware.languages:
        drafting = _Drafting(spec, partition, dtypes, language, hardware.target)
        for draft in drafting.candidates():
            plan = rename_plan(draft.plan, own_names)
            note = draft.note if graph.form == spec.reference else f"{draft.note} ({graph.form})"
            candidate = draft.model_copy(update={"plan": plan, "note": note})
            drafts.setdefault(candidate.id, candidate)
    return tuple(drafts.values())


def cut(spec: OperatorSpec, graph: Graph, dtypes: Dtypes) -> Partition:
    """Return the regions of a graph in their simplest form.

    Raises:
        RegionError: A part of the graph has no region; says which and why.
    """
    found = cut_jagged(graph, spec, dtypes) or cut_outputs(graph, dtypes, list(graph.outputs))
    regions = tuple(
        simplify(coalesce(region)) if isinstance(region, LoopRegion) else region
        for region in found.regions
    )
    return Partition(regions, found.scratch)


class _Drafting:
    """Puts the variants of all regions together."""

    def __init__(
        self,
        spec: OperatorSpec,
        partition: Partition,
        dtypes: Dtypes,
        language: Language,
        target: TargetName,
    ) -> None:
        self._spec = spec
        self._partition = partition
        self._dtypes = dtypes
        self._language = language
        self._target: TargetName = target

    def candidates(self) -> Iterator[Candidate]:
        """Yield the likeliest variant of every region, then others, one region at a time."""
        variants = [
            list(self._variants(self._name(place), region))
            for place, region in enumerate(self._partition.regions)
        ]
        first = [several[0] for several in variants]
        yield self._candidate(first)
        for place, several in enumerate(variants):
            for variant in several[1:]:
                yield self._candidate([*first[:place], variant, *first[place + 1 :]])

    def _name(self, place: int) -> str:
        name = self._spec.name
        return name if place == len(self._partition.regions) - 1 else f"{name}_{place + 1}"

    def _candidate(self, variants: Sequence[Variant]) -> Candidate:
        sketches = [variant() for variant in variants]
        write = write_cpp if self._language == "cpp" else write_triton
        buffers = {
            scratch.name: Buffer(shape=scratch.shape, dtype=scratch.dtype)
            for scratch in self._partition.scratch
        }
        title = self._spec.summary or self._spec.name
        code = write(title, sketches)
        return make_candidate(sketches, language=self._language, code=code, buffers=buffers)

    def _variants(self, name: str, region: LoopRegion | JaggedRegion) -> Iterator[Variant]:
        if isinstance(region, JaggedRegion):
            yield self._jagged(name, region)
            return
        signature = signature_of(region, self._spec, self._partition.scratch)
        if self._language == "cpp":
            for form in _cpp_forms(region):
                yield _cpp(name, region, signature, form)
            return
        yield from self._triton(name, region, signature)

    def _jagged(self, name: str, region: JaggedRegion) -> Variant:
        if self._language == "cpp":
            return lambda: CppJagged(name, region, self._spec).sketch()
        return lambda: TritonJagged(name, region, self._spec, self._dtypes).sketch()

    def _triton(self, name: str, region: LoopRegion, signature: Signature) -> Iterator[Variant]:
        given = (name, region, signature, self._dtypes)
        if not region.reduces:
            kind = TritonTile if region.rows else TritonElements
            if self._may_index(region):
                yield lambda: TritonIndexed(*given, kind).sketch()
            yield lambda: kind(*given).sketch()
            return
        width = region.col.size if region.col else Extent()
        in_registers: list[Variant] = [
            lambda: TritonKept(*given).sketch(),
            lambda: TritonRow(*given).sketch(),
        ]
        if region.rows:
            in_registers.append(lambda: TritonRow(*given, persistent=True).sketch())
            tiled: Variant = lambda: TritonTile(*given).sketch()  # noqa: E731 - one of a row
            pieces = TritonKept(f"{name}_in_pieces", *given[1:])
            both = _either(tiled, pieces.sketch, width, limit=SHORT_ROW)
            place = 0 if self._shortest(width) <= SHORT_ROW else 2
            in_registers[place:place] = [both, tiled]
        if self._largest(width) > LONGEST_IN_REGISTERS:
            long = TritonLooped(f"{name}_long", *given[1:]).sketch
            in_registers = [
                _either(short, long, width, limit=LONGEST_IN_REGISTERS) for short in in_registers
            ]
        yield from in_registers
        if find_pair(region):
            yield lambda: TritonOnline(*given).sketch()
        yield lambda: TritonLooped(*given).sketch()

    def _may_index(self, region: LoopRegion) -> bool:
        """Return whether a region's tables can have an index, and be large enough for one."""
        tables = find_indexable(region, self._dtypes)
        sizes = [self._largest(make_extent(table.size)) for table in tables]
        return bool(sizes) and min(sizes) >= LEAST_ENTRIES

    def _shortest(self, size: Extent) -> int:
        """Return the least of a size over the public workloads."""
        workloads = self._spec.workloads_on(self._target) or self._spec.workloads
        return min(_value(size, workload.sizes) for workload in workloads)

    def _largest(self, size: Extent) -> int:
        bounds = {n: a.max for n, a in self._spec.axes.items() if isinstance(a, RangeAxis)}
        return _value(size, bounds)


def _cpp_forms(region: LoopRegion) -> Iterator[CppForm]:
    if region.searches and not region.reduces and region.col:
        yield CppForm(interleaved=True)
    if region.reduces and worth_keeping(make_passes(region)):
        yield CppForm(kept=True)
        yield CppForm()
        yield CppForm(kept=True, streamed=True)
    else:
        yield CppForm()
    if region.col and any(region.col in store.place.indices for store in region.stores):
        yield CppForm(streamed=True)


def _cpp(name: str, region: LoopRegion, signature: Signature, form: CppForm) -> Variant:
    return lambda: sketch_loop(name, region, signature, form)


def _either(short: Variant, long: Variant, width: Extent, *, limit: int) -> Variant:
    """Return a variant for rows up to a length, with another for longer ones."""

    def sketch() -> Sketch:
        one, other = short(), long()
        return Sketch(
            code=(*one.code, "", "", *other.code),
            steps=(
                *_limited(one.steps, f"{width} <= {limit}"),
                *_limited(other.steps, f"{width} > {limit}"),
            ),
            functions=(*one.functions, *other.functions),
            tunables={**other.tunables, **one.tunables},
            chosen={**other.chosen, **one.chosen},
            let={**one.let, **other.let},
            note=f"{one.note}, beyond {limit} columns {other.note.partition(', ')[2]}",
        )

    return sketch


def _limited(steps: Sequence[Step], condition: str) -> Iterator[Step]:
    for step in steps:
        if isinstance(step, Launch):
            both = f"({step.when}) * ({condition})" if step.when else condition
            yield step.model_copy(update={"when": both})
        else:
            yield step


def _value(size: Extent, names: "dict[str, int]") -> int:
    """Return a size where each axis has a value; an axis without one counts as 1."""
    total = 0
    for several, factor in size.terms:
        for name in several:
            factor *= names.get(name, 1)  # noqa: PLW2901 - a product
        total += factor
    return total
