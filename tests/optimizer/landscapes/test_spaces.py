"""The spaces that are recorded: large enough, and made of candidates that may run."""

import random

import pytest

from operator_registry.hardware import HardwareSpec
from operator_registry.registry import CATALOG, load_registry
from optimizer.candidate import load_tunables
from optimizer.evaluate.screen import find_fault
from optimizer.landscapes.space import Space
from optimizer.landscapes.spaces import _DEVICE_DRAFTS, HELD_OUT, SPACES
from optimizer.landscapes.widening import widened
from tests.optimizer.propose.trial import catalogue, drafts_of

HARDWARE = load_registry(CATALOG).hardware
DRAFTS = {drafts.name for drafts in _DEVICE_DRAFTS}
WRITTEN = [
    (hardware, name)
    for target, hardware in (("cuda", "h200"), ("cpu", "cpu-x86-64-v3"))
    for name in SPACES[target]  # type: ignore[index]
    if name not in DRAFTS
]


def make(hardware: str, name: str) -> tuple[Space, HardwareSpec]:
    spec = HARDWARE[hardware]
    return SPACES[spec.target][name](spec), spec


@pytest.mark.parametrize(("hardware", "name"), WRITTEN)
def test_a_written_space_has_500_points_that_may_be_built(hardware: str, name: str) -> None:
    space, spec = make(hardware, name)

    candidates = space.candidates()

    assert space.name == name
    assert space.size == len(candidates) >= 500
    assert len(space.operator.spec.workloads) == 1
    some = random.Random(0).sample(candidates, 20)  # noqa: S311 - no secret
    assert len({candidate.id for candidate in some}) == 20
    assert [find_fault(candidate, spec) for candidate in some] == [None] * 20


@pytest.mark.drill
@pytest.mark.parametrize("name", sorted(DRAFTS))
def test_a_space_of_drafts_has_500_points_that_may_be_built(name: str) -> None:
    space, spec = make("h200", name)

    assert space.size >= 500
    for structure in space.structures:
        chosen = random.Random(0).choice(list(structure.choices()))  # noqa: S311 - no secret
        assert find_fault(structure.candidate(chosen), spec) is None
    assert sum(len(s.to_json()) for s in space.structures) < 45_000


def test_there_are_more_spaces_than_are_wanted_and_two_are_held_out() -> None:
    names = [name for spaces in SPACES.values() for name in spaces]

    assert len(names) == len(set(names)) >= 16
    assert set(HELD_OUT) <= set(names)
    assert len(HELD_OUT) == 2


@pytest.mark.parametrize("language", ["cpp", "triton"])
def test_a_draft_is_widened_at_both_ends_of_each_tunable(language: str) -> None:
    draft = drafts_of(catalogue()["rms_norm"], language)[-1]
    before = load_tunables(draft.code, language=language)

    code = widened(draft, by=1)

    after = load_tunables(code, language=language)
    assert after.keys() == before.keys()
    for name, values in after.items():
        assert values[-len(before[name]) - 1 : -1] == before[name] or set(before[name]) < {*values}
        assert values == tuple(sorted(values))
    assert len(code.splitlines()) <= len(draft.code.splitlines())
