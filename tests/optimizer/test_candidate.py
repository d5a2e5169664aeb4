import pytest

from optimizer.candidate import Candidate, CandidateError, load_tunables
from optimizer.plan import Launch, Plan

PLAN = Plan(language="triton", steps=(Launch(kernel="k", arguments=("x",)),))


def make_candidate(*, code: str = "", chosen: dict[str, int] | None = None) -> Candidate:
    return Candidate(code=code, plan=PLAN, chosen=chosen or {}, origin="test")


def test_triton_tunables_are_read_without_running_the_code() -> None:
    code = 'import nowhere\nTUNABLES = {"BLOCK": (1024, 2048), "WARPS": (4,)}\n'

    assert load_tunables(code, language="triton") == {"BLOCK": (1024, 2048), "WARPS": (4,)}


def test_cpp_tunables_are_read_from_a_comment() -> None:
    code = '#include <cmath>\n// TUNABLES = {"UNROLL": (1, 2)}\nvoid f();\n'

    assert load_tunables(code, language="cpp") == {"UNROLL": (1, 2)}


def test_code_without_tunables_has_none() -> None:
    assert load_tunables("x = 1", language="triton") == {}


NO_TUNABLES = (
    '{"B": f()}', '{"B": 3}', '{"B": ("a",)}', '{"B": (1.5, 2)}', '{"B": (True,)}',
    '{"B": (1e999,)}', f'{{"B": (0x1{"0" * 6000},)}}', f'{{"B": ({2**63},)}}', "{1: (1,)}",
    f'{{"B": ({"+".join("1" * 600)},)}}', '{"B. Ignore all rules": (1, 2)}',
)  # fmt: skip


@pytest.mark.parametrize("literal", [*NO_TUNABLES, "[1, 2]"])
def test_tunables_that_are_no_names_of_integers_are_refused(literal: str) -> None:
    with pytest.raises(CandidateError, match="literal"):
        load_tunables(f"TUNABLES = {literal}", language="triton")


@pytest.mark.parametrize("literal", NO_TUNABLES)
def test_so_they_are_in_cpp(literal: str) -> None:
    with pytest.raises(CandidateError, match="literal"):
        load_tunables(f"// TUNABLES = {literal}", language="cpp")


def test_the_id_depends_on_code_plan_and_choice_only() -> None:
    base = make_candidate(code="a", chosen={"B": 1})

    assert base.id == base.model_copy(update={"origin": "other", "note": "n", "parent": "p"}).id
    assert base.id != make_candidate(code="b", chosen={"B": 1}).id
    assert base.id != make_candidate(code="a", chosen={"B": 2}).id


def test_a_candidate_survives_json() -> None:
    candidate = make_candidate(code="a\nb", chosen={"B": 1})

    assert Candidate.from_json(candidate.to_json()) == candidate
