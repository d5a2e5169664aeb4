"""What every proposer keeps to."""

import atexit
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from time import monotonic, sleep

import pytest

from knowledge.outcome import Passed
from operator_registry.hardware import HardwareSpec
from operator_registry.registry import CATALOG, Operator, load_registry
from optimizer.binding import instances
from optimizer.candidate import Candidate, load_tunables
from optimizer.expression import names_in
from optimizer.plan import Launch
from optimizer.propose.caller import Caller
from optimizer.propose.directive import Director
from optimizer.propose.exchange import Journal
from optimizer.propose.model import Answered, ModelSettings, Question, Unanswered
from optimizer.propose.proposer import NodeContext, Proposer, ScriptedProposer
from optimizer.propose.purse import Purse
from optimizer.propose.synthesis.graph import Graph
from optimizer.propose.synthesis.make import capture_forms
from optimizer.propose.synthesis.proposer import SynthesisProposer
from optimizer.propose.tuner import Tuner
from optimizer.propose.writer import Writer

REGISTRY = load_registry(CATALOG)
OPERATOR: Operator = REGISTRY.operators["softmax"]
HARDWARE: dict[str, HardwareSpec] = {
    "cpp": REGISTRY.hardware["cpu-x86-64-v3"],
    "triton": REGISTRY.hardware["h200"],
}
Make = Callable[[list[Graph], str], tuple[Proposer, NodeContext]]


def synthesis(graphs: list[Graph], language: str) -> tuple[Proposer, NodeContext]:
    return SynthesisProposer(OPERATOR, graphs, HARDWARE[language]), NodeContext()


def refactoring(graphs: list[Graph], language: str) -> tuple[Proposer, NodeContext]:
    proposer = SynthesisProposer(OPERATOR, graphs, HARDWARE[language])
    return proposer, NodeContext(proposer.drafts[0], Passed(times=()), fitness=1.0)


def tuner(graphs: list[Graph], language: str) -> tuple[Proposer, NodeContext]:
    drafts = SynthesisProposer(OPERATOR, graphs, HARDWARE[language]).drafts
    return Tuner(), NodeContext(drafts[0], Passed(times=()), fitness=1.0)


def scripted(graphs: list[Graph], language: str) -> tuple[Proposer, NodeContext]:
    drafts = SynthesisProposer(OPERATOR, graphs, HARDWARE[language]).drafts
    return ScriptedProposer(drafts), NodeContext()


@dataclass
class Scripted:
    """A model that writes the same three kernels for ever, and picks the first move."""

    parent: Candidate
    said: int = 0

    def ask(self, question: Question, *, within_s: float) -> Answered | Unanswered:
        if question.form:
            return Answered(text='{"moves": [1]}')
        self.said += 1
        sign = "//" if self.parent.plan.language == "cpp" else "#"
        code = f"{self.parent.code}\n{sign} number {self.said % 3}"
        return Answered(text=f"I share the rows among threads.\n```\n{code}\n```")


def make_scripted_caller(parent: Candidate) -> Caller:
    settings = ModelSettings(url="http://127.0.0.1:9/v1", name="scripted")
    journal = Journal(Path(mkdtemp(prefix="exchanges-")))
    atexit.register(rmtree, journal.folder)
    return Caller(Scripted(parent), settings, journal, Purse(settings), sleep, monotonic)


def writer(graphs: list[Graph], language: str) -> tuple[Proposer, NodeContext]:
    parent = SynthesisProposer(OPERATOR, graphs, HARDWARE[language]).drafts[0]
    caller = make_scripted_caller(parent)
    node = NodeContext(parent, Passed(times=()), fitness=1.0)
    return Writer(OPERATOR, HARDWARE[language], caller), node


def director(graphs: list[Graph], language: str) -> tuple[Proposer, NodeContext]:
    synthesis = SynthesisProposer(OPERATOR, graphs, HARDWARE[language])
    caller = make_scripted_caller(synthesis.drafts[0])
    return Director(OPERATOR, HARDWARE[language], caller, (synthesis, Tuner())), NodeContext()


PROPOSERS: dict[str, Make] = {
    "synthesis": synthesis,
    "refactoring": refactoring,
    "tuner": tuner,
    "scripted": scripted,
    "writer": writer,
    "director": director,
}


@pytest.fixture(scope="module")
def graphs() -> list[Graph]:
    return capture_forms(OPERATOR)[0]


@pytest.fixture(params=PROPOSERS)
def make(request: pytest.FixtureRequest) -> Make:
    return PROPOSERS[request.param]


def exhaust(proposer: Proposer, node: NodeContext, count: int = 3) -> list[Candidate]:
    """Return all that a proposer offers for a node, batch by batch, as a search would ask."""
    offered: list[Candidate] = []
    for _ in range(200):
        tried = frozenset(candidate.id for candidate in offered)
        batch = proposer.propose(
            NodeContext(node.candidate, node.outcome, node.fitness, tried), count
        )
        if not batch:
            return offered
        offered += batch
    pytest.fail("the proposer does not end")


@pytest.mark.parametrize("count", [0, 1, 2, 100])
def test_no_more_come_than_were_asked_for(make: Make, graphs: list[Graph], count: int) -> None:
    proposer, node = make(graphs, "cpp")

    assert len(proposer.propose(node, count)) <= count


@pytest.mark.parametrize("language", HARDWARE)
def test_nothing_comes_twice_and_it_ends(make: Make, graphs: list[Graph], language: str) -> None:
    proposer, node = make(graphs, language)

    offered = exhaust(proposer, node)

    assert offered
    assert len({candidate.id for candidate in offered}) == len(offered)


@pytest.mark.parametrize("language", HARDWARE)
def test_what_was_tried_is_not_offered_again(
    make: Make, graphs: list[Graph], language: str
) -> None:
    proposer, node = make(graphs, language)
    tried = frozenset(candidate.id for candidate in exhaust(proposer, node))

    assert not proposer.propose(NodeContext(node.candidate, node.outcome, node.fitness, tried), 10)


@pytest.mark.parametrize("language", HARDWARE)
def test_choices_are_among_the_tunables_that_the_code_states(
    make: Make, graphs: list[Graph], language: str
) -> None:
    for candidate in exhaust(*make(graphs, language)):
        tunables = load_tunables(candidate.code, language=language)

        assert candidate.chosen.keys() == tunables.keys()
        assert all(candidate.chosen[name] in values for name, values in tunables.items())


@pytest.mark.parametrize("language", HARDWARE)
def test_plans_resolve_at_the_public_sizes(make: Make, graphs: list[Graph], language: str) -> None:
    for candidate in exhaust(*make(graphs, language)):
        for workload in OPERATOR.spec.workloads:
            found = instances(
                OPERATOR.spec,
                candidate.plan,
                candidate.chosen,
                sizes=workload.sizes,
                dtypes=workload.dtypes,
                attributes=workload.attributes,
            )
            assert found


@pytest.mark.parametrize("language", HARDWARE)
def test_all_names_in_a_plan_are_known(make: Make, graphs: list[Graph], language: str) -> None:
    spec = OPERATOR.spec
    for candidate in exhaust(*make(graphs, language)):
        plan = candidate.plan
        known = {*spec.axes, *spec.attributes, *spec.inputs, *spec.outputs}
        known |= {*plan.let, *plan.buffers, *candidate.chosen}
        for step in plan.steps:
            assert isinstance(step, Launch)
            texts = (*step.grid, *step.arguments, *step.constants.values(), step.when or "1")
            assert frozenset().union(*map(names_in, texts)) <= known


def test_children_name_their_parent(graphs: list[Graph]) -> None:
    for make in (tuner, refactoring):
        proposer, node = make(graphs, "cpp")

        for child in exhaust(proposer, node):
            assert node.candidate
            assert child.parent == node.candidate.id
