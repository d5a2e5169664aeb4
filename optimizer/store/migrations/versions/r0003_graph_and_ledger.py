"""Trials become the nodes of a graph, with edges; and what searches cost is kept."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables, and move the trials over."""
    op.create_table(
        "nodes",
        sa.Column("search_id", sa.Integer, sa.ForeignKey("searches.id", name="fk_nodes_search_id")),
        sa.Column("number", sa.Integer),
        sa.Column(
            "evaluation_key",
            sa.String(64),
            sa.ForeignKey("evaluations.key", name="fk_nodes_evaluation_key"),
            nullable=False,
        ),
        sa.Column("origin", sa.Text, nullable=False),
        sa.Column("note", sa.Text, nullable=False),
        sa.Column("fitness", sa.Float, nullable=False),
        sa.Column("spent_s", sa.Float, nullable=False),
        sa.PrimaryKeyConstraint("search_id", "number", name="pk_nodes"),
        sa.UniqueConstraint(
            "search_id", "evaluation_key", name="uq_nodes_search_id_evaluation_key"
        ),
    )
    op.create_index("ix_nodes_evaluation_key", "nodes", ["evaluation_key"])
    op.create_table(
        "edges",
        sa.Column("search_id", sa.Integer),
        sa.Column("number", sa.Integer),
        sa.Column("place", sa.Integer),
        sa.Column("parent", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("search_id", "number", "place", name="pk_edges"),
        sa.ForeignKeyConstraint(
            ("search_id", "number"), ("nodes.search_id", "nodes.number"), name="fk_edges_search_id"
        ),
    )
    op.create_index("ix_edges_search_id_parent", "edges", ["search_id", "parent"])
    kept = "search_id, number, evaluation_key, origin, note, fitness, spent_s"
    op.execute(f"INSERT INTO nodes ({kept}) SELECT {kept} FROM trials")  # noqa: S608 - no input
    op.execute(
        "INSERT INTO edges (search_id, number, place, parent) "
        "SELECT search_id, number, 0, parent FROM trials WHERE parent IS NOT NULL"
    )
    op.drop_table("trials")
    op.create_table(
        "ledger",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column(
            "search_id",
            sa.Integer,
            sa.ForeignKey("searches.id", name="fk_ledger_search_id"),
            nullable=False,
        ),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("device_s", sa.Float, nullable=False),
        sa.Column("cpu_s", sa.Float, nullable=False),
        sa.Column("tokens", sa.BigInteger, nullable=False),
        sa.Column("money_usd", sa.Float, nullable=False),
        sa.Column("recorded_at", sa.Float, nullable=False),
    )
    op.create_index("ix_ledger_search_id", "ledger", ["search_id"])
