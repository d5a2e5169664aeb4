"""The catalogue's operators in both languages, at the sizes at which kernels break."""

from functools import cache
from pathlib import Path

import pytest

from operator_registry.registry import Operator
from optimizer.candidate import Candidate, load_tunables
from optimizer.evaluate.screen import find_fault
from optimizer.targets import make_target
from optimizer.targets.target import Artefact, Build
from tests.optimizer.propose.trial import (
    Call,
    built,
    catalogue,
    drafts_of,
    hardware,
    interpreted,
)

ROWS = ({"rows": 5, "cols": 37}, {"rows": 0, "cols": 8}, {"rows": 1, "cols": 1})
IDS = ({"batch": 37, "entries": 50}, {"batch": 0, "entries": 1}, {"batch": 9, "entries": 1})
JAGGED = ({"features": 3, "users": 4}, {"features": 1, "users": 0}, {"features": 2, "users": 1})
SIZES = {
    "rms_norm": ROWS,
    "softmax": ROWS,
    "gelu_bias": ROWS,
    "map_id": IDS,
    "batch_event_truncate": JAGGED,
}
LONG = {"rms_norm": {"rows": 2, "cols": 2500}, "softmax": {"rows": 2, "cols": 2500}}


@cache
def made(name: str, language: str) -> tuple[Candidate, ...]:
    """Return the drafts from an operator's reference."""
    return drafts_of(catalogue()[name], language)


def calls(operator: Operator, *, more: bool = False) -> list[Call]:
    bindings = [{"T": dtype} for dtype in operator.spec.dtypes.get("T", ())] or [{}]
    several = (*SIZES[operator.name], *([LONG[operator.name]] if more else ()))
    return [Call(operator, sizes, binding) for sizes in several for binding in bindings]


@pytest.mark.parametrize("name", SIZES)
def test_every_cpp_draft_is_right(name: str, tmp_path: Path) -> None:
    operator = catalogue()[name]
    drafts = made(name, "cpp")
    several = calls(operator, more=name in LONG)

    tables = built([(draft, several) for draft in drafts], tmp_path)

    for draft, kernels in zip(drafts, tables, strict=True):
        for call in several:
            call.check(draft, kernels)


@pytest.mark.parametrize("name", SIZES)
def test_every_triton_draft_is_right_in_the_interpreter(name: str) -> None:
    operator = catalogue()[name]

    for draft in made(name, "triton"):
        for call in calls(operator, more=name in LONG):
            call.check(draft, interpreted(draft))


@pytest.mark.parametrize("name", SIZES)
def test_every_triton_draft_compiles_for_the_device(name: str, tmp_path: Path) -> None:
    operator = catalogue()[name]
    drafts = made(name, "triton")
    call = calls(operator)[-1]
    builds = [Build(code=d.code, instances=call.instances(d)) for d in drafts]

    artefacts = make_target(hardware("triton")).build(
        builds, [tmp_path / str(place) for place in range(len(builds))]
    )

    for artefact in artefacts:
        assert isinstance(artefact, Artefact), artefact
        assert all(compiled.spill_bytes in {0, None} for compiled in artefact.compiled)


@pytest.mark.parametrize("attribute", [0, 3, 1000])
@pytest.mark.parametrize("language", ["cpp", "triton"])
def test_events_are_truncated_by_the_calls_own_limit(
    language: str, attribute: int, tmp_path: Path
) -> None:
    operator = catalogue()["batch_event_truncate"]
    (draft,) = made(operator.name, language)
    call = Call(operator, SIZES[operator.name][0], {"T": "int64"}, {"max_events": attribute})

    kernels = interpreted(draft) if language == "triton" else built([(draft, [call])], tmp_path)[0]

    call.check(draft, kernels)


@pytest.mark.parametrize("form", ["fused", "explicit", "sigmoid_form", "by_searchsorted"])
def test_equivalents_are_captured_as_well(form: str) -> None:
    operator = next(o for o in catalogue().values() if form in o.spec.equivalents)

    drafts = drafts_of(operator, "cpp", form)

    assert all(form in draft.note for draft in drafts)


@pytest.mark.parametrize("language", ["cpp", "triton"])
@pytest.mark.parametrize("name", SIZES)
def test_drafts_pass_the_screen_and_choose_among_their_tunables(name: str, language: str) -> None:
    for draft in made(name, language):
        tunables = load_tunables(draft.code, language=language)

        assert find_fault(draft, hardware(language)) is None
        assert all(draft.chosen[n] in values for n, values in tunables.items())


@pytest.mark.parametrize("language", ["cpp", "triton"])
def test_code_is_the_same_on_every_run(language: str) -> None:
    operator = catalogue()["batch_event_truncate"]

    once, again = (drafts_of(operator, language) for _ in range(2))

    assert [d.id for d in once] == [d.id for d in again]


@pytest.mark.parametrize("name", SIZES)
def test_code_has_lines_that_a_person_can_read(name: str) -> None:
    for language in ("cpp", "triton"):
        for draft in made(name, language):
            assert max(map(len, draft.code.splitlines())) <= 120
            assert draft.code.count("\n") < 250
