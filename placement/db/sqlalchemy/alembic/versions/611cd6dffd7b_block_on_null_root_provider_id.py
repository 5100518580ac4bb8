"""Refuse to upgrade while a resource provider has no root provider."""

from alembic import op
import sqlalchemy as sa

revision = '611cd6dffd7b'
down_revision = 'b4ed3a175331'


def upgrade() -> None:
    """Raise an error if a provider has no root provider; the schema does not change."""
    providers = sa.table('resource_providers', sa.column('id'), sa.column('root_provider_id'))
    without_root = sa.select(providers.c.id).where(providers.c.root_provider_id.is_(None)).limit(1)
    if op.get_bind().execute(without_root).first() is not None:
        raise RuntimeError(
            'There is at least one resource provider without a root provider. Run '
            '`placement-manage db online_data_migrations`, then migrate again.'
        )
