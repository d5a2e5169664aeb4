"""How long questions take in a store of a million evaluations. The margins are wide."""

import time
from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import text

from optimizer.propose.proposer import ScriptedProposer
from optimizer.search.budget import Budget
from optimizer.search.search import Clock, Place, Search
from optimizer.spending import Spending
from optimizer.store import QueuedGoal, Store, Trial
from optimizer.store.engine import make_engine
from tests.fakes import FakeRunner
from tests.makers import HARDWARE, OPERATOR, make_candidate, make_evaluation, make_passed

pytestmark = [pytest.mark.drill, pytest.mark.timeout(580)]
SEARCHES, TRIALS = 2500, 400
"""A million trials, four of each candidate."""
OURS = 300
"""Trials of the search that goes on."""
CANDIDATE, HALF = make_candidate(), 0.5
HEX = {"sqlite": "printf('%064x', {})", "postgresql": "lpad(to_hex({}), 64, '0')"}
FILL = (
    """INSERT INTO searches (id, goal_key, operator, hardware, operator_digest, opened_at,
    finished_at, result) SELECT i, 'goal ' || i, 'operator' || i % 250, 'cpu-x86-64-v3',
    {hex_i_250}, i, i, '{{}}' FROM n WHERE i BETWEEN 1 AND {searches}""",
    """INSERT INTO candidates (id, body) SELECT {hex_i}, :candidate FROM n
    WHERE i < {trials} / 4""",
    """INSERT INTO evaluations (key, candidate_id, operator_digest, hardware, outcome, body,
    recorded_at) SELECT {hex_i}, {hex_quarter}, {hex_search_250}, 'cpu-x86-64-v3', 'passed',
    :evaluation, i FROM n WHERE i < {trials}""",
    """INSERT INTO nodes (search_id, number, evaluation_key, origin, note, fitness, spent_s)
    SELECT i / {each} + 1, i % {each} + 1, {hex_i}, 'synthesis', 'a note',
    i % 1000 * 7919 % 1000 / 500.0, 0.1 FROM n WHERE i < {trials}""",
    """INSERT INTO edges (search_id, number, place, parent)
    SELECT i / {each} + 1, i % {each} + 1, 0, {hex_quarter} FROM n
    WHERE i < {trials} AND i % {each} > 0""",
    """INSERT INTO ledger (search_id, source, device_s, cpu_s, tokens, money_usd, recorded_at)
    SELECT i / {each} + 1, 'trial', 0.1, 0.2, 0, 0, i FROM n WHERE i < {trials}""",
    """INSERT INTO goals (key, operator, hardware, operator_digest, reasons, share_of_time, payload,
    queued_at, finished_at, verdict, result) SELECT 'goal ' || i, 'operator' || i % 250,
    'cpu-x86-64-v3', {hex_i_250}, '[]', 0, '{{}}', i, i, 'better', '{{}}' FROM n
    WHERE i BETWEEN 1 AND {searches}""",
)


BODIES = {
    "candidate": CANDIDATE.to_json(),
    "evaluation": make_evaluation(CANDIDATE, make_passed(HALF, HALF)).to_json(),
}
NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {trials}) "


def fill(url: str) -> None:
    """Put a million trials into a store."""
    engine = make_engine(url)
    try:
        for statement in statements(engine.dialect.name):
            named = {name: body for name, body in BODIES.items() if f":{name}" in statement}
            with engine.begin() as connection:
                connection.execute(text(statement), named)
    finally:
        engine.dispose()


def statements(dialect: str) -> list[str]:
    trials = SEARCHES * TRIALS
    expressions = {
        "hex_i": "i",
        "hex_quarter": "i / 4",
        "hex_i_250": "i % 250",
        "hex_search_250": f"(i / {TRIALS} + 1) % 250",
    }
    values = {name: HEX[dialect].format(what) for name, what in expressions.items()}
    numbers = NUMBERS.format(trials=trials)
    made = [s.format(searches=SEARCHES, trials=trials, each=TRIALS, **values) for s in FILL]
    if dialect == "sqlite":
        return [numbers + statement for statement in made]
    # There the table of numbers stands inside the statement; and it counts ids by itself.
    inside = [statement.replace("SELECT", f"{numbers} SELECT", 1) for statement in made]
    return [*inside, f"SELECT setval('searches_id_seq', {SEARCHES})"]


@pytest.fixture
def large(make_url: Callable[[], str]) -> Iterator[Store]:
    url = make_url()
    fill(url)
    with Store(url) as store:
        yield store


def took_s(do: Callable[[], object]) -> float:
    began = time.perf_counter()
    do()
    return time.perf_counter() - began


def open_ours(store: Store) -> int:
    return store.open_search(
        "ours", operator="scale", hardware=HARDWARE.name, operator_digest=OPERATOR.digest, now=0
    )


def record(store: Store, count: int) -> list[float]:
    """Return the seconds of each of so many trials' recording."""
    search = open_ours(store)
    seconds, parent = [], None
    for number in range(1, count + 1):
        candidate = make_candidate(f"ours {number}", parent=parent)
        parent = candidate.id if number % 10 else parent
        trial = Trial(
            number=number,
            candidate=candidate,
            evaluation=make_evaluation(candidate, make_passed(HALF)),
            fitness=float(number),
            spent_s=0.1,
        )
        seconds.append(took_s(lambda t=trial: store.record(search, t, now=1)))  # type: ignore[misc]
    return seconds


def resume_and_pick(store: Store) -> None:
    runner = FakeRunner()
    fresh = [make_candidate(f"fresh {number}") for number in range(6)]
    search = Search(
        store=store,
        place=Place(open_ours(store), OPERATOR.digest, "1"),
        runner=runner,
        proposers=[ScriptedProposer(fresh)],
        budget=Budget(total_s=1000),
        clock=Clock(runner.clock, runner.clock),
        on_trial=lambda trial, left_s: None,
        stopped=lambda: bool(runner.ran),
    )
    search.run()
    assert runner.ran


def test_questions_to_a_million_evaluations_are_answered_at_once(large: Store) -> None:
    seconds = sorted(record(large, OURS))
    last = large.trials(open_ours(large))[-1].candidate.id
    figures = {
        "record (median)": seconds[len(seconds) // 2],
        "record (95 %)": seconds[len(seconds) * 95 // 100],
        "resume and first pick": took_s(lambda: resume_and_pick(large)),
        "pending goals": took_s(large.pending_goals),
        "enqueue": took_s(lambda: large.enqueue(goal(), now=1)),
        "finished goals": took_s(lambda: large.finished_goals(limit=20)),
        "has result": took_s(lambda: large.has_result("goal 77")),
        "outcome counts": took_s(lambda: large.outcome_counts("goal 77")),
        "other evidence": took_s(lambda: large.other_evidence(open_ours(large))),
        "warm start": took_s(
            lambda: large.tested_before(open_ours(large), likeness="1" * 64, limit=200)
        ),
        "best": took_s(lambda: large.best(77)),
        "best of": took_s(lambda: large.best_of(f"{77:064x}", "cpu-x86-64-v3")),
        "ancestors": took_s(lambda: large.ancestors(open_ours(large), last)),
        "subtree": took_s(lambda: large.subtree(open_ours(large), last)),
        "spend": took_s(lambda: large.spend(1, Spending(device_s=1), source="trial", now=1)),
        "spent": took_s(lambda: large.spent(77)),
        "costs": took_s(large.costs),
        "needed artefacts": took_s(large.needed_artefacts),
    }
    for name, figure in figures.items():
        print(f"{name}: {figure * 1e3:.1f} ms")  # noqa: T201 - shown by `pytest -s`

    costs_s = figures.pop("costs")  # a sum over a million rows, when a person asks
    assert costs_s < 60
    assert figures["record (median)"] < 0.1
    assert sum(figures.values()) < 10


def goal() -> QueuedGoal:
    return QueuedGoal(
        key="ours", operator="scale", hardware="cpu", operator_digest=OPERATOR.digest, reasons=()
    )
