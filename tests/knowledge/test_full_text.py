from hypothesis import given
from hypothesis import strategies as st

from knowledge.full_text import Field, FullText, words_of

FIELDS = (Field("title", 3.0), Field("body", 1.0))
TEXTS = (
    ("a", {"title": "softmax", "body": "the sum of a row"}),
    ("b", {"title": "sums", "body": "softmax and others"}),
    ("c", {"title": "sorting", "body": "keys"}),
)


def test_a_word_in_the_title_counts_more() -> None:
    scores = FullText(FIELDS, TEXTS).scores("softmax")

    assert scores["a"] == 1.0
    assert 0 < scores["b"] < 1.0


def test_forms_of_a_word_are_one_word() -> None:
    assert FullText(FIELDS, TEXTS).scores("sorted key").keys() == {"c"}


def test_texts_without_a_word_are_absent() -> None:
    assert FullText(FIELDS, TEXTS).scores("zebra") == {}
    assert FullText(FIELDS, TEXTS).scores("") == {}


@given(st.text())
def test_nothing_in_a_query_is_an_operator(query: str) -> None:
    scores = FullText(FIELDS, TEXTS).scores(query)

    assert all(0 < score <= 1 for score in scores.values())


@given(st.text())
def test_words_are_new_and_long_enough(text: str) -> None:
    words = words_of(text)

    assert len(set(words)) == len(words)
    assert all(len(word) >= 3 for word in words)
