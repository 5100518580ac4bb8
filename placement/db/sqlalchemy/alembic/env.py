"""Run the migrations on the connection that `migration` passes; Alembic executes this file."""

from alembic import context

from placement.db.sqlalchemy import models

context.configure(
    connection=context.config.attributes['connection'],
    target_metadata=models.metadata,
)
with context.begin_transaction():
    context.run_migrations()
