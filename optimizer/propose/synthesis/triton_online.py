"""A row's maximum and the sum of what grows from it in one loop, scaled as the maximum rises."""

from dataclasses import dataclass, field

from optimizer.propose.synthesis.emission import Depth, name_for
from optimizer.propose.synthesis.passes import make_passes, uses_in
from optimizer.propose.synthesis.regions import LoopRegion
from optimizer.propose.synthesis.triton_loops import TritonLooped
from optimizer.propose.synthesis.value import Apply, Reduce

_LEAST = "-3.4028235e38"
"""Below any number but minus infinity, from which nothing may be taken away."""


def find_pair(region: LoopRegion) -> tuple[Reduce, Reduce] | None:
    """Return the maximum of a row and the sum of ``exp(x - maximum)``, if it has just these."""
    passes = make_passes(region)
    match passes.reductions:
        case ((Reduce(kind="max") as greatest,), (Reduce(kind="sum") as total,)):
            grown = total.body
        case _:
            return None
    if not (isinstance(grown, Apply) and grown.op == "exp" and grown.dtype == "float32"):
        return None
    below = grown.args[0]
    same = (
        isinstance(below, Apply) and below.op == "sub" and below.args == (greatest.body, greatest)
    )
    return (greatest, total) if same else None


@dataclass
class TritonOnline(TritonLooped):
    """As `TritonLooped`, but a row is read once for its maximum and sum together."""

    how: str = field(default="a row a program in blocks, maximum and sum at once", init=False)

    def passes(self) -> list[str]:
        """Return the one loop that reduces."""
        pair = find_pair(self.region)
        if pair is None:
            return super().passes()
        greatest, total = pair
        self.emission.uses = uses_in([greatest.body])
        high, sum_ = (self.names.fresh(name_for(r)) for r in pair)
        highs, sums = self.names.fresh(f"{high}s"), self.names.fresh(f"{sum_}s")
        higher = self.names.fresh("higher")
        value = self.emission.use(greatest.body).code
        if greatest not in self.satisfied:
            value = self.printer.call("keep", value, "mask", 'float("-inf")').code
        name = self.names.fresh("value")
        body = [
            *self.emission.take(Depth.ELEMENT),
            f"{name} = {value}",
            f"{higher} = tl.maximum({highs}, {name})",
            f"{sums} = {sums} * tl.exp({highs} - {higher}) + tl.exp({name} - {higher})",
            f"{highs} = {higher}",
        ]
        before = self.emission.take(Depth.ROW)
        loop = self.loop(body)
        self.emission.learn(greatest, high)
        self.emission.learn(total, sum_)
        return [
            *before,
            f"{highs} = tl.full([BLOCK], {_LEAST}, tl.float32)",
            f"{sums} = tl.zeros([BLOCK], tl.float32)",
            *loop,
            f"{high} = tl.max({highs}, axis=0)",
            f"{sum_} = tl.sum({sums} * tl.exp({highs} - {high}), axis=0)",
        ]
