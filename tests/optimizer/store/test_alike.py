from optimizer.store import Confirmation, Store
from tests.makers import OPERATOR, make_candidate, make_evidence

LIKE, OTHER = "1" * 64, "2" * 64


def prove(store: Store, name: str, *, likeness: str, hardware: str = "cpu", now: float = 1) -> None:
    """Have a candidate of an operator's name go through a confirming run."""
    spec = OPERATOR.spec.model_copy(update={"name": name})
    operator = OPERATOR.model_copy(update={"spec": spec})
    store.keep_operator(operator, likeness=likeness)
    search = store.open_search(
        f"{name} on {hardware}",
        operator=name,
        hardware=hardware,
        operator_digest=operator.digest,
        now=0,
    )
    candidate = make_candidate(f"{name} on {hardware}")
    proof = Confirmation(
        number=1, candidate=candidate.id, alpha=0.1, result=make_evidence(candidate), spent_s=1
    )
    store.record_confirmation(search, candidate, proof, now=now)


def test_evidence_is_found_by_the_operators_name_or_form_on_the_same_hardware(store: Store) -> None:
    prove(store, "mine", likeness=OTHER, now=1)
    prove(store, "alike", likeness=LIKE, now=2)
    prove(store, "another", likeness=OTHER, now=3)
    prove(store, "alike", likeness=LIKE, hardware="h200", now=4)
    prove(store, "too_late", likeness=LIKE, now=10)
    search = store.open_search(
        "new", operator="mine", hardware="cpu", operator_digest="0" * 64, now=10
    )

    found = store.tested_before(search, likeness=LIKE, limit=9)

    assert [tested.operator.name for tested in found] == ["alike", "mine"]
    assert found[0].candidate.id == make_candidate("alike on cpu").id == found[0].evidence.candidate
    assert store.tested_before(search, likeness=LIKE, limit=1) == found[:1]
