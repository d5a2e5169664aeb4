"""Jagged selects: which masks are runs, and kernels that keep them."""

from pathlib import Path

import pytest

from operator_registry.registry import Operator
from operator_registry.spec import AttributeSpec, InputSpec, Lengths, SumAxis, TensorSpec, Uniform
from optimizer.propose.synthesis.dtypes import RegionError
from tests.optimizer.propose.trial import Call, built, drafts_of, interpreted, make_case

LENGTHS = InputSpec(shape=("rows",), dtype="int64", values=Lengths(low=0, high=9))
VALUES = InputSpec(shape=("entries",), dtype="float32")
POSITIONS = """
    starts = lengths.cumsum(0) - lengths
    row = torch.repeat_interleave(lengths)
    position = torch.arange(values.shape[0]) - starts[row]
"""


def one_level(body: str, *, kept: str, **inputs: InputSpec) -> Operator:
    names = ", ".join(["lengths", "values", *inputs])
    return make_case(
        f"def reference({names}, limit):{POSITIONS}{body}",
        {"lengths": LENGTHS, "values": VALUES, **inputs},
        {
            "kept_lengths": TensorSpec(shape=("rows",), dtype="int64"),
            "kept_values": TensorSpec(shape=("left",), dtype="float32"),
        },
        axes={
            "entries": SumAxis(sum_of="lengths"),
            "left": SumAxis(sum_of="kept_lengths", at_most="entries"),
        },
        attributes={"limit": AttributeSpec(value=3, min=0, max=9)},
    )


CASES = {
    "the first of each row": one_level(
        "    return lengths.clamp(max=limit), values[position < limit]\n", kept="limit"
    ),
    "the last of each row": one_level(
        "    keep = position >= lengths[row] - limit\n"
        "    return torch.minimum(lengths, lengths * 0 + limit), values[keep]\n",
        kept="limit",
    ),
    "all but the first and the last": one_level(
        "    keep = (position > 0) & (position + 1 < lengths[row])\n"
        "    return (lengths - 2).clamp(min=0) + limit * 0, values[keep]\n",
        kept="limit",
    ),
    "as many as another tensor says": one_level(
        "    return torch.minimum(lengths, wanted), values[position < wanted[row]]\n",
        kept="wanted",
        wanted=InputSpec(shape=("rows",), dtype="int64", values=Uniform(low=0, high=12)),
    ),
}
CALLS = ({"rows": 7}, {"rows": 1}, {"rows": 0})


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("language", ["cpp", "triton"])
def test_kernels_keep_what_the_mask_keeps(language: str, name: str, tmp_path: Path) -> None:
    (draft, *_) = drafts_of(CASES[name], language)
    calls = [Call(CASES[name], sizes, {}, {"limit": n}) for sizes in CALLS for n in (0, 3)]

    kernels = interpreted(draft) if language == "triton" else built([(draft, calls)], tmp_path)[0]

    for call in calls:
        call.check(draft, kernels)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("    return lengths, values[values > 0]\n", "repeat_interleave made no segments"),
        ("    return lengths, values[position % 2 == 0]\n", "no comparison of positions"),
        ("    return lengths, (values * 2)[position < limit]\n", "of what is computed"),
    ],
)
def test_other_masks_are_refused_with_a_reason(body: str, why: str) -> None:
    with pytest.raises(RegionError, match=why):
        drafts_of(one_level(body, kept=""), "cpp")
