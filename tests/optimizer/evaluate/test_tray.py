"""Memory that the judge lends for outputs: where they lie in it, and what is found there."""

import os
from collections.abc import Iterator
from math import prod
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from optimizer.evaluate import protocol as p
from optimizer.evaluate.lending import FileLender
from optimizer.evaluate.lent import Lent, map_lent
from optimizer.evaluate.tray import GAP_BYTES, Layout, Memory, Taken, lay_out, take
from tests.optimizer.plans import ADD, HEADS, POSITIVE

SHIFT = 512
FLOATS = {"T": "float32"}


def form(*shape: int, dtype: str = "float32") -> p.Form:
    return p.Form.model_validate({"shape": shape, "dtype": dtype})


def add_layout(rows: int = 5) -> Layout:
    return lay_out(ADD.spec, [{"rows": rows}], FLOATS, sized=False)[0]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    lent = FileLender(tmp_path).lend(1 << 16)
    assert lent is not None
    yield lent
    lent.close()


def put(memory: Memory, layout: Layout, *values: torch.Tensor, shift: int = SHIFT) -> None:
    """Write what a worker writes."""
    mapped = map_lent(memory.lent, "cpu")
    for slot, value in zip(layout.slots, values, strict=True):
        begin = slot.offset + shift
        there = mapped[begin : begin + value.numel() * value.element_size()]
        there.view(value.dtype).copy_(value.reshape(-1))


def taken(memory: Memory, layout: Layout, *forms: p.Form | tuple[p.Form, ...]) -> Taken:
    return take(memory, layout, forms, shift=SHIFT, fill=0x5A)


@given(st.lists(st.integers(0, 300), min_size=1, max_size=5))
def test_the_slots_of_all_sets_lie_apart_and_at_the_same_places(rows: list[int]) -> None:
    layouts = lay_out(POSITIVE.spec, [{"rows": n} for n in rows], {}, sized=True)

    assert len({layout.offsets for layout in layouts}) == 1
    for layout in layouts:
        ends = [0, *(slot.offset + slot.nbytes for slot in layout.slots)]
        begins = [*layout.offsets, layout.nbytes]
        assert all(begin - end >= GAP_BYTES for begin, end in zip(begins, ends, strict=True))
        assert all(offset % 256 == 0 for offset in layout.offsets)
        assert all(begin < end for begin, end in layout.gaps)


def test_a_size_that_the_data_decide_has_a_slot_where_it_is_asked_for() -> None:
    (plain,) = lay_out(POSITIVE.spec, [{"rows": 7}], {}, sized=False)
    (sized,) = lay_out(POSITIVE.spec, [{"rows": 7}], {}, sized=True)

    assert [slot.shapes for slot in plain.slots] == [((),), ((7,),)]
    assert sized.slots[2].shapes == ((1,),)


def test_the_judge_reads_what_was_written(memory: Memory) -> None:
    layout, value = add_layout(), torch.randn(5)
    memory.fill(SHIFT, layout.nbytes, 0x5A)
    put(memory, layout, value)

    found = taken(memory, layout, form(5))

    assert found.tensors[0] is not None
    assert torch.equal(found.tensors[0][0], value)
    assert not found.stray


def test_what_is_written_later_is_not_read(memory: Memory) -> None:
    layout = add_layout()
    put(memory, layout, torch.zeros(5))
    found = taken(memory, layout, form(5))
    put(memory, layout, torch.ones(5))

    assert found.tensors[0] is not None
    assert not found.tensors[0][0].any()


@pytest.mark.parametrize("place", [0, -1])
def test_one_byte_beside_an_output_is_seen(memory: Memory, place: int) -> None:
    layout = add_layout()
    slot = layout.slots[0]
    memory.fill(SHIFT, layout.nbytes, 0x5A)
    beside = slot.offset - 1 if place < 0 else slot.offset + slot.nbytes
    map_lent(memory.lent, "cpu")[SHIFT + beside] = 0

    assert taken(memory, layout, form(5)).stray
    assert not take(memory, layout, (form(5),), shift=SHIFT, fill=None).stray


def test_a_form_that_has_no_room_is_not_read(memory: Memory) -> None:
    layout = add_layout()

    for wrong in (form(6), form(5, 1), form(5, dtype="float64"), (form(5), form(5))):
        assert taken(memory, layout, wrong).tensors == (None,)
    assert taken(memory, layout, form(3)).tensors != (None,)


def test_a_tray_that_was_cut_short_is_damaged_and_kills_nobody(memory: Memory) -> None:
    layout = add_layout()
    os.truncate(memory.lent.path, 16)

    assert taken(memory, layout, form(5)).tensors == (None,)
    memory.fill(SHIFT, layout.nbytes, 0x5A)
    assert taken(memory, layout, form(5)).tensors != (None,)


def test_members_of_a_list_are_cut_to_their_sizes(memory: Memory) -> None:
    sizes: dict[str, p.Size] = {"features": 2, "rows": 3, "elements": (4, 2)}
    (layout,) = lay_out(HEADS.spec, [sizes], {}, sized=True)
    forms = ((form(3, dtype="int64"),) * 2, (form(1), form(2)))

    found = taken(memory, layout, *forms)

    assert [[tuple(t.shape) for t in one or ()] for one in found.tensors] == [
        [(3,), (3,)],
        [(1,), (2,)],
    ]


@pytest.mark.parametrize("shapes", [[(5,)], [(3, 2), (), (0,)], [(4,), (4,)]])
def test_outputs_of_a_call_are_made_in_the_slots_in_turn(
    memory: Memory, shapes: list[tuple[int, ...]]
) -> None:
    lent = Lent("cpu", torch.empty)
    slots = tuple(4096 * place for place in range(len(shapes)))
    lent.take(p.Lend(case="case", memory=memory.lent, slots=slots))

    for shift in (256, 512, 512):
        lent.arm("case", shift=shift)
        lent.begin("case")
        made = [make(lent, *shape) for shape in shapes]
        extra = make(lent, 3)

        assert [tuple(tensor.shape) for tensor in made] == shapes
        begins = [tensor.data_ptr() for tensor in made if tensor.numel()]
        first = begins[0] - shift - slots[0]
        assert [b - first for b in begins] == [
            slot + shift for slot, shape in zip(slots, shapes, strict=True) if prod(shape)
        ]
        assert all(map(lent.holds, (t for t in made if t.numel())))
        assert not lent.holds(extra)


def make(lent: Lent, *shape: int) -> torch.Tensor:
    return lent.allocate(shape, dtype=torch.float32, device=torch.device("cpu"))
