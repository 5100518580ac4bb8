"""Refuse to upgrade while an allocation has no consumer."""

from alembic import op
import sqlalchemy as sa

revision = 'b5c396305c25'
down_revision = '611cd6dffd7b'


def upgrade() -> None:
    """Raise an error if an allocation has no consumer; the schema does not change."""
    allocations = sa.table('allocations', sa.column('id'), sa.column('consumer_id'))
    consumers = sa.table('consumers', sa.column('uuid'))
    without_consumer = (
        sa.select(allocations.c.id)
        .outerjoin_from(allocations, consumers, allocations.c.consumer_id == consumers.c.uuid)
        .where(consumers.c.uuid.is_(None))
        .limit(1)
    )
    if op.get_bind().execute(without_consumer).first() is not None:
        raise RuntimeError(
            'There is at least one allocation whose consumer is missing. Run '
            '`placement-manage db online_data_migrations`, then migrate again.'
        )
