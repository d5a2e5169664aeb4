"""Exchanges are kept whole, once, and told again without a network."""

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimizer.propose.exchange import LINES, TEXTS, Exchange, Journal, ReplayedModel
from optimizer.propose.model import Answered, Message, Question, Said, Unanswered, Usage
from optimizer.spending import Spending


def question(text: str = "Well?", seed: int = 1) -> Question:
    messages = (Message(role="system", text="Rules."), Message(role="user", text=text))
    return Question(model="m", messages=messages, most_tokens=9, temperature=0.5, seed=seed)


def exchange(asked: Question, said: Said, usd: float = 0.25) -> Exchange:
    return Exchange(
        question=asked,
        said=said,
        counted=Usage(prompt_tokens=10, reply_tokens=5),
        money_usd=usd,
        latency_s=0.5,
        source="m",
    )


TEXTS_OF_ANY_KIND = st.text(st.characters(codec="utf-8"), max_size=50)


@given(texts=st.lists(st.tuples(TEXTS_OF_ANY_KIND, TEXTS_OF_ANY_KIND), max_size=5))
def test_what_was_recorded_comes_back(
    tmp_path_factory: pytest.TempPathFactory, texts: list[tuple[str, str]]
) -> None:
    folder = tmp_path_factory.mktemp("journal")
    recorded = [exchange(question(asked), Answered(text=said)) for asked, said in texts]

    for each in recorded:
        Journal(folder).record(each)

    assert list(Journal(folder).exchanges()) == recorded


def test_a_text_lies_there_once(tmp_path: Path) -> None:
    journal = Journal(tmp_path)

    for seed in range(5):
        journal.record(exchange(question(seed=seed), Answered(text="Well.")))

    # Two messages, the empty form and the answer.
    assert len(list((tmp_path / TEXTS).iterdir())) == 4
    assert len((tmp_path / LINES).read_text().splitlines()) == 5


def test_what_was_spent_outlives_the_process(tmp_path: Path) -> None:
    for seed in range(3):
        Journal(tmp_path).record(exchange(question(seed=seed), Answered(text="Well.")))

    assert Journal(tmp_path).spent() == Spending(tokens=45, money_usd=0.75)


def test_what_was_begun_and_has_no_end_is_counted_in_full(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    for source in ("m", "m", "other"):
        begun = journal.begin(Spending(tokens=100, money_usd=1.0), source=source)
    journal.record(exchange(question(), Answered(text="Well.")), begun=begun)

    assert journal.spent_by_source() == {"m": Spending(tokens=215, money_usd=2.25)}


def test_a_line_that_a_crash_cut_off_costs_that_line_only(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.record(exchange(question("one"), Answered(text="1")))
    with (tmp_path / LINES).open("ab") as file:
        file.write(b'{"schema":1,"key":"ab')

    journal.record(exchange(question("two"), Answered(text="2")))

    assert [e.question.messages[1].text for e in journal.exchanges()] == ["one", "two"]


def test_a_text_that_was_changed_is_not_told_again(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.record(exchange(question(), Answered(text="honest")))
    for path in (tmp_path / TEXTS).iterdir():
        if path.read_text() == "honest":
            path.write_text("forged")

    assert list(journal.exchanges()) == []


def test_a_replayed_model_says_the_same_in_the_same_order(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    said: list[Said] = [Unanswered(why="busy"), Answered(text="first"), Answered(text="second")]
    for each in said:
        journal.record(exchange(question(), each))

    model = ReplayedModel(journal)
    longer = question().model_copy(update={"most_tokens": 1000})

    assert [model.ask(longer, within_s=1) for _ in said] == said
    again = model.ask(question(), within_s=1)
    assert isinstance(again, Unanswered)
    assert again.why == "refused"
    assert isinstance(model.ask(question("new"), within_s=1), Unanswered)


def test_no_journal_is_an_empty_one(tmp_path: Path) -> None:
    shutil.rmtree(tmp_path)

    assert Journal(tmp_path).spent() == Spending()
