"""A search's graph, asked in the database: ancestors, siblings, what was made from what, the best.

A node is a trial of a candidate; an edge leads from it to the candidate that it was made from. All
answers are of one search: a parent that was tried in another one only is no node here.
"""

from sqlalchemy import ColumnElement, Select, String, bindparam, select, tuple_

from optimizer.store.rows import Trial
from optimizer.store.searches import read_trials
from optimizer.store.sessions import Sessions
from optimizer.store.tables import EdgeRow, EvaluationRow, NodeRow, SearchRow

Candidates = Select[str]
"""Ids of candidates, once or more often."""


class Graph(Sessions):
    """Questions about the graph, each one query however deep it goes."""

    def ancestors(self, search_id: int, candidate_id: str) -> tuple[Trial, ...]:
        """Return the trials of all that a candidate was made from, mates too, the latest first."""
        others = EvaluationRow.candidate_id != candidate_id
        found = self._trials_of(search_id, _upwards(search_id, candidate_id), others)
        return tuple(reversed(found))

    def siblings(self, search_id: int, candidate_id: str) -> tuple[Trial, ...]:
        """Return the trials of all others that were made from one of its parents, in order."""
        parents = _parents(search_id).where(EvaluationRow.candidate_id == candidate_id)
        children = _children(search_id).where(EdgeRow.parent.in_(parents))
        others = EvaluationRow.candidate_id != candidate_id
        return self._trials_of(search_id, children, others)

    def subtree(self, search_id: int, candidate_id: str) -> tuple[Trial, ...]:
        """Return the trials of a candidate and of all that was made from it, in order."""
        return self._trials_of(search_id, _downwards(search_id, candidate_id))

    def best(self, search_id: int) -> Trial | None:
        """Return a search's fittest trial, the earliest of equals; None where none was timed."""
        return self._fittest(NodeRow.search_id == search_id)

    def best_of(self, operator_digest: str, hardware: str) -> Trial | None:
        """Return the fittest trial of an operator on a hardware, in whatever search."""
        searches = select(SearchRow.id).where(
            SearchRow.operator_digest == operator_digest, SearchRow.hardware == hardware
        )
        return self._fittest(NodeRow.search_id.in_(searches))

    def _fittest(self, which: ColumnElement[bool]) -> Trial | None:
        query = (
            select(NodeRow.search_id, NodeRow.number)
            .where(which, NodeRow.fitness > 0)
            .order_by(NodeRow.fitness.desc(), NodeRow.search_id, NodeRow.number)
            .limit(1)
        )
        with self._reading() as session:
            if (place := session.execute(query).one_or_none()) is None:
                return None
            return read_trials(session, tuple_(NodeRow.search_id, NodeRow.number) == place)[0]

    def _trials_of(
        self, search_id: int, candidates: Candidates, *besides: ColumnElement[bool]
    ) -> tuple[Trial, ...]:
        mine = NodeRow.search_id == search_id
        with self._reading() as session:
            return read_trials(session, mine, EvaluationRow.candidate_id.in_(candidates), *besides)


def _upwards(search_id: int, candidate_id: str) -> Candidates:
    # UNION, and no count of the steps: a candidate that is reached twice is gone through once.
    first = _parents(search_id).where(EvaluationRow.candidate_id == candidate_id)
    above = first.cte("above", recursive=True)
    further = _parents(search_id).join(above, above.c.parent == EvaluationRow.candidate_id)
    return select(above.union(further).c.parent)


def _downwards(search_id: int, candidate_id: str) -> Candidates:
    below = select(bindparam("root", candidate_id, String).label("candidate_id"))
    below_all = below.cte("below", recursive=True)
    further = _children(search_id).join(below_all, below_all.c.candidate_id == EdgeRow.parent)
    return select(below_all.union(further).c.candidate_id)


def _parents(search_id: int) -> Candidates:
    """Return what candidates of a search were made from; the caller says which candidates."""
    return (
        select(EdgeRow.parent)
        .join(NodeRow, _is_of_node())
        .join(EvaluationRow, EvaluationRow.key == NodeRow.evaluation_key)
        .where(NodeRow.search_id == search_id)
    )


def _children(search_id: int) -> Candidates:
    """Return what was made from candidates in a search; the caller says from which."""
    return (
        select(EvaluationRow.candidate_id)
        .join(NodeRow, NodeRow.evaluation_key == EvaluationRow.key)
        .join(EdgeRow, _is_of_node())
        .where(EdgeRow.search_id == search_id)
    )


def _is_of_node() -> ColumnElement[bool]:
    return (EdgeRow.search_id == NodeRow.search_id) & (EdgeRow.number == NodeRow.number)
