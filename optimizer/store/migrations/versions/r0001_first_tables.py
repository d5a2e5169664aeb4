"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables."""
    _make_goals()
    _make_candidates()
    _make_searches()
    _make_evaluations()
    _make_trials()
    _make_confirmations()
    op.create_table(
        "leases",
        sa.Column("name", sa.String(200), primary_key=True),
        sa.Column("holder", sa.String(200), nullable=False),
        sa.Column("until", sa.Float, nullable=False),
    )
    op.create_table(
        "marks",
        sa.Column("key", sa.String(200), primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )


def _make_goals() -> None:
    op.create_table(
        "goals",
        sa.Column("key", sa.String(200), primary_key=True),
        sa.Column("operator", sa.String(64), nullable=False),
        sa.Column("hardware", sa.String(64), nullable=False),
        sa.Column("operator_digest", sa.String(64), nullable=False),
        sa.Column("reasons", sa.Text, nullable=False),
        sa.Column("share_of_time", sa.Float, nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.Column("queued_at", sa.Float, nullable=False),
        sa.Column("holder", sa.String(200)),
        sa.Column("held_until", sa.Float),
        sa.Column("finished_at", sa.Float),
        sa.Column("verdict", sa.String(64)),
        sa.Column("result", sa.Text),
    )
    op.create_index("ix_goals_finished_at_share_of_time", "goals", ["finished_at", "share_of_time"])


def _make_candidates() -> None:
    op.create_table(
        "candidates",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("body", sa.Text, nullable=False),
    )


def _make_searches() -> None:
    op.create_table(
        "searches",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("goal_key", sa.String(200), nullable=False),
        sa.Column("operator", sa.String(64), nullable=False),
        sa.Column("hardware", sa.String(64), nullable=False),
        sa.Column("operator_digest", sa.String(64), nullable=False),
        sa.Column("opened_at", sa.Float, nullable=False),
        sa.Column("finished_at", sa.Float),
        sa.Column("result", sa.Text),
        sa.UniqueConstraint("goal_key", name="uq_searches_goal_key"),
    )


def _make_evaluations() -> None:
    op.create_table(
        "evaluations",
        sa.Column("key", sa.String(64), primary_key=True),
        sa.Column("candidate_id", sa.String(64), nullable=False),
        sa.Column("operator_digest", sa.String(64), nullable=False),
        sa.Column("hardware", sa.String(64), nullable=False),
        sa.Column("outcome", sa.String(16), nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("recorded_at", sa.Float, nullable=False),
        sa.ForeignKeyConstraint(
            ["candidate_id"], ["candidates.id"], name="fk_evaluations_candidate_id"
        ),
    )
    op.create_index("ix_evaluations_candidate_id", "evaluations", ["candidate_id"])
    op.create_index(
        "ix_evaluations_operator_digest_hardware", "evaluations", ["operator_digest", "hardware"]
    )


def _make_trials() -> None:
    op.create_table(
        "trials",
        sa.Column("search_id", sa.Integer, primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("evaluation_key", sa.String(64), nullable=False),
        sa.Column("parent", sa.String(64)),
        sa.Column("origin", sa.String(64), nullable=False),
        sa.Column("note", sa.Text, nullable=False),
        sa.Column("fitness", sa.Float, nullable=False),
        sa.Column("spent_s", sa.Float, nullable=False),
        sa.ForeignKeyConstraint(["search_id"], ["searches.id"], name="fk_trials_search_id"),
        sa.ForeignKeyConstraint(
            ["evaluation_key"], ["evaluations.key"], name="fk_trials_evaluation_key"
        ),
        sa.UniqueConstraint(
            "search_id", "evaluation_key", name="uq_trials_search_id_evaluation_key"
        ),
    )
    op.create_index("ix_trials_evaluation_key", "trials", ["evaluation_key"])


def _make_confirmations() -> None:
    op.create_table(
        "confirmations",
        sa.Column("search_id", sa.Integer, primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("candidate_id", sa.String(64), nullable=False),
        sa.Column("alpha", sa.Float, nullable=False),
        sa.Column("evidence", sa.Text),
        sa.Column("outcome", sa.Text),
        sa.Column("spent_s", sa.Float, nullable=False),
        sa.Column("recorded_at", sa.Float, nullable=False),
        sa.ForeignKeyConstraint(["search_id"], ["searches.id"], name="fk_confirmations_search_id"),
        sa.ForeignKeyConstraint(
            ["candidate_id"], ["candidates.id"], name="fk_confirmations_candidate_id"
        ),
    )
    op.create_index("ix_confirmations_candidate_id", "confirmations", ["candidate_id"])
