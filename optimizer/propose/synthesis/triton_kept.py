"""A row in pieces, all of them loaded before the first is used, and kept in registers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from optimizer.plan import Launch
from optimizer.propose.synthesis.emission import Depth, indented, name_for
from optimizer.propose.synthesis.passes import uses_in
from optimizer.propose.synthesis.sketch import Sketch
from optimizer.propose.synthesis.triton_base import operand
from optimizer.propose.synthesis.triton_loops import MOST_WARPS, TritonLooped
from optimizer.propose.synthesis.value import Load, Reduce, Search, walk

MOST_PIECES = 16
"""Each is code of its own."""


@dataclass
class TritonKept(TritonLooped):
    """A program takes one row, of any length: nothing is rounded up to a power of two.

    What every pass reads is loaded once, before the first pass, so that all of a row is on its way
    at the same time; a row of 5120 elements takes no more registers than it has elements.
    """

    how: str = field(default="a row a program in pieces", init=False)
    _kept: dict[Load, str] = field(default_factory=dict, init=False)

    def sketch(self) -> Sketch:
        """Return the kernel with its launch."""
        found = super().sketch()
        block = f"{self.name}_block"
        longest = f"next_power_of_2({self.width})"
        (step,) = found.steps
        assert isinstance(step, Launch)  # noqa: S101 - what a loop region is
        constants = {
            **step.constants,
            "BLOCK": block,
            "EVEN": f"{operand(self.width)} % {block} == 0",
            "PIECES": f"cdiv({self.width}, {block})",
        }
        launch = step.model_copy(
            update={
                "constants": constants,
                "warps": f"max(1, min({MOST_WARPS}, {longest} // PER_WARP, {block} // 32))",
            }
        )
        return Sketch(
            code=found.code,
            steps=(launch,),
            functions=found.functions,
            tunables={"PIECE": (512, 1024, 2048, 4096), "PER_WARP": (256, 512, 1024, 2048)},
            chosen={"PIECE": 1024, "PER_WARP": 1024},
            let={block: f"max(min({longest}, PIECE), {longest} // {MOST_PIECES})"},
            note=found.note,
        )

    def passes(self) -> list[str]:
        """Return the loop that loads, then those that reduce."""
        return [*self._loading(), *super().passes()]

    def constants(self) -> tuple[str, ...]:
        """Return the names of the kernel's compile-time constants, in order."""
        return (*super().constants(), "PIECES")

    def describe(self) -> str:
        """Say what a program takes."""
        return "A program takes a row, in PIECES pieces of BLOCK elements that stay in registers."

    def loop(self, body: Sequence[str]) -> list[str]:
        """Return a loop over the pieces of a row."""
        text = "\n".join(body)
        inner = list(body)
        if "mask" in text:
            inner.insert(0, f"mask = None if EVEN else col < {self.width}")
        if "col" in "\n".join(inner):
            inner.insert(0, "col = piece * BLOCK + tl.arange(0, BLOCK)")
        self.emission.leave_loop()
        for load, name in self._kept.items():
            self.emission.learn(load, f"{name}[piece]")
        return ["for piece in tl.static_range(PIECES):", *indented(inner, 4)]

    def _loading(self) -> list[str]:
        begin: list[str] = []
        body: list[str] = []
        kept: dict[Load, str] = {}
        for load in self._loads():
            self.emission.uses = uses_in([load])
            code = self.emission.use(load).code
            body += self.emission.take(Depth.ELEMENT)
            kept[load] = name = self.names.fresh(f"{name_for(load)}s")
            begin.append(f"{name} = ()")
            body.append(f"{name} = {name} + ({code},)")
        before = self.emission.take(Depth.ROW)
        self._kept = kept
        return [*before, *begin, *self.loop(body)]

    def _loads(self) -> Iterator[Load]:
        """Yield the elements of the row that are read at places known beforehand."""
        values = dict.fromkeys(walk(*(store.value for store in self.region.stores)))
        for value in values:
            if isinstance(value, Load) and self.printer.moves(value.place):
                atoms = (atom for atom, _ in value.place.terms)
                if not any(isinstance(part, Load | Reduce | Search) for part in atoms):
                    yield value
