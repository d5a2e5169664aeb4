"""Causal attention in Triton, the maximum and sum of a row's weights kept while keys pass by."""

from typing import Final

from operator_registry.registry import Operator
from operator_registry.spec import (
    DType,
    InputSpec,
    OperatorSpec,
    RangeAxis,
    TensorSpec,
    Workload,
)
from optimizer.landscapes.space import Structure, precision_of_sums
from optimizer.plan import Launch, Plan

_UNIT: Final = 16
_REFERENCE = '''\
"""``o = softmax(q k' / sqrt(width)) v``, each place seeing those up to itself."""

from torch.nn import functional


def attention(q, k, v):
    return functional.scaled_dot_product_attention(q, k, v, is_causal=True)
'''

TRITON = '''\
"""Causal attention, a block of queries to a program."""

import triton
import triton.language as tl

TUNABLES = {
    "BLOCK_Q": (32, 64, 128, 256),
    "BLOCK_K": (16, 32, 64, 128),
    "LATE_FIRST": (0, 1),
    "HEADS_INNER": (0, 1),
    "WARPS": (4, 8),
    "STAGES": (1, 2, 3, 4),
}


@triton.jit
def attention(q, k, v, o, length, blocks, block_every, head_every, heads, late_first,
    WIDTH: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr):
    program = tl.program_id(0)
    block = program // block_every % blocks
    block = tl.where(late_first == 1, blocks - 1 - block, block)
    head = (program // head_every % heads).to(tl.int64) * length * WIDTH
    inner = tl.arange(0, WIDTH)
    place = block * BLOCK_Q + tl.arange(0, BLOCK_Q)
    there = place[:, None] < length
    asked = tl.load(q + head + place[:, None] * WIDTH + inner[None, :], mask=there, other=0.0)
    scale = 1.4426950408889634 * WIDTH**-0.5
    greatest = tl.full((BLOCK_Q,), float("-inf"), tl.float32)
    weight = tl.zeros((BLOCK_Q,), tl.float32)
    total = tl.zeros((BLOCK_Q, WIDTH), tl.float32)
    end = tl.minimum((block + 1) * BLOCK_Q, length)
    for first in range(0, end, BLOCK_K):
        key = first + tl.arange(0, BLOCK_K)
        known = key[:, None] < length
        cell = head + key[:, None] * WIDTH + inner[None, :]
        keys = tl.load(k + cell, mask=known, other=0.0)
        score = tl.dot(asked, tl.trans(keys)) * scale
        score = tl.where(key[None, :] <= place[:, None], score, float("-inf"))
        higher = tl.maximum(greatest, tl.max(score, 1))
        factor = tl.exp2(greatest - higher)
        share = tl.exp2(score - higher[:, None])
        weight = weight * factor + tl.sum(share, 1)
        values = tl.load(v + cell, mask=known, other=0.0)
        total = tl.dot(share.to(values.dtype), values, total * factor[:, None])
        greatest = higher
    result = total / weight[:, None]
    target = o + head + place[:, None] * WIDTH + inner[None, :]
    tl.store(target, result.to(o.dtype.element_ty), mask=there)
'''

SIZES: Final[dict[str, tuple[int, int, int]]] = {
    "many-heads": (64, 1024, 64),
    "long": (8, 4096, 64),
    "wide": (16, 2048, 128),
}
"""Heads, length and width of a head of the landscapes on a device."""


def make_attention(heads: int, length: int, width: int, *, dtype: DType) -> Operator:
    """Return the operator with one workload; a head's width is part of the operator."""
    shape = ("heads", "length", "width")
    spec = OperatorSpec(
        name="attention",
        summary="Causal attention of each head.",
        axes={
            "heads": RangeAxis(max=1024),
            "length": RangeAxis(min=_UNIT, max=1 << 14, multiple_of=_UNIT),
            "width": RangeAxis(min=width, max=width),
        },
        dtypes={"T": (dtype,)},
        inputs={name: InputSpec(shape=shape, dtype="T") for name in ("q", "k", "v")},
        outputs={"o": TensorSpec(shape=shape, dtype="T")},
        reference="attention",
        precision=precision_of_sums(dtype),
        workloads=(
            Workload(
                name=f"h{heads}-l{length}-w{width}",
                sizes={"heads": heads, "length": length, "width": width},
                dtypes={"T": dtype},
            ),
        ),
    )
    return Operator(spec=spec, source=_REFERENCE)


def triton_structures() -> tuple[Structure, ...]:
    """Return attention with the order of its programs as tunables."""
    blocks = "cdiv(length, BLOCK_Q)"
    step = Launch(
        kernel="attention",
        grid=(f"{blocks} * heads",),
        arguments=(
            "q", "k", "v", "o", "length", blocks,
            "heads if HEADS_INNER == 1 else 1",
            f"1 if HEADS_INNER == 1 else {blocks}",
            "heads", "LATE_FIRST",
        ),
        constants={"WIDTH": "width", "BLOCK_Q": "BLOCK_Q", "BLOCK_K": "BLOCK_K"},
        warps="WARPS",
        stages="STAGES",
    )  # fmt: skip
    plan = Plan(language="triton", steps=(step,))
    return (Structure(name="online", code=TRITON, plan=plan),)
