"""Alembic's entry: runs the revisions on the connection that it is handed."""

from alembic import context
from sqlalchemy import Connection

from optimizer.store.tables import Table

connection: Connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=Table.metadata, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
