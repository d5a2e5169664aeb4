"""The devices of all hosts: who holds which, and which are cordoned."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "devices",
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("host", sa.String(200), nullable=False),
        sa.Column("hardware", sa.String(200), nullable=False),
        sa.Column("arch", sa.String(64), nullable=False),
        sa.Column("access", sa.Text, nullable=False),
        sa.Column("rule", sa.String(16)),
        sa.Column("why", sa.Text, nullable=False),
        sa.Column("ruled_by", sa.String(16), nullable=False),
        sa.Column("since", sa.Float, nullable=False),
        sa.Column("holder", sa.String(200)),
        sa.Column("task", sa.Text, nullable=False),
        sa.Column("held_until", sa.Float),
        sa.PrimaryKeyConstraint("name", name="pk_devices"),
    )
    op.create_index("ix_devices_host", "devices", ["host"])
