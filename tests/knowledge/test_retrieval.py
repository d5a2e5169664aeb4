"""How often the document that helps is among the first three."""

import time

import pytest

from knowledge.library import Library, Query
from tests.knowledge.situations import QUESTIONS, SITUATIONS, Situation

LIBRARY = Library.load()
FIRST = 3
LEAST = 0.9


def first_of(query: Query) -> list[str]:
    """Return the first documents but for constraints, which are handed out in any case."""
    ranked = [match.document for match in LIBRARY.rank(query)]
    return [document.name for document in ranked if document.kind != "constraints"][:FIRST]


def test_the_wanted_documents_are_there() -> None:
    wanted = {s.wanted for s in SITUATIONS} | {name for _, name in QUESTIONS}

    assert wanted <= {document.name for document in LIBRARY.documents}


def test_situations_find_their_document_among_the_first_three() -> None:
    missed = {s.name: first_of(s.query) for s in SITUATIONS if s.wanted not in first_of(s.query)}

    assert len(SITUATIONS) >= 30
    assert len(missed) <= (1 - LEAST) * len(SITUATIONS), missed


def test_questions_find_their_document_among_the_first_three() -> None:
    asked = {text: (name, first_of(Query(text=text))) for text, name in QUESTIONS}
    missed = {text: found for text, (name, found) in asked.items() if name not in found}

    assert len(missed) <= (1 - LEAST) * len(asked), missed


@pytest.mark.parametrize("situation", SITUATIONS[::7], ids=lambda s: s.name)
def test_equal_queries_find_equal_documents(situation: Situation) -> None:
    assert Library.load().find(situation.query) == LIBRARY.find(situation.query)


@pytest.mark.drill
def test_a_query_takes_a_few_milliseconds() -> None:
    """Below 10 ms; the test allows three times that on a busy machine."""
    queries = [situation.query for situation in SITUATIONS]
    began_s = time.perf_counter()

    for query in queries:
        LIBRARY.find(query)

    assert (time.perf_counter() - began_s) / len(queries) < 0.03
