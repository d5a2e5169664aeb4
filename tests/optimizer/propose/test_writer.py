"""A model that writes kernels, and one that picks among ours, with a server on loopback."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from knowledge.document import Document
from knowledge.outcome import Failed
from optimizer.errors import ProposalError
from optimizer.propose.caller import Caller
from optimizer.propose.directive import Director, make_form, read_picks
from optimizer.propose.exchange import Journal, ReplayedModel
from optimizer.propose.gauge import Gauge, weigh
from optimizer.propose.llm import Endpoint
from optimizer.propose.model import ModelSettings
from optimizer.propose.proposer import Attempt, NodeContext, Repairer, Spender
from optimizer.propose.purse import Purse
from optimizer.propose.tuner import Tuner
from optimizer.propose.writer import Writer
from optimizer.spending import Allowance, Spending
from tests.makers import HARDWARE, OPERATOR, SCALE, make_candidate, make_passed
from tests.model_server import Act, Deed, ModelServer, Refuses, Says, serving

PLAN = make_candidate("x").plan
Made = tuple[Caller, ModelServer]
Make = Callable[..., Made]


def no_wait(_seconds: float) -> None:
    """Wait for nothing."""


def kernel(name: str) -> Says:
    plan = json.dumps({"plan": json.loads(PLAN.to_json())})
    return Says(f"I {name}.\n```cpp\n// {name}\n{SCALE}```\n```json\n{plan}\n```", usage=(900, 90))


def kernels(number: int, _body: dict[str, Any]) -> Deed:
    return kernel(f"kernel{number}")


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    with ExitStack() as stack:

        def caller(act: Act, **settings: object) -> Made:
            server = stack.enter_context(serving(act))
            made = ModelSettings.model_validate({"url": server.url, "name": "tiny", **settings})
            endpoint, purse = Endpoint(made), Purse(made)
            journal = Journal(tmp_path / "exchanges")
            return Caller(endpoint, made, journal, purse, no_wait, time.monotonic), server

        yield caller


def make_writer(caller: Caller) -> Writer:
    return Writer(OPERATOR, HARDWARE, caller)


PARENT = make_candidate("parent")
NODE = NodeContext(candidate=PARENT, outcome=make_passed(0.5), fitness=2.0)


def test_a_kernel_is_credited_to_the_model(make: Make) -> None:
    caller, server = make(kernels)
    writer = make_writer(caller)

    (child,) = writer.propose(NODE, 1)

    assert (child.origin, child.parent, child.note) == ("tiny", PARENT.id, "I kernel1.")
    assert "// parent" in server.prompts[0]
    assert isinstance(writer, Spender)
    assert isinstance(writer, Repairer)
    assert writer.name == child.origin
    assert writer.take_spending() == Spending(tokens=990)
    assert writer.take_spending() == Spending()


def test_several_are_asked_for_at_once_and_differ(make: Make) -> None:
    caller, server = make(kernels, at_once=3)

    batch = make_writer(caller).propose(NodeContext(seed=5), 10)

    assert len({candidate.id for candidate in batch}) == 3
    assert len({server.prompts[n] for n in range(3)}) == 3
    assert {body["seed"] for body in server.asked} == {5, 6, 7}


@pytest.mark.parametrize(
    ("first", "told"),
    [
        (Says("I'm lazy."), "no block with code"),
        (Says("```cpp\nhalf", finish="length"), "cut off"),
        (Says(f"```cpp\n#include <fstream>\n{SCALE}```"), "no plan"),
    ],
)
def test_a_reply_that_can_not_be_used_is_asked_for_again(
    make: Make, first: Says, told: str
) -> None:
    caller, server = make(lambda n, _: first if n == 1 else kernel("second"))
    writer = make_writer(caller)

    (child,) = writer.propose(NodeContext(), 1)

    assert child.note == "I second."
    roles = [message["role"] for message in server.asked[1]["messages"]]
    assert roles == ["system", "user", "assistant", "user"]
    assert told in server.asked[1]["messages"][3]["content"]
    assert writer.counts == {"made": 1, "repaired": 1, "failed": 0}


def test_it_is_asked_for_again_once_only_and_then_counts_as_failed(make: Make) -> None:
    caller, server = make(lambda _n, _b: Says("I'm lazy."))
    writer = make_writer(caller)

    with pytest.raises(ProposalError, match="tiny: the reply holds no block"):
        writer.propose(NodeContext(), 1)

    assert len(server.asked) == 2
    assert writer.counts["failed"] == 1


def test_what_was_tried_is_not_offered_again(make: Make) -> None:
    caller, _ = make(lambda _n, _b: kernel("same"))
    writer = make_writer(caller)
    (first,) = writer.propose(NODE, 1)

    again = writer.propose(NodeContext(candidate=PARENT, tried={first.id}), 1)

    assert again == ()
    assert writer.counts["repeated"] == 1


def test_a_model_that_is_away_is_a_proposal_error(make: Make) -> None:
    caller, _ = make(lambda _n, _b: Refuses(401))

    with pytest.raises(ProposalError, match="no answer: refused"):
        make_writer(caller).propose(NodeContext(), 1)


def test_nothing_is_asked_when_nothing_is_left(make: Make) -> None:
    caller, server = make(kernels)

    assert make_writer(caller).propose(NodeContext(left=Allowance(tokens=1000)), 3) == ()
    assert server.asked == []


def test_a_cap_holds_within_one_call(make: Make) -> None:
    caller, server = make(kernels)
    writer = make_writer(caller)
    left = 24_000

    for seed in range(40):
        with suppress(ProposalError):  # nothing fits into what is left
            writer.propose(NodeContext(left=Allowance(tokens=left), seed=seed), 2)
        left -= writer.take_spending().tokens

    assert left >= 0
    assert 4 <= len(server.asked) <= 24_000 / 990


def test_prompts_become_shorter_towards_a_cap(make: Make) -> None:
    """What is known is left out, so that the last questions can still be paid for."""
    caller, server = make(kernels, at_once=1)
    writer = make_writer(caller)

    writer.propose(NodeContext(left=Allowance(tokens=200_000)), 1)
    writer.propose(NodeContext(left=Allowance(tokens=4_000)), 1)

    first, last = server.prompts
    assert "# What is known" in first
    assert len(last) < len(first) / 2
    assert "# Operator scale" in last


def test_a_search_that_is_told_again_makes_the_same_candidates(make: Make, tmp_path: Path) -> None:
    """From the journal, without a network: what went wrong goes wrong again."""
    deeds: list[Deed] = [
        kernel("a"), Refuses(500), kernel("b"), Says("lazy"), kernel("c"), kernel("a")
    ]  # fmt: skip
    caller, _ = make(lambda n, _: deeds[n - 1], at_once=1)
    nodes = [NodeContext(seed=n) for n in range(4)]
    original = [make_writer(caller).propose(node, 1) for node in nodes]
    spent = caller.purse.spent

    settings = caller.settings.model_copy(update={"url": "http://127.0.0.1:9/v1"})
    again = Caller(
        ReplayedModel(caller.journal),
        settings,
        Journal(tmp_path / "again"),
        Purse(settings),
        no_wait,
        time.monotonic,
    )
    told = [make_writer(again).propose(node, 1) for node in nodes]

    assert told == original
    assert [len(batch) for batch in original] == [1, 1, 1, 1]
    assert again.purse.spent == spent


TUNED = make_candidate("tuned").model_copy(
    update={
        "code": f'// TUNABLES = {{"GRAIN": (4, 8, 16, 32)}}\n{SCALE}',
        "chosen": {"GRAIN": 8},
    }
)
TUNED_NODE = NodeContext(candidate=TUNED, outcome=make_passed(0.5), fitness=2.0)


def make_director(caller: Caller) -> Director:
    return Director(OPERATOR, HARDWARE, caller, (Tuner(),))


def picks(*numbers: int) -> Says:
    return Says(json.dumps({"moves": numbers}), usage=(300, 8))


def test_the_model_picks_among_the_moves_of_ours(make: Make) -> None:
    caller, server = make(lambda _n, _b: picks(3, 1))
    director = make_director(caller)
    moves = list(Tuner().propose(TUNED_NODE, 16))

    chosen = director.propose(TUNED_NODE, 2)

    assert [c.id for c in chosen] == [moves[2].id, moves[0].id]
    assert {c.origin for c in chosen} == {director.name} == {"tiny (picks)"}
    assert chosen[0].note == f"picked: tuner: {moves[2].note}"
    assert f"3. tuner: {moves[2].note}" in server.prompts[0]
    assert director.take_spending() == Spending(tokens=308)


def test_the_answer_is_held_to_a_schema(make: Make) -> None:
    caller, server = make(lambda _n, _b: picks(1))

    make_director(caller).propose(TUNED_NODE, 1)

    (body,) = server.asked
    schema = body["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["moves"]["items"]["enum"] == [1, 2, 3]
    assert body["max_tokens"] < 200


def test_an_endpoint_without_schemas_is_asked_in_words(make: Make) -> None:
    def act(_number: int, body: dict[str, Any]) -> Deed:
        return Refuses(400) if "response_format" in body else Says("The best is number 2!")

    caller, server = make(act)

    (chosen,) = make_director(caller).propose(TUNED_NODE, 1)

    assert chosen.id == Tuner().propose(TUNED_NODE, 3)[1].id
    assert "Reply with JSON alone" in server.prompts[-1]


@pytest.mark.parametrize(
    "text",
    ['{"moves": [4]}', '{"moves": []}', '{"moves": "all"}', '{"moves": [1, 99]}',
     '{"moves": [true]}', '{"moves": [1', "", "no"],
)  # fmt: skip
def test_an_answer_outside_the_list_counts_as_failed(make: Make, text: str) -> None:
    caller, _ = make(lambda _n, _b: Says(text))
    director = make_director(caller)

    with pytest.raises(ProposalError, match="names no move"):
        director.propose(TUNED_NODE, 1)

    assert director.counts["failed"] == 1


def test_nobody_is_asked_where_there_is_nothing_to_pick(make: Make) -> None:
    caller, server = make(lambda _n, _b: picks(1))
    moves = Tuner().propose(TUNED_NODE, 16)
    tried = frozenset(move.id for move in moves[1:])
    director = make_director(caller)

    (only,) = director.propose(NodeContext(candidate=TUNED, tried=tried), 2)

    assert only.id == moves[0].id
    assert director.propose(NodeContext(), 2) == ()
    assert server.asked == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"moves": [2, 2, 1]}', (2, 1)),
        ('```json\n{"moves": 3}\n```', (3,)),
        ("I'd take 1.", (1,)),
        ("I'd take 1 and 3", (1, 3)),
        ("float32 at 1.5", ()),
        ('{"moves": [1, 2, 3]}', (1, 2)),
    ],
)
def test_picks_are_read(text: str, found: tuple[int, ...]) -> None:
    assert read_picks(text, moves=3, most=2) == found


def test_a_form_is_json() -> None:
    assert json.loads(make_form(3, 2))["required"] == ["moves"]


def test_a_failure_of_the_parent_reaches_the_model(make: Make) -> None:
    caller, server = make(kernels)
    node = NodeContext(candidate=PARENT, outcome=Failed(stage="build", log="x.cpp:2:1: error: ;"))

    make_writer(caller).propose(node, 1)

    assert "line 2: error: ;" in server.prompts[0]


@pytest.mark.parametrize("lines", [0, 3, 5000])
def test_a_question_that_is_put_again_keeps_to_the_budget(make: Make, lines: int) -> None:
    """However long the reply was that went wrong."""
    lazy = Says("I am lazy.\n" * lines, usage=None)
    caller, server = make(lambda n, _: kernel("second") if n == 2 else lazy, prompt_tokens=2200)

    make_writer(caller).propose(NodeContext(), 1)

    assert len(server.prompts) == 2
    assert max(Gauge().estimate(weigh(prompt)) for prompt in server.prompts) <= 2200


def test_a_child_of_two_names_both(make: Make) -> None:
    caller, server = make(kernels)
    mate = Attempt(make_candidate("mate"), make_passed(0.4), 2.5)

    (child,) = make_writer(caller).propose(NodeContext(candidate=PARENT, mate=mate), 1)

    assert (child.parent, child.mate) == (PARENT.id, mate.candidate.id)
    assert "// mate" in server.prompts[0]
    assert "both kernels" in server.prompts[0]


@pytest.mark.parametrize("name", ["synthesis", "Tuner ", "person"])
def test_a_model_can_not_pass_for_this_program(name: str) -> None:
    with pytest.raises(ValidationError, match="a proposer of this program"):
        ModelSettings(url="http://127.0.0.1:9/v1", name=name)


def test_documents_of_the_library_come_with_the_question(make: Make) -> None:
    """Those that answer to the failure; of one that was chosen for the node, that one alone."""
    caller, server = make(kernels)
    writer = make_writer(caller)
    slow = Failed(stage="run", log="ended by SIGSEGV")
    own = Document(name="d", title="Mine", text="Use huge pages.")

    writer.propose(NodeContext(candidate=PARENT, outcome=slow), 1)
    writer.propose(NodeContext(candidate=PARENT, outcome=slow, documents=[own]), 1)

    found, chosen = server.prompts
    assert "# What is known" in found
    assert "memory" in found.partition("# What is known")[2]
    assert chosen.partition("# What is known")[2].count("[data") == 1
