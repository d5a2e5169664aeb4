"""What failures teach of the choices beside them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.outcome import Failed, Incorrect, Outcome, TimedOut
from operator_registry.registry import CATALOG, load_registry
from optimizer.candidate import Candidate, Choice
from optimizer.plan import Launch, Plan
from optimizer.propose.proposer import Attempt
from optimizer.propose.validity import Validity, learn, took_too_much
from tests.makers import make_passed

H200 = load_registry(CATALOG).hardware["h200"]
TUNABLES = {"BLOCK": (32, 64, 128), "STAGES": (1, 2, 4), "BAND": (1, 8), "WARPS": (1, 4, 64)}
PLAN = Plan(
    language="triton",
    let={"wide": "2 * BLOCK"},
    steps=(
        Launch(
            kernel="k",
            grid=("BAND",),
            arguments=("x",),
            constants={"WIDE": "wide"},
            warps="WARPS",
            stages="STAGES",
        ),
    ),
)
TOO_MUCH = Failed(stage="build", log="k wants 262144 bytes of shared memory, over 232448")


def make_attempt(outcome: Outcome, **chosen: int) -> Attempt:
    candidate = Candidate(code=f"TUNABLES = {TUNABLES}", plan=PLAN, chosen=chosen, origin="t")
    return Attempt(candidate, outcome, 0.0)


def learnt(*attempts: Attempt) -> Validity:
    return learn(PLAN, TUNABLES, attempts, H200)


def choice(block: int, stages: int, *, band: int = 1, warps: int = 4) -> Choice:
    return {"BLOCK": block, "STAGES": stages, "BAND": band, "WARPS": warps}


def test_what_is_nowhere_below_a_choice_that_took_too_much_takes_too_much() -> None:
    validity = learnt(make_attempt(TOO_MUCH, **choice(64, 2)))

    assert not validity.admits(choice(64, 2))
    assert not validity.admits(choice(128, 2))
    assert not validity.admits(choice(64, 4))
    assert validity.admits(choice(128, 1))
    assert validity.admits(choice(32, 4))


def test_warps_and_what_only_the_grid_depends_on_do_not_help() -> None:
    validity = learnt(make_attempt(TOO_MUCH, **choice(64, 2, band=8, warps=4)))

    assert not validity.admits(choice(64, 2, band=1, warps=1))


def test_one_that_passed_and_is_nowhere_below_shows_that_size_was_not_the_cause() -> None:
    validity = learnt(
        make_attempt(TOO_MUCH, **choice(64, 2)), make_attempt(make_passed(1.0), **choice(128, 4))
    )

    assert validity.admits(choice(128, 2))


@pytest.mark.parametrize(
    ("outcome", "counts"),
    [
        (TOO_MUCH, True),
        (Failed(stage="run", log="CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"), True),
        (
            Failed(stage="load", log="a kernel wants 3 bytes of shared memory, the device has 2"),
            True,
        ),
        (TimedOut(stage="build", deadline_s=120.0), True),
        (TimedOut(stage="run", deadline_s=5.0), False),
        (Failed(stage="screen", log="line 1: shared memory"), False),
        (Failed(stage="build", log="invalid syntax"), False),
        (Incorrect(reason="shared memory"), False),
        (make_passed(1.0), False),
    ],
)
def test_which_failures_tell_of_too_much(outcome: Outcome, *, counts: bool) -> None:
    assert took_too_much(outcome) == counts


def test_more_threads_than_a_block_may_have_are_never_proposed() -> None:
    assert not learnt().admits(choice(32, 1, warps=64))
    assert learnt().admits(choice(32, 1, warps=4))


def test_warps_that_depend_on_sizes_tell_nothing() -> None:
    step = PLAN.steps[0].model_copy(update={"warps": "cols // 32"})
    plan = PLAN.model_copy(update={"steps": (step,)})

    assert learn(plan, TUNABLES, (), H200).admits(choice(32, 1, warps=64))


@given(
    st.lists(st.tuples(st.sampled_from((32, 64, 128)), st.sampled_from((1, 2, 4)), st.booleans()))
)
def test_nothing_that_passed_is_ever_refused(tried: list[tuple[int, int, bool]]) -> None:
    attempts = [
        make_attempt(make_passed(1.0) if passed else TOO_MUCH, **choice(block, stages))
        for block, stages, passed in tried
    ]

    validity = learnt(*attempts)

    assert all(validity.admits(choice(block, stages)) for block, stages, ok in tried if ok)
