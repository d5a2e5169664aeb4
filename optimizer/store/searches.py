"""The record of searches: trials and confirming runs, inserted and never changed."""

from pydantic import TypeAdapter
from sqlalchemy import ColumnElement, func, select, tuple_, update
from sqlalchemy.orm import Session, aliased

from knowledge.evaluation import Evaluation
from knowledge.evidence import Evidence
from knowledge.outcome import Cheated, Failed, Incorrect, Outcome, Passed, TimedOut
from optimizer.candidate import Candidate
from optimizer.errors import StoreError
from optimizer.store.inserting import insert_once
from optimizer.store.rows import Confirmation, StoredSearch, Trial
from optimizer.store.sessions import Sessions
from optimizer.store.tables import (
    ArtefactRow,
    CandidateRow,
    ConfirmationRow,
    EdgeRow,
    EvaluationRow,
    NodeRow,
    SearchRow,
)

_LONGEST_ID = 9
"""Digits of an id that any database takes for an integer."""
_OUTCOME: TypeAdapter[Passed | Incorrect | Failed | TimedOut | Cheated] = TypeAdapter(Outcome)


class Searches(Sessions):
    """Trials and confirming runs, by search."""

    def open_search(
        self, goal_key: str, *, operator: str, hardware: str, operator_digest: str, now: float
    ) -> int:
        """Return the id of the goal's search, which is begun where there is none."""
        values = {
            "goal_key": goal_key,
            "operator": operator,
            "hardware": hardware,
            "operator_digest": operator_digest,
            "opened_at": now,
        }
        with self._writing() as session:
            insert_once(session, SearchRow, values, unless=("goal_key",))
            known = session.scalars(select(SearchRow).where(SearchRow.goal_key == goal_key)).one()
            if known.operator_digest != operator_digest or known.hardware != hardware:
                msg = f"the search of goal {goal_key} is for another operator or hardware"
                raise StoreError(msg)
            return known.id

    def record(self, search_id: int, trial: Trial, *, now: float) -> None:
        """Add a finished trial; nothing happens where this search has its evaluation already.

        Raises:
            StoreError: The number belongs to another trial.
        """
        evaluation = trial.evaluation
        candidate = trial.candidate
        with self._writing() as session:
            _keep(session, candidate)
            insert_once(session, EvaluationRow, _evaluation_values(evaluation, now=now))
            unless = ("search_id", "evaluation_key")
            is_new = insert_once(session, NodeRow, _node_values(search_id, trial), unless=unless)
            for place, parent in enumerate((candidate.parent, candidate.mate)):
                if is_new and parent is not None:
                    edge = {"search_id": search_id, "number": trial.number, "place": place}
                    insert_once(session, EdgeRow, edge | {"parent": parent})

    def trials(self, search_id: int) -> tuple[Trial, ...]:
        """Return a search's trials in their order."""
        with self._reading() as session:
            return read_trials(session, NodeRow.search_id == search_id)

    def find_evaluation(self, key: str) -> Evaluation | None:
        """Return the evaluation of a key, if that trial was ever made."""
        with self._reading() as session:
            row = session.get(EvaluationRow, key)
            return None if row is None else Evaluation.from_json(row.body)

    def find_candidate(self, candidate_id: str) -> Candidate | None:
        """Return the candidate of an id, if it was ever tried."""
        with self._reading() as session:
            row = session.get(CandidateRow, candidate_id)
            return None if row is None else Candidate.from_json(row.body)

    def record_confirmation(
        self, search_id: int, candidate: Candidate, confirmation: Confirmation, *, now: float
    ) -> None:
        """Add a confirming run.

        Raises:
            StoreError: The number belongs to another run.
        """
        result = confirmation.result
        is_evidence = isinstance(result, Evidence)
        with self._writing() as session:
            _keep(session, candidate)
            session.add(
                ConfirmationRow(
                    search_id=search_id,
                    number=confirmation.number,
                    candidate_id=candidate.id,
                    alpha=confirmation.alpha,
                    evidence=result.to_json() if is_evidence else None,
                    outcome=None if is_evidence else result.to_json(),
                    spent_s=confirmation.spent_s,
                    recorded_at=now,
                )
            )
            if isinstance(result, Evidence) and result.samples_sha256:
                need = {"search_id": search_id, "sha256": result.samples_sha256, "proves": True}
                insert_once(session, ArtefactRow, need)

    def confirmations(self, search_id: int) -> tuple[Confirmation, ...]:
        """Return a search's confirming runs in their order."""
        query = (
            select(ConfirmationRow)
            .where(ConfirmationRow.search_id == search_id)
            .order_by(ConfirmationRow.number)
        )
        with self._reading() as session:
            return tuple(_confirmation(row) for row in session.scalars(query))

    def other_evidence(self, search_id: int) -> tuple[Evidence, ...]:
        """Return the evidence that other searches made for this operator and hardware, in order."""
        mine = select(SearchRow.operator_digest, SearchRow.hardware).where(
            SearchRow.id == search_id
        )
        query = (
            select(ConfirmationRow.evidence)
            .join(SearchRow, ConfirmationRow.search_id == SearchRow.id)
            .where(SearchRow.id != search_id, ConfirmationRow.evidence.is_not(None))
            .where(tuple_(SearchRow.operator_digest, SearchRow.hardware).in_(mine))
            .order_by(
                ConfirmationRow.recorded_at, ConfirmationRow.search_id, ConfirmationRow.number
            )
        )
        with self._reading() as session:
            bodies = [body for body in session.scalars(query) if body is not None]
        return tuple(Evidence.from_json(body) for body in bodies)

    def finish_search(self, search_id: int, *, result: str, now: float) -> None:
        """Set a search's result; the first one stays."""
        change = (
            update(SearchRow)
            .where(SearchRow.id == search_id, SearchRow.finished_at.is_(None))
            .values(finished_at=now, result=result)
        )
        with self._writing() as session:
            session.execute(change)

    def find_result(self, search_id: int) -> str | None:
        """Return a finished search's result."""
        with self._reading() as session:
            return session.scalar(select(SearchRow.result).where(SearchRow.id == search_id))

    def find_searches(self, wanted: str) -> tuple[StoredSearch, ...]:
        """Return the searches with this id, or whose goal's key begins so; the latest first."""
        is_meant = SearchRow.goal_key.startswith(wanted, autoescape=True)
        if wanted.isascii() and wanted.isdigit() and len(wanted) <= _LONGEST_ID:
            is_meant |= SearchRow.id == int(wanted)
        query = select(SearchRow).where(is_meant).order_by(SearchRow.id.desc())
        with self._reading() as session:
            return tuple(
                StoredSearch(
                    id=row.id,
                    goal_key=row.goal_key,
                    operator=row.operator,
                    hardware=row.hardware,
                    finished_at=row.finished_at,
                )
                for row in session.scalars(query)
            )

    def find_opening(self, goal_key: str) -> float | None:
        """Return when a goal's search was opened, in seconds since 1970, if it was."""
        with self._reading() as session:
            return session.scalar(select(SearchRow.opened_at).where(SearchRow.goal_key == goal_key))

    def has_result(self, goal_key: str) -> bool:
        """Return whether a goal's search is finished."""
        query = select(SearchRow.finished_at).where(SearchRow.goal_key == goal_key)
        with self._reading() as session:
            return session.scalar(query) is not None

    def outcome_counts(self, goal_key: str) -> dict[str, int]:
        """Return how many trials of a goal's search ended in which kind of outcome."""
        query = (
            select(EvaluationRow.outcome, func.count())
            .join(NodeRow, NodeRow.evaluation_key == EvaluationRow.key)
            .join(SearchRow, SearchRow.id == NodeRow.search_id)
            .where(SearchRow.goal_key == goal_key)
            .group_by(EvaluationRow.outcome)
        )
        with self._reading() as session:
            return {outcome: trials for outcome, trials in session.execute(query)}  # noqa: C416 - rows are no pairs to mypy


def read_trials(session: Session, *which: ColumnElement[bool]) -> tuple[Trial, ...]:
    """Return the trials of some nodes, in the order in which they were recorded."""
    made_from, crossed_with = aliased(EdgeRow), aliased(EdgeRow)
    query = (
        select(
            NodeRow, EvaluationRow.body, CandidateRow.body, made_from.parent, crossed_with.parent
        )
        .join(EvaluationRow, NodeRow.evaluation_key == EvaluationRow.key)
        .join(CandidateRow, EvaluationRow.candidate_id == CandidateRow.id)
        .outerjoin(made_from, _edge_at(made_from, place=0))
        .outerjoin(crossed_with, _edge_at(crossed_with, place=1))
        .where(*which)
        .order_by(NodeRow.search_id, NodeRow.number)
    )
    return tuple(
        _trial(row, evaluation, candidate, parent=parent, mate=mate)
        for row, evaluation, candidate, parent, mate in session.execute(query)
    )


def _edge_at(edge: type[EdgeRow], *, place: int) -> ColumnElement[bool]:
    return (
        (edge.search_id == NodeRow.search_id)
        & (edge.number == NodeRow.number)
        & (edge.place == place)
    )


def _keep(session: Session, candidate: Candidate) -> None:
    insert_once(session, CandidateRow, {"id": candidate.id, "body": candidate.to_json()})


def _evaluation_values(evaluation: Evaluation, *, now: float) -> dict[str, object]:
    return {
        "key": evaluation.key,
        "candidate_id": evaluation.candidate,
        "operator_digest": evaluation.operator_digest,
        "hardware": evaluation.hardware,
        "outcome": evaluation.outcome.kind,
        "body": evaluation.to_json(),
        "recorded_at": now,
    }


def _node_values(search_id: int, trial: Trial) -> dict[str, object]:
    return {
        "search_id": search_id,
        "number": trial.number,
        "evaluation_key": trial.evaluation.key,
        "origin": trial.candidate.origin,
        "note": trial.candidate.note,
        "fitness": trial.fitness,
        "spent_s": trial.spent_s,
    }


def _trial(
    row: NodeRow, evaluation: str, candidate: str, *, parent: str | None, mate: str | None
) -> Trial:
    as_here = {"parent": parent, "mate": mate, "origin": row.origin, "note": row.note}
    return Trial(
        number=row.number,
        candidate=Candidate.from_json(candidate).model_copy(update=as_here),
        evaluation=Evaluation.from_json(evaluation),
        fitness=row.fitness,
        spent_s=row.spent_s,
    )


def _confirmation(row: ConfirmationRow) -> Confirmation:
    if row.evidence is not None:
        result: Evidence | Outcome = Evidence.from_json(row.evidence)
    else:
        result = _OUTCOME.validate_json(row.outcome or "")
    return Confirmation(
        number=row.number,
        candidate=row.candidate_id,
        alpha=row.alpha,
        result=result,
        spent_s=row.spent_s,
    )
