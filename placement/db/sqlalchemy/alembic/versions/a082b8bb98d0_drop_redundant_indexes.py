"""Drop redundant indexes."""

from alembic import op

revision = 'a082b8bb98d0'
down_revision = '422ece571366'


def upgrade() -> None:
    """Drop each index that a unique constraint or another index makes redundant."""
    for name, table in (
        ('inventories_resource_provider_id_idx', 'inventories'),
        ('inventories_resource_provider_resource_class_idx', 'inventories'),
        ('ix_placement_aggregates_uuid', 'placement_aggregates'),
        ('resource_providers_name_idx', 'resource_providers'),
        ('resource_providers_uuid_idx', 'resource_providers'),
    ):
        op.drop_index(name, table_name=table)
