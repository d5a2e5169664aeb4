"""How a launch lays out parameters, against C's own rules and what PTX declares."""

import ctypes

from hypothesis import given
from hypothesis import strategies as st

from optimizer.targets.cubin import Parameters, entry_parameter_sizes

C_TYPES = {
    "*fp32": ctypes.c_uint64,
    "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
    "fp32": ctypes.c_float,
}
PTX = """\
.visible .func (.param .b32 result) helper(.param .b64 x)
.visible .entry rows(
	.param .u64 .ptr .global .align 1 rows_param_0,
	.param .u32 rows_param_1,
	.param .f32 rows_param_2,
	.param .u64 .ptr .global .align 1 rows_param_3
)
.reqntid 128
{
"""


@given(kinds=st.lists(st.sampled_from(sorted(C_TYPES)), max_size=12))
def test_each_parameter_stands_where_a_c_struct_has_it(kinds: list[str]) -> None:
    members = [C_TYPES[kind] for kind in kinds] + [ctypes.c_uint64] * 2
    fields = [(f"p{i}", kind) for i, kind in enumerate(members)]
    struct = type("Struct", (ctypes.Structure,), {"_fields_": fields})

    assert Parameters(kinds).offsets == [getattr(struct, name).offset for name, _ in fields]


def test_values_are_packed_in_order_with_the_scratch_pointers_last() -> None:
    parameters = Parameters(("*fp32", "i32", "fp32", "i64"))

    packed = parameters.packed.pack(0xAB, -1, 0.5, 2**40, 0, 0)

    assert ctypes.c_uint64.from_buffer_copy(packed, parameters.offsets[0]).value == 0xAB
    assert ctypes.c_int32.from_buffer_copy(packed, parameters.offsets[1]).value == -1
    assert ctypes.c_float.from_buffer_copy(packed, parameters.offsets[2]).value == 0.5
    assert ctypes.c_int64.from_buffer_copy(packed, parameters.offsets[3]).value == 2**40
    assert packed[parameters.offsets[4] :] == bytes(16)


def test_the_sizes_of_an_entrys_parameters_are_read_from_ptx() -> None:
    assert entry_parameter_sizes(PTX) == [8, 4, 4, 8]
