"""The record of searches: trials and confirming runs, inserted and never changed."""

from pydantic import TypeAdapter
from sqlalchemy import func, select, tuple_, update
from sqlalchemy.orm import Session

from knowledge.evaluation import Evaluation
from knowledge.evidence import Evidence
from knowledge.outcome import Cheated, Failed, Incorrect, Outcome, Passed, TimedOut
from optimizer.candidate import Candidate
from optimizer.errors import StoreError
from optimizer.spending import Spending
from optimizer.store.rows import Confirmation, StoredSearch, Trial
from optimizer.store.sessions import Sessions
from optimizer.store.tables import (
    CandidateRow,
    ConfirmationRow,
    EdgeRow,
    EvaluationRow,
    LedgerRow,
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
        with self._writing() as session:
            known = session.scalar(select(SearchRow).where(SearchRow.goal_key == goal_key))
            if known is None:
                known = SearchRow(
                    goal_key=goal_key,
                    operator=operator,
                    hardware=hardware,
                    operator_digest=operator_digest,
                    opened_at=now,
                )
                session.add(known)
                session.flush()
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
            if _recorded(session, search_id, evaluation.key):
                return
            _keep(session, candidate)
            if session.get(EvaluationRow, evaluation.key) is None:
                session.add(_evaluation_row(evaluation, now=now))
                session.flush()
            session.add(
                NodeRow(
                    search_id=search_id,
                    number=trial.number,
                    evaluation_key=evaluation.key,
                    origin=candidate.origin,
                    note=candidate.note,
                    fitness=trial.fitness,
                    spent_s=trial.spent_s,
                )
            )
            session.flush()
            for place, parent in enumerate((candidate.parent, candidate.mate)):
                if parent is not None:
                    edge = EdgeRow(
                        search_id=search_id, number=trial.number, place=place, parent=parent
                    )
                    session.add(edge)

    def trials(self, search_id: int) -> tuple[Trial, ...]:
        """Return a search's trials in their order."""
        query = (
            select(NodeRow, EvaluationRow.body, CandidateRow.body)
            .join(EvaluationRow, NodeRow.evaluation_key == EvaluationRow.key)
            .join(CandidateRow, EvaluationRow.candidate_id == CandidateRow.id)
            .where(NodeRow.search_id == search_id)
            .order_by(NodeRow.number)
        )
        edges = select(EdgeRow).where(EdgeRow.search_id == search_id)
        with self._reading() as session:
            parents = {(edge.number, edge.place): edge.parent for edge in session.scalars(edges)}
            return tuple(
                _trial(row, *bodies, parents=tuple(parents.get((row.number, p)) for p in (0, 1)))
                for row, *bodies in session.execute(query)
            )

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

    def spend(self, search_id: int, what: Spending, *, source: str, now: float) -> None:
        """Add to the ledger what was spent on a search, and by whom."""
        with self._writing() as session:
            session.add(
                LedgerRow(search_id=search_id, source=source, recorded_at=now, **what.model_dump())
            )

    def spent(self, search_id: int) -> Spending:
        """Return what was spent on a search in all."""
        columns = (LedgerRow.device_s, LedgerRow.cpu_s, LedgerRow.tokens, LedgerRow.money_usd)
        sums = select(*(func.coalesce(func.sum(column), 0) for column in columns))
        with self._reading() as session:
            sums_of = session.execute(sums.where(LedgerRow.search_id == search_id)).one()
        device_s, cpu_s, tokens, money_usd = (float(value) for value in sums_of)
        return Spending(device_s=device_s, cpu_s=cpu_s, tokens=int(tokens), money_usd=money_usd)

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


def _recorded(session: Session, search_id: int, evaluation_key: str) -> bool:
    query = select(NodeRow.number).where(
        NodeRow.search_id == search_id, NodeRow.evaluation_key == evaluation_key
    )
    return session.scalar(query) is not None


def _keep(session: Session, candidate: Candidate) -> None:
    if session.get(CandidateRow, candidate.id) is None:
        session.add(CandidateRow(id=candidate.id, body=candidate.to_json()))
        session.flush()


def _evaluation_row(evaluation: Evaluation, *, now: float) -> EvaluationRow:
    return EvaluationRow(
        key=evaluation.key,
        candidate_id=evaluation.candidate,
        operator_digest=evaluation.operator_digest,
        hardware=evaluation.hardware,
        outcome=evaluation.outcome.kind,
        body=evaluation.to_json(),
        recorded_at=now,
    )


def _trial(
    row: NodeRow, evaluation: str, candidate: str, *, parents: tuple[str | None, ...]
) -> Trial:
    parent, mate = parents
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
