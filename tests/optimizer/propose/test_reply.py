"""A reply is read leniently in its form and strictly in what it says, and never crashes."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from operator_registry.registry import CATALOG, load_registry
from optimizer.candidate import Candidate
from optimizer.evaluate.screen import find_fault
from optimizer.propose.reply import LONGEST, Unusable, read_reply
from tests.makers import HARDWARE, SCALE, make_candidate

H200 = load_registry(CATALOG).hardware["h200"]
PARENT = make_candidate("parent")
PLAN: dict[str, Any] = {
    "language": "cpp",
    "steps": [{"kind": "launch", "kernel": "scale", "arguments": ["x", "y", "rows", "factor"]}],
}
TUNED = f'// TUNABLES = {{"GRAIN": (4, 8, 16)}}\n{SCALE}'


def block(tag: str, text: str) -> str:
    return f"```{tag}\n{text}\n```\n"


def reply(code: str = SCALE, told: object = None, note: str = "I unroll.") -> str:
    return f"{note}\n\n{block('cpp', code)}\n{block('json', json.dumps(told or {'plan': PLAN}))}"


def read(text: str, *, parent: Candidate | None = None, most: int = 1) -> Any:  # noqa: ANN401
    return read_reply(text, parent=parent, hardware=HARDWARE, origin="tiny", most=most)


def test_code_and_plan_become_a_candidate() -> None:
    (candidate,) = read(reply(), parent=PARENT)

    assert candidate.code == SCALE
    assert candidate.plan.steps == PARENT.plan.steps
    assert (candidate.origin, candidate.note) == ("tiny", "I unroll.")
    assert candidate.parent == PARENT.id


@pytest.mark.parametrize(
    "text",
    [
        reply(told=PLAN),
        reply(told={**PLAN, "chosen": {}, "note": "x"}),
        reply(told={"plan": {"steps": PLAN["steps"][0]}}),
        reply().replace('"kind": "launch", ', ""),
        f"{block('c++', SCALE)}{block('', json.dumps(PLAN))}",
        f"~~~cpp\n{SCALE}~~~\n{block('JSON', json.dumps(PLAN))}",
        f"<think>```cpp\nnot this\n```</think>{reply()}",
        reply().replace("]}}", "],}}"),
        reply().rstrip().removesuffix("```"),
        json.dumps({"code": SCALE, "plan": PLAN}),
        f"Here you are: {json.dumps({'code': SCALE, 'plan': PLAN})} Good luck!",
        block("json", json.dumps({"code": SCALE, "plan": PLAN})),
        reply().replace("\n", "\r\n").replace("\r\n", "\n"),
    ],
)  # fmt: skip
def test_many_forms_mean_the_same(text: str) -> None:
    (candidate,) = read(text)

    assert candidate.code == SCALE
    assert candidate.plan.steps == PARENT.plan.steps


def test_a_plan_that_is_left_out_is_the_parents() -> None:
    (candidate,) = read(block("cpp", f"// faster\n{SCALE}"), parent=PARENT)

    assert candidate.plan == PARENT.plan


def test_code_that_is_left_out_is_the_parents() -> None:
    (candidate,) = read(block("json", json.dumps({"plan": PLAN, "chosen": {}})), parent=PARENT)

    assert candidate.code == PARENT.code


@pytest.mark.parametrize(
    ("chosen", "found"),
    [({"GRAIN": 4}, 4), ({"GRAIN": 5}, 8), ({"GRAIN": "4"}, 8), ({}, 8), (None, 8), ([1], 8)],
)
def test_each_tunable_gets_a_value_that_it_admits(chosen: object, found: int) -> None:
    (candidate,) = read(reply(TUNED, {"plan": PLAN, "chosen": chosen}))

    assert candidate.chosen == {"GRAIN": found}


def test_several_kernels_are_read_if_asked_for() -> None:
    text = reply() + reply(f"// another\n{SCALE}") + reply()

    assert len(read(text)) == 1
    assert len(read(text, most=5)) == 2


def test_a_host_side_in_python_is_read() -> None:
    code = (
        "import triton\nimport triton.language as tl\n@triton.jit\ndef scale(x, y):\n    pass\n"
        "def run(x, y, factor):\n    scale[(1,)](x, y)\n"
    )
    plan = {"language": "python", "steps": [{"kind": "launch", "kernel": "scale", "arguments": []}]}
    text = block("python", code) + block("json", json.dumps(plan))

    found = read_reply(text, parent=None, hardware=H200, origin="tiny")

    assert isinstance(found, tuple)
    assert found[0].host == "python"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no block"),
        ("I'm lazy.", "no block"),
        (block("cpp", SCALE), "no plan"),
        (block("json", json.dumps(PLAN)), "no block with code"),
        (reply().replace('"kernel"', '"kernl"'), "the plan can't be read: steps"),
        (block("cpp", SCALE) + block("json", '{"plan": {'), "the JSON block can't be read"),
        (reply(told={"plan": {**PLAN, "sudo": True}}), "sudo"),
        (reply(told={"plan": "scale"}), "no object"),
        (reply(told={"plan": {**PLAN, "steps": PLAN["steps"] * 70}}), "more than 64 steps"),
        (reply("#include <fstream>\n" + SCALE), "includes fstream"),
        (reply("int main() { return system(0); }\n" + SCALE), "calls system"),
        (reply(SCALE.replace("scale", "other")), "no KERNEL(scale)"),
        (reply('// TUNABLES = {"A": ()}\n' + SCALE), "1 to 64 values"),
        (reply("// TUNABLES = {__import__('os'): 1}\n" + SCALE), "no literal"),
        (reply("x" * 200_000), "more than 128000 characters"),
        (reply(told={"plan": PLAN}).replace('"x"', '"\\ud800"'), "signs that are no text"),
        (block("python", "import triton") + block("json", json.dumps(PLAN)), "KERNEL(scale)"),
    ],
)
def test_what_can_not_be_used_says_what_is_wrong(text: str, reason: str) -> None:
    found = read(text)

    assert isinstance(found, Unusable)
    assert reason in found.reason


FRAGMENTS = st.sampled_from(
    ["```", "```cpp\n", "```json\n", "~~~\n", "\n", "{", "}", '{"plan": ', '{"steps": [', "]", ",",
     '"code": ', json.dumps(PLAN), SCALE, "<think>", "</think>", "def run(", "@triton.jit",
     '// TUNABLES = {"A": (1,)}\n', "\x00", "\ud800", "[" * 500, "(" * 500, "9" * 5000,
     '{"code": 1}', "-" * 3000, '"\\ud800"', "import triton\n", "KERNEL(scale)"]
)  # fmt: skip


@given(
    st.lists(st.one_of(FRAGMENTS, st.text(max_size=20)), max_size=20).map("".join),
    st.sampled_from([None, PARENT]),
    st.sampled_from([HARDWARE, H200]),
)
@example("```json\n" + '{"plan":' * 100_000, None, HARDWARE)
@example("```python\nTUNABLES = " + "-" * 100_000 + "1\nimport triton\n```", None, H200)
@example('```cpp\n// TUNABLES = {"A": (' + "-" * 50_000 + "1,)}\n```", PARENT, HARDWARE)
@example("`" * LONGEST, None, HARDWARE)
@example(reply('// TUNABLES = {"A": (1e999,)}\n' + SCALE), None, HARDWARE)
def test_no_text_crashes_it(text: str, parent: Candidate | None, hardware: Any) -> None:  # noqa: ANN401
    found = read_reply(text, parent=parent, hardware=hardware, origin="tiny", most=3)

    if isinstance(found, Unusable):
        assert 0 < len(found.reason) <= 1200
    else:
        for candidate in found:
            assert find_fault(candidate, hardware) is None
            assert Candidate.from_json(candidate.to_json()) == candidate


def test_a_huge_reply_is_cut() -> None:
    assert len(read("x" * LONGEST + reply()).reason) < 100
    (candidate,) = read(reply() + "y" * 10_000_000)
    assert candidate.code == SCALE
