"""The neighbours that the tuner visits, and in which order."""

from hypothesis import given
from hypothesis import strategies as st

from knowledge.outcome import Failed
from optimizer.candidate import Candidate
from optimizer.plan import Launch, Plan
from optimizer.propose.proposer import Attempt, NodeContext
from optimizer.propose.tuner import Tuner, mixtures, neighbours
from tests.makers import make_passed

TUNABLES = {"BLOCK": (64, 128, 256), "WARPS": (1, 2, 4)}
PLAN = Plan(language="triton", steps=(Launch(kernel="k", arguments=("x",)),))


def candidate(**chosen: int) -> Candidate:
    return Candidate(code=f"TUNABLES = {TUNABLES}\n", plan=PLAN, chosen=chosen, origin="test")


def test_one_tunable_moves_to_a_neighbouring_value_first() -> None:
    moves = list(neighbours(TUNABLES, {"BLOCK": 128, "WARPS": 1}))

    assert moves[:4] == [
        {"BLOCK": 256, "WARPS": 1},
        {"BLOCK": 128, "WARPS": 2},
        {"BLOCK": 64, "WARPS": 1},
        {"BLOCK": 128, "WARPS": 4},
    ]


def test_two_tunables_move_at_once_only_when_single_moves_are_done() -> None:
    moves = list(neighbours(TUNABLES, {"BLOCK": 128, "WARPS": 1}))

    changed = [sum(m[name] != {"BLOCK": 128, "WARPS": 1}[name] for name in m) for m in moves]
    assert changed == sorted(changed)
    assert changed.count(2) == 4


def test_the_root_and_code_without_tunables_have_no_neighbours() -> None:
    plain = Candidate(code="x = 1\n", plan=PLAN, origin="test")

    assert not Tuner().propose(NodeContext(), 5)
    assert not Tuner().propose(NodeContext(plain), 5)


def test_a_child_says_what_was_changed() -> None:
    parent = candidate(BLOCK=128, WARPS=1)

    (child,) = Tuner().propose(NodeContext(parent), 1)

    assert child.note == "BLOCK 128 -> 256"
    assert (child.parent, child.origin) == (parent.id, "tuner")


def test_what_a_sibling_showed_to_be_too_much_is_not_proposed() -> None:
    plan = PLAN.model_copy(
        update={"steps": (PLAN.steps[0].model_copy(update={"constants": {"BLOCK": "BLOCK"}}),)}
    )
    parent, sibling = (
        candidate(BLOCK=block, WARPS=1).model_copy(update={"plan": plan}) for block in (64, 128)
    )
    too_much = Failed(stage="build", log="k wants 9 bytes of shared memory, over 8")
    node = NodeContext(parent, make_passed(1.0), 1.0, history=[Attempt(sibling, too_much, 0.0)])

    children = Tuner().propose(node, 99)

    assert children
    assert {child.chosen["BLOCK"] for child in children} == {64}


def test_two_of_one_source_are_crossed() -> None:
    one, other = candidate(BLOCK=64, WARPS=1), candidate(BLOCK=256, WARPS=4)
    node = NodeContext(one, make_passed(1.0), 1.0, mate=Attempt(other, make_passed(2.0), 0.5))

    children = Tuner().propose(node, 99)

    assert {(child.parent, child.mate) for child in children} == {(one.id, other.id)}
    assert sorted(tuple(child.chosen.values()) for child in children) == [(64, 4), (256, 1)]


def test_two_of_different_sources_are_not_crossed() -> None:
    one = candidate(BLOCK=64, WARPS=1)
    other = one.model_copy(update={"code": "TUNABLES = {}\n"})

    assert not Tuner().propose(NodeContext(one, mate=Attempt(other, make_passed(1.0), 1.0)), 9)


@given(st.integers(0, 1 << 32))
def test_a_seed_decides_the_mixtures(seed: int) -> None:
    one, other = {"A": 1, "B": 2, "C": 3, "D": 4}, {"A": 5, "B": 6, "C": 7, "D": 8}

    found = list(mixtures(one, other, seed=seed))

    assert found == list(mixtures(one, other, seed=seed))
    assert one not in found
    assert other not in found
    assert all(mixed[name] in (one[name], other[name]) for mixed in found for name in mixed)


@given(
    st.dictionaries(
        st.sampled_from(("A", "B", "C", "D")),
        st.lists(st.integers(1, 64), min_size=1, max_size=5, unique=True).map(tuple),
        max_size=4,
    ),
    st.randoms(use_true_random=False),
)
def test_no_choice_comes_twice_and_none_is_the_given_one(
    tunables: dict[str, tuple[int, ...]], random: st.DataObject
) -> None:
    chosen = {name: random.choice(values) for name, values in tunables.items()}  # type: ignore[attr-defined]

    moves = [tuple(move.items()) for move in neighbours(tunables, chosen)]

    assert len(set(moves)) == len(moves)
    assert tuple(chosen.items()) not in moves
    assert all(value in tunables[name] for move in moves for name, value in move)
