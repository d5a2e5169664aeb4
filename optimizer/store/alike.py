"""What was proven for operators like one, by name or by the form of their specs."""

from dataclasses import dataclass

from sqlalchemy import or_, select
from sqlalchemy.orm import aliased

from knowledge.evidence import Evidence
from operator_registry.registry import Operator
from optimizer.candidate import Candidate
from optimizer.store.inserting import insert_once
from optimizer.store.sessions import Sessions
from optimizer.store.tables import CandidateRow, ConfirmationRow, OperatorRow, SearchRow


@dataclass(frozen=True)
class Tested:
    """A candidate that went through a confirming run, and for which operator."""

    operator: Operator
    candidate: Candidate
    evidence: Evidence


class Alike(Sessions):
    """Versions of operators, and the evidence that searches for them made."""

    def keep_operator(self, operator: Operator, *, likeness: str) -> None:
        """Remember a version of an operator, so that searches for others find what it taught."""
        values = {
            "digest": operator.digest,
            "name": operator.name,
            "likeness": likeness,
            "body": operator.to_json(),
        }
        with self._writing() as session:
            insert_once(session, OperatorRow, values)

    def tested_before(self, search_id: int, *, likeness: str, limit: int) -> tuple[Tested, ...]:
        """Return what was tested for an operator like a search's, on its hardware, newest first.

        What came after the search was opened is left out: who goes on with it finds the same.
        """
        mine = aliased(SearchRow)
        query = (
            select(OperatorRow.body, CandidateRow.body, ConfirmationRow.evidence)
            .join(SearchRow, SearchRow.id == ConfirmationRow.search_id)
            .join(mine, mine.id == search_id)
            .join(OperatorRow, OperatorRow.digest == SearchRow.operator_digest)
            .join(CandidateRow, CandidateRow.id == ConfirmationRow.candidate_id)
            .where(
                ConfirmationRow.evidence.is_not(None),
                ConfirmationRow.recorded_at < mine.opened_at,
                SearchRow.id != search_id,
                SearchRow.hardware == mine.hardware,
                or_(OperatorRow.name == mine.operator, OperatorRow.likeness == likeness),
            )
            .order_by(
                ConfirmationRow.recorded_at.desc(),
                ConfirmationRow.search_id,
                ConfirmationRow.number.desc(),
            )
            .limit(limit)
        )
        with self._reading() as session:
            return tuple(
                Tested(
                    Operator.from_json(operator),
                    Candidate.from_json(candidate),
                    Evidence.from_json(evidence or ""),
                )
                for operator, candidate, evidence in session.execute(query)
            )
