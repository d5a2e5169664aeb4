"""Which artefacts are needed: by searches that are open, and by evidence for ever."""

from sqlalchemy import or_, select

from optimizer.store.inserting import insert_once
from optimizer.store.sessions import Sessions
from optimizer.store.tables import ArtefactRow, SearchRow


class Needs(Sessions):
    """What searches keep outside the database."""

    def need_artefact(self, search_id: int, sha256: str) -> None:
        """Note that a search needs an artefact until it ends."""
        values = {"search_id": search_id, "sha256": sha256, "proves": False}
        with self._writing() as session:
            insert_once(session, ArtefactRow, values)

    def needed_artefacts(self) -> frozenset[str]:
        """Return the hashes of what open searches need, and of what evidence names."""
        query = (
            select(ArtefactRow.sha256)
            .join(SearchRow, SearchRow.id == ArtefactRow.search_id)
            .where(or_(ArtefactRow.proves, SearchRow.finished_at.is_(None)))
        )
        with self._reading() as session:
            return frozenset(session.scalars(query))
