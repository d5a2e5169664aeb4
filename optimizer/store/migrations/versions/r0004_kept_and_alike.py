"""Which artefacts are needed, which operators are alike, and a search's best node at once."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables and indexes; what evidence names is needed from now on."""
    op.create_table(
        "operators",
        sa.Column("digest", sa.String(64), primary_key=True),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("likeness", sa.String(64), nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_index("ix_operators_name", "operators", ["name"])
    op.create_index("ix_operators_likeness", "operators", ["likeness"])
    artefacts = op.create_table(
        "artefacts",
        sa.Column(
            "search_id",
            sa.Integer,
            sa.ForeignKey("searches.id", name="fk_artefacts_search_id"),
            nullable=False,
        ),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("proves", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("search_id", "sha256", name="pk_artefacts"),
    )
    op.create_index("ix_artefacts_proves", "artefacts", ["proves"])
    op.create_index(
        "ix_searches_operator_digest_hardware", "searches", ["operator_digest", "hardware"]
    )
    op.create_index("ix_nodes_search_id_fitness", "nodes", ["search_id", "fitness"])
    rows = op.get_bind().execute(
        sa.text("SELECT search_id, evidence FROM confirmations WHERE evidence IS NOT NULL")
    )
    named = {
        (search_id, sha256)
        for search_id, evidence in rows
        if (sha256 := json.loads(evidence).get("samples_sha256"))
    }
    if named:
        op.bulk_insert(
            artefacts,
            [{"search_id": s, "sha256": sha256, "proves": True} for s, sha256 in sorted(named)],
        )
