"""What kernels of a jagged select are given and give, whatever their language."""

from optimizer.plan import Buffer, ReadSize, Step
from optimizer.propose.synthesis.jagged import JaggedRegion
from optimizer.propose.synthesis.signature import names_of
from optimizer.propose.synthesis.value import Load, Symbol, Value, places, walk


def described(region: JaggedRegion) -> list[str]:
    """Return what a jagged select does, in words."""
    moved = ", ".join(f"{move.output} of {move.source}" for move in region.moves)
    lines = [f"Keeps one run of each segment of {region.lengths}: {moved}."]
    if region.inner:
        lines.append(f"The second level's values stand one after another by {region.inner}.")
    return lines


def limits_of(region: JaggedRegion) -> list[Value]:
    """Return the limits of the kept positions, as far as there are any."""
    return [value for value in (region.low, region.high) if value is not None]


def segment_inputs(region: JaggedRegion) -> list[str]:
    """Return the inputs that are read segment by segment, the lengths first."""
    loads = [value.tensor for value in walk(*_roots(region)) if isinstance(value, Load)]
    return list(dict.fromkeys([region.lengths, *loads]))


def reads_of(region: JaggedRegion) -> tuple[Step, ...]:
    """Return the steps that read the sizes which the kernels found."""
    steps: dict[str, Step] = {}
    for move in region.moves:
        if move.level == 1:
            steps[move.axis] = ReadSize(buffer="sizes", axis=move.axis)
        else:
            count = region.members if move.listed else None
            steps[move.axis] = ReadSize(buffer="sizes", index="1", axis=move.axis, count=count)
    return tuple(steps.values())


def sizes_buffer(region: JaggedRegion) -> Buffer:
    """Return the memory for the kept elements of the first level and of each member's second."""
    return Buffer(shape=(f"1 + {region.members or 1}",), dtype="int64")


def tensors_read(region: JaggedRegion) -> tuple[str, ...]:
    """Return the inputs of a jagged select, each once."""
    loads = [value.tensor for value in walk(*_roots(region)) if isinstance(value, Load)]
    inner = [region.inner] if region.inner else []
    return tuple(dict.fromkeys([region.lengths, *loads, *inner, *(m.source for m in region.moves)]))


def tensors_written(region: JaggedRegion) -> tuple[str, ...]:
    """Return the outputs of a jagged select."""
    return (*(store.tensor for store in region.stores), *(m.output for m in region.moves))


def symbols_in(region: JaggedRegion) -> set[str]:
    """Return the axes and attributes that the limits and what is stored depend on."""
    names: set[str] = set()
    for value in walk(*_roots(region)):
        if isinstance(value, Symbol):
            names |= names_of(value.text)
        for place in places(value):
            names |= place.offset.names.union(*(stride.names for _, stride in place.terms))
    return names


def _roots(region: JaggedRegion) -> list[Value]:
    return [*limits_of(region), *(store.value for store in region.stores)]
