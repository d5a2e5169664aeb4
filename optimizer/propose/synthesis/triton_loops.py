"""Loop regions as Triton kernels, one class for each way to share elements among programs."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from optimizer.plan import Launch
from optimizer.propose.synthesis.dtypes import is_float
from optimizer.propose.synthesis.emission import Depth, depth_of, indented, name_for
from optimizer.propose.synthesis.extent import ONE
from optimizer.propose.synthesis.neutral import neutral
from optimizer.propose.synthesis.passes import loses_nan, make_passes, uses_in
from optimizer.propose.synthesis.sketch import Sketch
from optimizer.propose.synthesis.triton_base import TritonLoop, operand
from optimizer.propose.synthesis.value import Reduce

WARPS = (1, 2, 4, 8, 16)
MOST_WARPS = 16
MOST_SEARCHES = 512
"""So many elements a warp keep their searches in registers."""
_COMBINE = {"sum": "+", "prod": "*"}


@dataclass
class TritonElements(TritonLoop):
    """One long row: each program takes BLOCK elements."""

    def sketch(self) -> Sketch:
        """Return the kernel with its launch."""
        simple = self.width.number is None and len(self.width.names) == 1 == len(self.width.terms)
        size = str(self.width) if simple and str(self.width).isidentifier() else "elements"
        body = self.stores(self.region.stores, at=Depth.KERNEL)
        searches = self.search_constants()
        lines = [
            "start = tl.program_id(0)",
            "if WIDE:",
            "    start = start.to(tl.int64)",
            "col = start * BLOCK + tl.arange(0, BLOCK)",
            f"mask = None if EVEN else col < {size}",
            *body,
        ]
        constants = {
            "BLOCK": "BLOCK",
            "EVEN": f"{operand(self.width)} % BLOCK == 0",
            "WIDE": f"{self.width} > 2147483647 - BLOCK",
            **searches,
        }
        launch = Launch(
            kernel=self.name,
            grid=(f"cdiv({self.width}, BLOCK)",),
            arguments=self.arguments(lines, {"elements": str(self.width)}),
            constants=constants,
            warps=f"max(WARPS, BLOCK // {MOST_SEARCHES})" if searches else "WARPS",
            when=f"{self.width} > 0",
        )
        return Sketch(
            code=self.kernel(lines, constants, "A program takes BLOCK elements."),
            steps=(launch,),
            functions=tuple(self.printer.functions),
            tunables={
                "BLOCK": ((128,) if searches else ()) + (256, 512, 1024, 2048, 4096),
                "WARPS": WARPS[:4] if searches else WARPS[1:4],
            },
            chosen={"BLOCK": 512 if searches else 1024, "WARPS": 4},
            note=f"{self.region.kind}, a block of elements a program",
        )


@dataclass
class TritonTile(TritonLoop):
    """A program takes ROWS rows; whole ones where they are reduced, else BLOCK columns of each."""

    def sketch(self) -> Sketch:
        """Return the kernel with its launch."""
        reduces = bool(self.reductions)
        body = [*self.row_indices(), *self.row_pointers()]
        body += reduced_in_block(self, axis="axis=1, keep_dims=True")
        body += self.stores(self.region.stores)
        cols = (
            "tl.arange(0, BLOCK)" if reduces else "(tl.program_id(1) * BLOCK + tl.arange(0, BLOCK))"
        )
        lines = [
            "row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]",
            f"row = tl.minimum(row, {self.height - ONE})  # rows past the end repeat the last",
            f"col = {cols}[None, :]",
            f"mask = None if EVEN else col < {self.width}",
            *self.emission.take(Depth.KERNEL),
            *body,
        ]
        return self._launched(lines, reduces=reduces)

    def _launched(self, lines: Sequence[str], *, reduces: bool) -> Sketch:
        block = f"next_power_of_2({self.width})"
        if not reduces:
            block = f"min({block}, SPAN)"
        tunables = {"TILE": (512, 1024, 2048, 4096, 8192), "PER_WARP": (128, 256, 512, 1024, 2048)}
        chosen = {"TILE": 2048, "PER_WARP": 512}
        if not reduces:
            tunables["SPAN"], chosen["SPAN"] = (128, 256, 512, 1024, 2048), 1024
        block_name, rows_name = f"{self.name}_block", f"{self.name}_rows"
        constants = {
            "BLOCK": block_name,
            "ROWS": rows_name,
            "EVEN": f"{operand(self.width)} % {block_name} == 0",
            **self.search_constants(),
        }
        grid = (f"cdiv({self.height}, {rows_name})", f"cdiv({self.width}, {block_name})")
        launch = Launch(
            kernel=self.name,
            grid=grid[:1] if reduces else grid,
            arguments=self.arguments(lines),
            constants=constants,
            warps=f"max(1, min({MOST_WARPS}, {block_name} * {rows_name} // PER_WARP))",
            when=f"{self.height if reduces else self.height * self.width} > 0",
        )
        what = "ROWS whole rows" if reduces else "BLOCK columns of ROWS rows"
        return Sketch(
            code=self.kernel(lines, constants, f"A program takes {what}."),
            steps=(launch,),
            functions=tuple(self.printer.functions),
            tunables=tunables,
            chosen=chosen,
            let={block_name: block, rows_name: f"max(1, TILE // {block_name})"},
            note=f"{self.region.kind}, a tile of rows a program",
        )


@dataclass
class TritonRow(TritonLoop):
    """A program takes one whole row at a time: BLOCK elements in registers."""

    persistent: bool = False
    """A fixed number of programs share the rows, and load what all rows have in common once."""

    def sketch(self) -> Sketch:
        """Return the kernel with its launch."""
        body = [*self.row_indices(), *self.row_pointers()]
        body += reduced_in_block(self, axis="axis=0")
        body += self.stores(self.region.stores)
        first = "tl.program_id(0).to(tl.int64)"
        start = [] if self.persistent or not self.region.rows else [f"row = {first}"]
        lines = [
            "col = tl.arange(0, BLOCK)",
            f"mask = None if EVEN else col < {self.width}",
            *self.emission.take(Depth.KERNEL),
        ]
        if self.persistent:
            loop = f"for row in range({first}, {self.height}, tl.num_programs(0)):"
            lines += [loop, *indented(body, 4)]
        else:
            lines = [*start, *lines, *body]
        return self._launched(lines)

    def _launched(self, lines: Sequence[str]) -> Sketch:
        block = f"{self.name}_block"
        constants = {
            "BLOCK": block,
            "EVEN": f"{operand(self.width)} % {block} == 0",
            **self.search_constants(),
        }
        tunables = {"PER_WARP": (128, 256, 512, 1024, 2048)}
        chosen = {"PER_WARP": 512}
        grid = str(self.height)
        if self.persistent:
            tunables["PROGRAMS"], chosen["PROGRAMS"] = (132, 264, 528, 1056, 2112), 528
            grid = f"min({self.height}, PROGRAMS)"
        launch = Launch(
            kernel=self.name,
            grid=(grid,),
            arguments=self.arguments(lines),
            constants=constants,
            warps=f"max(1, min({MOST_WARPS}, {block} // PER_WARP))",
            when=f"{self.height} > 0",
        )
        how = "PROGRAMS programs share the rows" if self.persistent else "A program takes a row"
        return Sketch(
            code=self.kernel(lines, constants, f"{how}; a row is held in registers."),
            steps=(launch,),
            functions=tuple(self.printer.functions),
            tunables=tunables,
            chosen=chosen,
            let={block: f"next_power_of_2({self.width})"},
            note=f"{self.region.kind}, {'persistent' if self.persistent else 'a row a program'}",
        )


@dataclass
class TritonLooped(TritonLoop):
    """A program takes one row, block after block; for rows of any length."""

    how: str = field(default="a row a program in blocks", init=False)

    def sketch(self) -> Sketch:
        """Return the kernel with its launch."""
        self.emission.depth = depth_of
        lines = ["row = tl.program_id(0).to(tl.int64)"] if self.region.rows else []
        lines += [*self.row_indices(), *self.row_pointers()]
        lines += self.passes()
        passes = make_passes(self.region)
        if passes.stores:
            self.emission.uses = uses_in([store.value for store in passes.stores])
            body = self.stores(passes.stores, at=Depth.ELEMENT)
            lines += [*self.emission.take(Depth.ROW), *self.loop(body)]
        for store in passes.row_stores:
            self.emission.uses = uses_in([store.value])
            lines += self.stores([store], at=Depth.ROW)
        lines = [*self.emission.take(Depth.KERNEL), *lines]
        constants = {
            "BLOCK": "BLOCK",
            "EVEN": f"{operand(self.width)} % BLOCK == 0",
            **self.search_constants(),
        }
        launch = Launch(
            kernel=self.name,
            grid=(str(self.height),),
            arguments=self.arguments(lines),
            constants=constants,
            warps="WARPS",
            when=f"{self.height} > 0",
        )
        return Sketch(
            code=self.kernel(lines, self.constants(), self.describe()),
            steps=(launch,),
            functions=tuple(self.printer.functions),
            tunables={"BLOCK": (1024, 2048, 4096, 8192), "WARPS": WARPS[2:]},
            chosen={"BLOCK": 2048, "WARPS": 8},
            note=f"{self.region.kind}, {self.how}",
        )

    def constants(self) -> tuple[str, ...]:
        """Return the names of the kernel's compile-time constants, in order."""
        return ("BLOCK", "EVEN", *self.search_constants())

    def describe(self) -> str:
        """Say what a program takes."""
        return "A program takes a row, BLOCK elements at a time."

    def passes(self) -> list[str]:
        """Return the loops that reduce, one after another."""
        reductions = make_passes(self.region).reductions
        return [line for several in reductions for line in self._reducing(several)]

    def loop(self, body: Sequence[str]) -> list[str]:
        """Return a loop over the blocks of a row."""
        inner = [
            "col = start + tl.arange(0, BLOCK)",
            f"mask = None if EVEN else col < {self.width}",
            *body,
        ]
        self.emission.leave_loop()
        return [f"for start in range(0, {self.width}, BLOCK):", *indented(inner, 4)]

    def _reducing(self, several: Sequence[Reduce]) -> list[str]:
        self.emission.uses = uses_in([reduction.body for reduction in several])
        names = {r: self.names.fresh(name_for(r)) for r in several}
        partial = {r: self.names.fresh(f"{name}s") for r, name in names.items()}
        begin = [f"{partial[r]} = tl.full([BLOCK], {neutral(r)}, tl.{r.dtype})" for r in several]
        body: list[str] = []
        for reduction in several:
            text = self.emission.use(reduction.body)
            code = text.code
            if reduction not in self.satisfied:
                code = self.printer.call("keep", code, "mask", neutral(reduction)).code
            body += self.emission.take(Depth.ELEMENT)
            body.append(
                f"{partial[reduction]} = {self._joined(reduction, partial[reduction], code)}"
            )
        before = self.emission.take(Depth.ROW)
        lines = [*before, *begin, *self.loop(body)]
        for reduction, name in names.items():
            lines += [f"{name} = {_reduced(reduction, partial[reduction], 'axis=0')}"]
            self.emission.learn(reduction, name)
        return lines

    def _joined(self, reduction: Reduce, partial: str, code: str) -> str:
        if reduction.kind in _COMBINE:
            return f"{partial} {_COMBINE[reduction.kind]} {code}"
        if not is_float(reduction.dtype):
            return f"tl.{reduction.kind}imum({partial}, {code})"
        return self.printer.call(f"{reduction.kind}imum", partial, code).code


def reduced_in_block(loop: TritonLoop, *, axis: str) -> list[str]:
    """Return the statements that compute a region's reductions, each from a whole row."""
    lines: list[str] = []
    for reduction in loop.reductions:
        code = loop.emission.use(reduction.body, at=Depth.ROW).code
        if reduction not in loop.satisfied:
            code = loop.printer.call("keep", code, "mask", neutral(reduction)).code
        name = loop.names.fresh(name_for(reduction))
        lines += loop.emission.take(Depth.ROW)
        lines.append(f"{name} = {_reduced(reduction, code, axis)}")
        if is_float(reduction.dtype) and loses_nan(reduction, loop.region):
            strange = f"tl.max(({code} != {code}).to(tl.int32), {axis})"
            lines.append(f'{name} = tl.where({strange} > 0, float("nan"), {name})')
        loop.emission.learn(reduction, name)
    return lines


def _reduced(reduction: Reduce, code: str, axis: str) -> str:
    if reduction.kind == "prod":
        return f"tl.reduce({code}, {axis.partition(',')[0].removeprefix('axis=')}, times)"
    return f"tl.{reduction.kind}({code}, {axis})"
