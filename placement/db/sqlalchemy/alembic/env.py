"""The environment that alembic executes; `migration` passes its connection."""

from alembic import context

from placement.db.sqlalchemy import models

context.configure(
    connection=context.config.attributes['connection'],
    target_metadata=models.metadata,
)
with context.begin_transaction():
    context.run_migrations()
