"""The tables. Trials, candidates and evaluations are only ever inserted."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Dialect,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    String,
    Text,
    TypeDecorator,
    UniqueConstraint,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

Key = String(64)
"""A SHA-256 in hex."""


class Words(TypeDecorator[str]):
    """A text of foreign origin: PostgreSQL has no place for a zero in one, SQLite has."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Return the text with a sign in the place of each zero."""
        return None if value is None else value.replace("\0", "\N{REPLACEMENT CHARACTER}")


class Table(DeclarativeBase):
    """The base of all tables; constraints have names, so that a later revision can drop them."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


class GoalRow(Table):
    """An operator on a hardware, and why now."""

    __tablename__ = "goals"
    __table_args__ = (Index(None, "finished_at", "share_of_time"),)

    key: Mapped[str] = mapped_column(String(200), primary_key=True)
    operator: Mapped[str] = mapped_column(String(64))
    hardware: Mapped[str] = mapped_column(String(64))
    operator_digest: Mapped[str] = mapped_column(Key)
    reasons: Mapped[str] = mapped_column(Text)
    """JSON list of texts."""
    share_of_time: Mapped[float] = mapped_column(Float)
    payload: Mapped[str] = mapped_column(Text)
    """What the one who enqueued it needs again; opaque here."""
    queued_at: Mapped[float] = mapped_column(Float)
    holder: Mapped[str | None] = mapped_column(String(200))
    held_until: Mapped[float | None] = mapped_column(Float)
    finished_at: Mapped[float | None] = mapped_column(Float)
    verdict: Mapped[str | None] = mapped_column(String(64))
    result: Mapped[str | None] = mapped_column(Text)


class SearchRow(Table):
    """The search of a goal; there is one for each goal key."""

    __tablename__ = "searches"
    __table_args__ = (Index(None, "operator_digest", "hardware"),)

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    goal_key: Mapped[str] = mapped_column(String(200), unique=True)
    operator: Mapped[str] = mapped_column(String(64))
    hardware: Mapped[str] = mapped_column(String(64))
    operator_digest: Mapped[str] = mapped_column(Key)
    opened_at: Mapped[float] = mapped_column(Float)
    finished_at: Mapped[float | None] = mapped_column(Float)
    result: Mapped[str | None] = mapped_column(Text)


class OperatorRow(Table):
    """A version of an operator that was searched for: what is like it is found by this."""

    __tablename__ = "operators"

    digest: Mapped[str] = mapped_column(Key, primary_key=True)
    name: Mapped[str] = mapped_column(String(64), index=True)
    likeness: Mapped[str] = mapped_column(Key, index=True)
    """Equal for operators whose specs differ in names, sizes and values alone."""
    body: Mapped[str] = mapped_column(Text)


class CandidateRow(Table):
    """A candidate's code, plan and choice, once however often it is tried."""

    __tablename__ = "candidates"

    id: Mapped[str] = mapped_column(Key, primary_key=True)
    body: Mapped[str] = mapped_column(Text)


class EvaluationRow(Table):
    """One trial's result, never computed twice under the same key."""

    __tablename__ = "evaluations"
    __table_args__ = (Index(None, "operator_digest", "hardware"),)

    key: Mapped[str] = mapped_column(Key, primary_key=True)
    candidate_id: Mapped[str] = mapped_column(ForeignKey("candidates.id"), index=True)
    operator_digest: Mapped[str] = mapped_column(Key)
    hardware: Mapped[str] = mapped_column(String(64))
    outcome: Mapped[str] = mapped_column(String(16))
    body: Mapped[str] = mapped_column(Text)
    recorded_at: Mapped[float] = mapped_column(Float)


class NodeRow(Table):
    """A trial as a node of a search: which evaluation was the how-manieth."""

    __tablename__ = "nodes"
    __table_args__ = (
        UniqueConstraint("search_id", "evaluation_key"),
        Index(None, "search_id", "fitness"),
    )

    search_id: Mapped[int] = mapped_column(ForeignKey("searches.id"), primary_key=True)
    number: Mapped[int] = mapped_column(Integer, primary_key=True)
    evaluation_key: Mapped[str] = mapped_column(ForeignKey("evaluations.key"), index=True)
    origin: Mapped[str] = mapped_column(Words)
    note: Mapped[str] = mapped_column(Words)
    """Origin and note as in this search; another one may reach the candidate otherwise."""
    fitness: Mapped[float] = mapped_column(Float)
    spent_s: Mapped[float] = mapped_column(Float)
    """Seconds of this search's budget; 0 where the evaluation was found, not run."""


class EdgeRow(Table):
    """What a node was made from, and why: one edge, two where it crosses two."""

    __tablename__ = "edges"
    __table_args__ = (
        ForeignKeyConstraint(("search_id", "number"), ("nodes.search_id", "nodes.number")),
        Index(None, "search_id", "parent"),
    )

    search_id: Mapped[int] = mapped_column(Integer, primary_key=True)
    number: Mapped[int] = mapped_column(Integer, primary_key=True)
    """The child's."""
    place: Mapped[int] = mapped_column(Integer, primary_key=True)
    """0 for the parent, 1 for the mate."""
    parent: Mapped[str] = mapped_column(Key)
    """A candidate's id; it may be of another search."""


class LedgerRow(Table):
    """Something spent on a search; only ever inserted."""

    __tablename__ = "ledger"

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    search_id: Mapped[int] = mapped_column(ForeignKey("searches.id"), index=True)
    source: Mapped[str] = mapped_column(Words)
    """Who spent it: ``trial``, ``confirm``, ``build``, or a proposer's name."""
    device_s: Mapped[float] = mapped_column(Float)
    cpu_s: Mapped[float] = mapped_column(Float)
    tokens: Mapped[int] = mapped_column(BigInteger)
    money_usd: Mapped[float] = mapped_column(Float)
    recorded_at: Mapped[float] = mapped_column(Float)


class ConfirmationRow(Table):
    """A confirming run of a search: evidence, or the outcome by which it failed."""

    __tablename__ = "confirmations"

    search_id: Mapped[int] = mapped_column(ForeignKey("searches.id"), primary_key=True)
    number: Mapped[int] = mapped_column(Integer, primary_key=True)
    candidate_id: Mapped[str] = mapped_column(ForeignKey("candidates.id"), index=True)
    alpha: Mapped[float] = mapped_column(Float)
    evidence: Mapped[str | None] = mapped_column(Text)
    outcome: Mapped[str | None] = mapped_column(Text)
    spent_s: Mapped[float] = mapped_column(Float)
    recorded_at: Mapped[float] = mapped_column(Float)


class ArtefactRow(Table):
    """That a search needs what is kept outside the database under a hash."""

    __tablename__ = "artefacts"

    search_id: Mapped[int] = mapped_column(ForeignKey("searches.id"), primary_key=True)
    sha256: Mapped[str] = mapped_column(Key, primary_key=True)
    proves: Mapped[bool] = mapped_column(Boolean, index=True)
    """True for what evidence names: it is needed after the search too."""


class LeaseRow(Table):
    """Who alone may act in a role, and until when."""

    __tablename__ = "leases"

    name: Mapped[str] = mapped_column(String(200), primary_key=True)
    holder: Mapped[str] = mapped_column(String(200))
    until: Mapped[float] = mapped_column(Float)


class MarkRow(Table):
    """A remembered value, such as the last revision that was planned."""

    __tablename__ = "marks"

    key: Mapped[str] = mapped_column(String(200), primary_key=True)
    value: Mapped[str] = mapped_column(Text)


class DeliveryRow(Table):
    """What a code host sent, once however often it is delivered."""

    __tablename__ = "deliveries"
    __table_args__ = (Index(None, "handled_at", "received_at"),)

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    event: Mapped[str] = mapped_column(String(64))
    body: Mapped[str] = mapped_column(Text)
    received_at: Mapped[float] = mapped_column(Float)
    handled_at: Mapped[float | None] = mapped_column(Float)


class CommandRow(Table):
    """What a person asked for, and what became of it: never deleted, the audit log."""

    __tablename__ = "commands"
    __table_args__ = (UniqueConstraint("comment_id", "line"), Index(None, "state", "received_at"))

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    comment_id: Mapped[int] = mapped_column(BigInteger)
    line: Mapped[int] = mapped_column(Integer)
    number: Mapped[int] = mapped_column(Integer)
    head_sha: Mapped[str | None] = mapped_column(Key)
    author_id: Mapped[int] = mapped_column(BigInteger)
    author: Mapped[str] = mapped_column(String(100))
    text: Mapped[str] = mapped_column(Words)
    received_at: Mapped[float] = mapped_column(Float)
    state: Mapped[str] = mapped_column(String(16))
    told: Mapped[str] = mapped_column(Words)
    goal_key: Mapped[str | None] = mapped_column(String(200), index=True)
    changed_at: Mapped[float] = mapped_column(Float)


class EffectRow(Table):
    """Something to be done on the code host, once."""

    __tablename__ = "effects"
    __table_args__ = (Index(None, "done_at", "priority", "id"),)

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    key: Mapped[str] = mapped_column(String(200), unique=True)
    kind: Mapped[str] = mapped_column(String(32))
    payload: Mapped[str] = mapped_column(Text)
    priority: Mapped[int] = mapped_column(Integer)
    made_at: Mapped[float] = mapped_column(Float)
    not_before: Mapped[float] = mapped_column(Float)
    attempts: Mapped[int] = mapped_column(Integer)
    done_at: Mapped[float | None] = mapped_column(Float)
    remote: Mapped[str | None] = mapped_column(String(64))
    error: Mapped[str | None] = mapped_column(Words)


class DeviceRow(Table):
    """A device of a host, who holds it, and what people or health checks said of it."""

    __tablename__ = "devices"

    name: Mapped[str] = mapped_column(String(200), primary_key=True)
    host: Mapped[str] = mapped_column(String(200), index=True)
    hardware: Mapped[str] = mapped_column(String(200))
    """What its driver, or the cluster that it is in, calls its kind."""
    arch: Mapped[str] = mapped_column(String(64))
    access: Mapped[str] = mapped_column(Text)
    """How a job gets at it, as JSON; opaque here."""
    rule: Mapped[str | None] = mapped_column(String(16))
    """``cordoned`` or ``draining``; none where it may be leased."""
    why: Mapped[str] = mapped_column(Words)
    ruled_by: Mapped[str] = mapped_column(String(16))
    """``person`` or ``health``; of one without a rule, who freed it."""
    since: Mapped[float] = mapped_column(Float)
    holder: Mapped[str | None] = mapped_column(String(200))
    task: Mapped[str] = mapped_column(Words)
    """What the holder does with it, in words."""
    held_until: Mapped[float | None] = mapped_column(Float)
