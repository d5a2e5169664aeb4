import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from operator_registry.record import Record, digest
from operator_registry.spec import Normal, PrecisionPolicy


class Pair(Record):
    left: str
    right: str = ""


@given(st.lists(st.text(), min_size=1), st.lists(st.text(), min_size=1))
def test_digests_are_equal_exactly_when_the_parts_are(a: list[str], b: list[str]) -> None:
    assert (digest(*a) == digest(*b)) == (a == b)


def test_a_records_digest_does_not_depend_on_where_a_value_came_from() -> None:
    assert digest(Pair(left="a")) == digest(Pair(left="a", right=""))


def test_unknown_keys_are_refused() -> None:
    with pytest.raises(ValidationError, match="lefft"):
        Pair.model_validate({"lefft": "a"})


def test_a_record_can_not_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Normal().mean = 1.0  # type: ignore[misc]


def test_json_brings_the_same_value_back() -> None:
    policy = PrecisionPolicy(c=3, row_axes=("rows",))

    assert PrecisionPolicy.from_json(policy.to_json()) == policy
