"""A store of an earlier version, brought up to date with all that is in it."""

from alembic import command
from alembic.config import Config
from sqlalchemy import Engine, text

from optimizer.candidate import Candidate
from optimizer.store import Confirmation, Store, Trial
from optimizer.store.engine import MIGRATIONS, make_engine
from tests.makers import OPERATOR, make_candidate, make_evaluation, make_profiled

DRAFT = make_candidate("draft")
CHILD = make_candidate("child", parent=DRAFT.id)
ORPHAN = make_candidate("orphan", parent="1" * 64)
"""Its parent was tried in another search."""


def make_trials(*candidates: Candidate) -> list[Trial]:
    return [
        Trial(
            number=number,
            candidate=candidate,
            evaluation=make_evaluation(candidate),
            fitness=2.0 * number,
            spent_s=0.1,
        )
        for number, candidate in enumerate(candidates, start=1)
    ]


def bring_to(engine: Engine, revision: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)


def insert(engine: Engine, table: str, **values: object) -> None:
    names = ", ".join(values)
    places = ", ".join(f":{name}" for name in values)
    with engine.begin() as connection:
        connection.execute(text(f"INSERT INTO {table} ({names}) VALUES ({places})"), values)  # noqa: S608 - our own names


def fill_as_of_0002(engine: Engine, goals: dict[str, list[Trial]]) -> None:
    known = {trial.candidate.id: trial for trials in goals.values() for trial in trials}
    for candidate_id, trial in known.items():
        insert(engine, "candidates", id=candidate_id, body=trial.candidate.to_json())
        insert(
            engine,
            "evaluations",
            key=trial.evaluation.key,
            candidate_id=candidate_id,
            operator_digest=OPERATOR.digest,
            hardware="cpu",
            outcome="passed",
            body=trial.evaluation.to_json(),
            recorded_at=1.0,
        )
    for search_id, (goal_key, trials) in enumerate(goals.items(), start=1):
        insert(
            engine,
            "searches",
            id=search_id,
            goal_key=goal_key,
            operator="scale",
            hardware="cpu",
            operator_digest=OPERATOR.digest,
            opened_at=0.0,
        )
        for trial in trials:
            insert(
                engine,
                "trials",
                search_id=search_id,
                number=trial.number,
                evaluation_key=trial.evaluation.key,
                parent=trial.candidate.parent,
                origin=trial.candidate.origin,
                note=trial.candidate.note,
                fitness=trial.fitness,
                spent_s=trial.spent_s,
            )


def test_trials_of_revision_0002_become_nodes_and_edges(empty_url: str) -> None:
    goals = {"g": make_trials(DRAFT, CHILD), "h": make_trials(ORPHAN, DRAFT)}
    engine = make_engine(empty_url)
    bring_to(engine, "0002")
    fill_as_of_0002(engine, goals)
    engine.dispose()

    with Store(empty_url) as store:
        store.migrate()

        assert list(store.trials(1)) == goals["g"]
        assert list(store.trials(2)) == goals["h"]
        assert list(store.ancestors(1, CHILD.id)) == goals["g"][:1]
        assert store.best(1) == goals["g"][1]


def test_what_the_evidence_of_revision_0003_names_is_needed(empty_url: str) -> None:
    goals = {"g": make_trials(DRAFT)}
    evidence = make_profiled(DRAFT)
    engine = make_engine(empty_url)
    bring_to(engine, "0002")
    fill_as_of_0002(engine, goals)
    bring_to(engine, "0003")
    insert(
        engine,
        "confirmations",
        search_id=1,
        number=1,
        candidate_id=DRAFT.id,
        alpha=0.1,
        evidence=evidence.to_json(),
        spent_s=1.0,
        recorded_at=1.0,
    )
    engine.dispose()

    with Store(empty_url) as store:
        store.migrate()
        store.finish_search(1, result="", now=2)

        assert store.needed_artefacts() == {evidence.samples_sha256}
        proof = Confirmation(number=1, candidate=DRAFT.id, alpha=0.1, result=evidence, spent_s=1.0)
        assert store.confirmations(1) == (proof,)
