"""What passes between the program and a code host: deliveries, commands, effects."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "deliveries",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("event", sa.String(64), nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("received_at", sa.Float, nullable=False),
        sa.Column("handled_at", sa.Float),
    )
    op.create_index(
        "ix_deliveries_handled_at_received_at", "deliveries", ["handled_at", "received_at"]
    )
    op.create_table(
        "commands",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("comment_id", sa.BigInteger, nullable=False),
        sa.Column("line", sa.Integer, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("head_sha", sa.String(64)),
        sa.Column("author_id", sa.BigInteger, nullable=False),
        sa.Column("author", sa.String(100), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("received_at", sa.Float, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("told", sa.Text, nullable=False),
        sa.Column("goal_key", sa.String(200)),
        sa.Column("changed_at", sa.Float, nullable=False),
        sa.UniqueConstraint("comment_id", "line", name="uq_commands_comment_id_line"),
    )
    op.create_index("ix_commands_goal_key", "commands", ["goal_key"])
    op.create_index("ix_commands_state_received_at", "commands", ["state", "received_at"])
    op.create_table(
        "effects",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("key", sa.String(200), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.Column("made_at", sa.Float, nullable=False),
        sa.Column("not_before", sa.Float, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("done_at", sa.Float),
        sa.Column("remote", sa.String(64)),
        sa.Column("error", sa.Text),
        sa.UniqueConstraint("key", name="uq_effects_key"),
    )
    op.create_index("ix_effects_done_at_priority_id", "effects", ["done_at", "priority", "id"])
