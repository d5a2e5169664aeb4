"""Memory with canaries, the inputs that a worker holds in it, and what calls are given."""

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from optimizer.evaluate.guards import Guard, Guards, without
from optimizer.evaluate.held import HeldInputs
from optimizer.evaluate.memory import Value, write_value
from optimizer.evaluate.padded import make_gapped, make_padded, spoil
from optimizer.evaluate.protocol import Case, Seat
from optimizer.evaluate.ward import Ward

SHAPES = st.lists(st.integers(0, 9), min_size=1, max_size=3)
DTYPES = st.sampled_from([torch.float32, torch.bfloat16, torch.int64, torch.uint8, torch.bool])


def held(folder: Path, *sets: list[Value], guards: Guards | None = None) -> HeldInputs:
    stored = tuple(
        tuple(write_value(folder, f"{number}-{place}", value) for place, value in enumerate(one))
        for number, one in enumerate(sets)
    )
    holder = HeldInputs("cpu", guards or Guards())
    holder.take(Case(key="k", attributes={}, sets=stored))
    return holder


def only(values: list[Value]) -> Tensor:
    (value,) = values
    assert isinstance(value, Tensor)
    return value


def spoil_beside(tensor: Tensor, elements: int) -> None:
    """Change the memory so many elements behind a tensor's last."""
    end = tensor.storage_offset() + tensor.numel() + elements
    tensor.as_strided((1,), (1,), end - 1).view(torch.int32).bitwise_not_()


@given(SHAPES, DTYPES, st.integers(0, 5), st.integers(0, 2**48))
@settings(deadline=None)
def test_padded_memory_holds_any_tensor_and_is_intact(
    shape: list[int], dtype: torch.dtype, shift: int, seed: int
) -> None:
    size = torch.Size(shape).numel() * dtype.itemsize
    padded = make_padded(size, device="cpu", seed=seed, shift=shift * dtype.itemsize)

    padded.view(dtype, shape).fill_(1)

    assert padded.is_intact()
    assert padded.view(dtype, shape).data_ptr() % 64 == shift * dtype.itemsize % 64 or not size


@pytest.mark.parametrize("place", [-1, 0])
def test_one_byte_beside_the_tensor_is_seen(place: int) -> None:
    padded = make_padded(40, device="cpu", seed=1)
    at = padded.start - 1 if place else padded.start + padded.size

    padded.memory[at] ^= 1

    assert not padded.is_intact()


@given(SHAPES, st.integers(0, 2**48))
@settings(deadline=None)
def test_a_gapped_tensor_is_the_same_and_no_byte_between_may_change(
    shape: list[int], seed: int
) -> None:
    value = torch.arange(torch.Size(shape).numel()).view(shape)

    padded = make_gapped(value, seed=seed)
    gapped = padded.view(value.dtype, value.shape)

    assert torch.equal(gapped, value)
    assert padded.is_intact()
    rows = torch.Size(shape[:-1]).numel() if len(shape) > 1 else shape[0]
    assert rows < 2 or not shape[-1] or not gapped.is_contiguous()
    padded.memory[padded.start + padded.size - 1] ^= 1
    assert not padded.is_intact()


def test_spoiled_memory_has_other_bytes_with_another_seed() -> None:
    one, same, other = (torch.empty(100_001, dtype=torch.uint8) for _ in range(3))

    for memory, seed in ((one, 1), (same, 1), (other, 2)):
        spoil(memory, seed)

    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert one.bincount().numel() == 256


def test_a_set_can_lie_where_another_lay_before(tmp_path: Path) -> None:
    holder = held(tmp_path, [torch.zeros(5)], [torch.ones(5)])

    first = only(holder.seat("k", 0, Seat()))
    address, values = first.data_ptr(), first.tolist()
    second = only(holder.seat("k", 1, Seat()))

    assert (second.data_ptr(), values, second.tolist()) == (address, [0] * 5, [1] * 5)


def test_sets_of_different_sizes_share_a_place(tmp_path: Path) -> None:
    members: list[Value] = [[torch.arange(3), torch.arange(9)]]
    holder = held(tmp_path, members, [[torch.arange(7), torch.arange(0)]])

    for number, sizes in ((0, [3, 9]), (1, [7, 0]), (0, [3, 9])):
        (value,) = holder.seat("k", number, Seat())
        assert isinstance(value, list)
        assert [member.numel() for member in value] == sizes
        assert all(torch.equal(member, torch.arange(member.numel())) for member in value)
    assert holder.mend("k") == ((), ())


def test_a_shift_moves_inputs_by_elements(tmp_path: Path) -> None:
    holder = held(tmp_path, [torch.arange(5.0)])

    assert only(holder.seat("k", 0, Seat(shift=1))).data_ptr() % 16 == 4
    assert only(holder.seat("k", 0, Seat(shift=64))).data_ptr() % 64 == 0


def test_each_turn_brings_a_sets_values_to_an_aligned_place(tmp_path: Path) -> None:
    holder = held(tmp_path, [torch.zeros(5)], [torch.ones(5)])
    seen = set()

    for _ in range(40):
        holder.turn("k")
        seen.add(only(holder.values("k", 0)).data_ptr())
        assert only(holder.values("k", 0)).tolist() == [0] * 5
        assert only(holder.values("k", 1)).tolist() == [1] * 5

    assert len(seen) > 10
    assert all(address % 64 == 0 for address in seen)


def test_without_its_guard_inputs_stay_where_they_are(tmp_path: Path) -> None:
    holder = held(tmp_path, [torch.zeros(5)], guards=without({Guard.FRESH}))
    before = only(holder.values("k", 0)).data_ptr()

    holder.turn("k")

    assert only(holder.values("k", 0)).data_ptr() == before


@pytest.mark.parametrize("seat", [Seat(), Seat(shift=1), Seat(strided=(0,))])
def test_what_is_written_into_an_input_is_told_and_mended(seat: Seat, tmp_path: Path) -> None:
    holder = held(tmp_path, [torch.arange(12.0).view(3, 4)])
    only(holder.seat("k", 0, seat))[1, 2] = 9

    assert holder.mend("k") == ((0,), ())
    assert holder.mend("k") == ((), ())
    assert torch.equal(only(holder.seat("k", 0, seat)), torch.arange(12.0).view(3, 4))


@pytest.mark.parametrize("elements", [1, 1000])
def test_what_is_written_beside_an_input_is_told(elements: int, tmp_path: Path) -> None:
    holder = held(tmp_path, [torch.arange(12.0)])
    spoil_beside(only(holder.seat("k", 0, Seat())), elements)

    assert holder.mend("k") == ((), (0,))
    assert holder.mend("k") == ((), ())


def test_a_gap_between_strided_elements_is_guarded(tmp_path: Path) -> None:
    holder = held(tmp_path, [torch.arange(12.0)])
    value = only(holder.seat("k", 0, Seat(strided=(0,))))
    spoil_beside(value, 2 - value.numel())

    assert holder.mend("k") == ((), (0,))


@pytest.mark.parametrize(
    ("guard", "told"), [(Guard.INPUTS, ((), (0,))), (Guard.CANARIES, ((0,), ()))]
)
def test_a_guard_that_is_down_sees_nothing(
    guard: Guard, told: tuple[object, object], tmp_path: Path
) -> None:
    holder = held(tmp_path, [torch.arange(12.0)], guards=without({guard}))
    value = only(holder.seat("k", 0, Seat()))
    value[0] = 9
    spoil_beside(value, 1)

    assert holder.mend("k") == told


def test_a_checked_call_is_given_random_bytes_that_change_with_the_seed() -> None:
    ward = Ward()
    device, seen = torch.device("cpu"), []

    for seed in (1, 1, 2):
        ward.watch(seed)
        seen.append(ward((64,), dtype=torch.uint8, device=device).clone())
        assert ward.unwatch()

    assert torch.equal(seen[0], seen[1])
    assert not torch.equal(seen[0], seen[2])


def test_memory_that_a_call_was_given_is_guarded_at_its_edges() -> None:
    ward = Ward()
    ward.watch(1)
    memory = ward((10,), dtype=torch.float32, device=torch.device("cpu"))
    spoil_beside(memory, 1)

    assert not ward.unwatch()


def test_memory_of_a_timed_call_is_spoiled_once_it_is_over() -> None:
    ward = Ward()
    memory = ward((1000,), dtype=torch.float32, device=torch.device("cpu")).fill_(3)
    assert ward.lent_bytes == 4000

    ward.release()

    assert not (memory == 3).any()
    assert ward.lent_bytes == 0


def test_without_its_guard_memory_is_as_a_machine_gives_it_first() -> None:
    ward = Ward(without({Guard.POISON}))
    ward.watch(1)

    assert not ward((64,), dtype=torch.uint8, device=torch.device("cpu")).any()


def test_values_move_on_in_the_same_memory_and_come_back(tmp_path: Path) -> None:
    holder = held(tmp_path, [torch.arange(6.0).reshape(2, 3), torch.arange(3)])
    values = holder.values("k", 0)
    first, second = values
    assert isinstance(first, Tensor)

    holder.roll("k", 0, 7, places=(0,))

    assert holder.values("k", 0)[0] is first
    assert first.flatten().tolist() == [5, 0, 1, 2, 3, 4]
    assert torch.equal(second, torch.arange(3)) if isinstance(second, Tensor) else False
    holder.roll("k", 0, 0, places=(0,))
    assert torch.equal(first, torch.arange(6.0).reshape(2, 3))


def test_values_stay_where_the_guard_is_down(tmp_path: Path) -> None:
    holder = held(tmp_path, [torch.arange(6.0)], guards=without({Guard.FRESH}))

    holder.roll("k", 0, 1, places=(0,))

    assert torch.equal(only(holder.values("k", 0)), torch.arange(6.0))


@pytest.mark.gpu
def test_canaries_and_spoiled_memory_work_on_a_device() -> None:
    padded = make_padded(40, device="cuda", seed=1)
    padded.view(torch.float32, (10,)).fill_(1)
    assert padded.is_intact()

    padded.memory[padded.start + padded.size] ^= 1

    assert not padded.is_intact()
    assert torch.equal(make_padded(40, device="cuda", seed=1).front.cpu(), padded.front.cpu())
