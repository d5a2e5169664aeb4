import re

from hypothesis import given
from hypothesis import strategies as st

from daemon.markdown import code, plain, table


@given(st.text())
def test_no_text_does_anything_in_markdown(text: str) -> None:
    shown = re.sub(r"&#\d+;", "", plain(text))

    assert not set(shown) & set("@<>|`[]*_\n\r\\#")


@given(st.text())
def test_a_code_span_stays_one_span_in_one_cell(text: str) -> None:
    shown = code(text)

    assert shown.count("`") == 2
    assert not set(shown) & set("|\n\r")


def test_direction_marks_and_invisible_characters_are_dropped() -> None:
    assert plain("a\u202eb\u200bc\x00d") == "abcd"


def test_a_table_has_a_rule_below_its_header() -> None:
    assert table(("a", "b"), [("1", "2")]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"
