"""A model is told the kind of a failure, and nothing that the judge drew."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.outcome import (
    Cheated,
    Counterexample,
    Failed,
    Incorrect,
    Outcome,
    Passed,
    TimedOut,
)
from optimizer.propose.telling import tell, tell_shortly
from tests.makers import HARDWARE, OPERATOR, make_candidate, make_passed

CANDIDATE = make_candidate("one", BLOCK=8)
SECRETS = st.integers(10_000, 2**62)
"""Sizes, seeds and values; smaller numbers may stand in the spec as well."""


def told(outcome: Outcome) -> str:
    return tell(outcome, CANDIDATE, OPERATOR, HARDWARE)


def example(secret: int, **changes: object) -> Counterexample:
    given = {
        "output": "y",
        "index": (secret,),
        "got": str(secret),
        "wanted": f"{secret}.5",
        "sizes": {"rows": secret},
        "dtypes": {"T": "float32"},
        "attributes": {"factor": float(secret)},
        "seed": secret,
        **changes,
    }
    return Counterexample.model_validate(given)


def outcomes_with(secret: int) -> list[Outcome]:
    """One of each kind with the secret wherever the judge or a candidate can put it."""
    text = f"of {secret} or 0x{secret:x}, rows={secret}, [{secret}] x{secret}"
    return [
        Incorrect(reason=f"y: the error's max-norm is {secret}e-3, allowed is {secret}"),
        Incorrect(reason=f"y has the shape ({secret}, 3), wanted (3, {secret})"),
        Incorrect(reason=text, counterexample=example(secret)),
        *(Failed(stage=s, log=f"Error: {text}") for s in ("screen", "build", "load", "run")),
        Cheated(guard="probe", detail=text),
        TimedOut(stage="run", deadline_s=2),
    ]


@given(SECRETS)
def test_no_drawn_size_seed_or_value_is_told(secret: int) -> None:
    for outcome in outcomes_with(secret):
        for text in (told(outcome), tell_shortly(outcome, 0.0)):
            assert str(secret) not in text
            assert f"{secret:x}" not in re.sub(r"\[(data|end) \w+", "", text)


@given(st.text(min_size=1))
def test_any_log_can_be_told(log: str) -> None:
    for stage in ("screen", "build", "run"):
        assert told(Failed.model_validate({"stage": stage, "log": log}))


def test_what_a_candidate_says_while_it_runs_is_not_told() -> None:
    """It saw the drawn sizes, and could put them in words."""
    text = told(Failed(stage="run", log="ValueError: rows are four hundred and seven"))

    assert "four" not in text
    assert "raised an error" in text


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("ended by SIGSEGV", "segmentation fault"),
        ("CUDA error: an illegal memory access was encountered", "illegal memory access"),
        ("ended by SIGFPE", "division by zero"),
        ("std::bad_alloc", "out of device memory"),
        ("exited with code 3", "its process ended"),
    ],
)
def test_a_crash_is_told_by_its_kind(log: str, words: str) -> None:
    assert words in told(Failed(stage="run", log=log))


def test_a_compilers_message_keeps_its_place_and_its_words() -> None:
    log = "variant_3.cpp:12:5: error: 'foo77' was not declared; did you mean 'float32'? KERNEL_9f"

    text = told(Failed(stage="build", log=log))

    assert "line 12: error: 'foo##' was not declared; did you mean 'float32'? KERNEL_#f" in text


def test_numbers_that_stand_in_the_candidate_are_shown() -> None:
    text = told(Failed(stage="screen", log="BLOCK = 8 is not among 64, 1024 or 1023"))

    assert "BLOCK = # is not among 64, 1024 or #" in text


def test_a_disagreement_is_told_by_its_kind() -> None:
    wrong = Incorrect(
        reason="y: is not finite where it must be, or finite where it must not be",
        counterexample=example(77_777, got="nan", wanted="0.25", distribution="hostile"),
    )

    lines = told(wrong).splitlines()

    assert "it is not finite where it must be" in lines[0]
    assert lines[1:] == [
        "- output: y",
        "- where: at a size that the judge drew",
        "- dtypes: T=float32",
        "- values: hostile",
        "- kind: NaN where another number is wanted",
    ]


def test_a_public_size_is_named() -> None:
    wrong = Incorrect(reason="y: x", counterexample=example(1, sizes={"rows": 1024}, got="0"))

    assert "- where: workload w1" in told(wrong)
    assert "- kind: zero where" in told(wrong)


def test_times_stand_beside_the_best_peer_and_the_roofline() -> None:
    text = told(make_passed(0.5, 2.0))

    assert "- w0: 0.5, best peer 1 (reference/eager), ratio 2.00; DRAM alone takes" in text
    assert "- w1: 2, best peer 1 (reference/eager), ratio 0.50" in text


def test_a_candidate_that_was_only_checked_says_so() -> None:
    assert "no device here" in told(Passed(times=()))
    assert "only calls the library" in told(
        make_passed(1.0).model_copy(update={"library_only": True})
    )


def test_a_guard_is_named_and_not_what_it_saw() -> None:
    text = told(Cheated(guard="late work", detail="a thread was busy after 3 ms"))

    assert "late work" in text
    assert "thread" not in text
