"""What a kernel is given: the tensors, sizes and attributes that its region uses."""

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from operator_registry.spec import OperatorSpec
from optimizer.propose.synthesis.affine import Affine, Index
from optimizer.propose.synthesis.extent import Extent, product
from optimizer.propose.synthesis.regions import LoopRegion, Scratch
from optimizer.propose.synthesis.value import Load, Search, Symbol, Value, places, walk


@dataclass(frozen=True)
class Signature:
    """A kernel's arguments: tensors read, tensors written, sizes, other numbers; by name."""

    reads: Mapping[str, str]
    """Dtypes by name."""
    writes: Mapping[str, str]
    sizes: tuple[str, ...]
    numbers: tuple[str, ...]
    """Attributes that are no sizes: floating ones."""

    @property
    def names(self) -> tuple[str, ...]:
        """Return all names in the order in which they are passed."""
        return (*self.reads, *self.writes, *self.sizes, *self.numbers)


def signature_of(
    region: LoopRegion, spec: OperatorSpec, scratch: Iterable[Scratch] = ()
) -> Signature:
    """Return what a loop region's kernel is given."""
    dtypes = {name: str(tensor.dtype) for name, tensor in (spec.inputs | spec.outputs).items()}
    dtypes |= {buffer.name: buffer.dtype for buffer in scratch}
    values = list(walk(*(store.value for store in region.stores)))
    used = {v.tensor for v in values if isinstance(v, Load)}
    used |= {v.table for v in values if isinstance(v, Search)}
    names = set(_size_names(region, values))
    real = {name for name, a in spec.attributes.items() if isinstance(a.value, float)}
    order = [*spec.axes, *spec.attributes]
    return Signature(
        reads={name: dtype for name, dtype in dtypes.items() if name in used},
        writes={store.tensor: store.dtype for store in region.stores},
        sizes=tuple(name for name in order if name in names - real),
        numbers=tuple(name for name in order if name in names & real),
    )


def _size_names(region: LoopRegion, values: Iterable[Value]) -> Iterable[str]:
    for index in (*region.rows, *([region.col] if region.col else [])):
        yield from index.size.names
    for store in region.stores:
        yield from _place_names(store.place)
    for value in values:
        for place in places(value):
            yield from _place_names(place)
        match value:
            case Symbol(text=text) | Search(size=text):
                yield from names_of(text)
            case _:
                pass


def _place_names(place: Affine) -> Iterable[str]:
    yield from place.offset.names
    for atom, stride in place.terms:
        yield from stride.names
        if isinstance(atom, Index):
            yield from atom.size.names


def names_of(text: str) -> set[str]:
    """Return the names in an expression."""
    return {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}


def elements(region: LoopRegion) -> Extent:
    """Return how many elements a region's loops run over."""
    return product(i.size for i in (*region.rows, *([region.col] if region.col else [])))
