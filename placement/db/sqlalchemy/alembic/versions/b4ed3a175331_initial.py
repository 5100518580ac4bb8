"""Create the initial tables."""

from typing import Any

from alembic import op
import sqlalchemy as sa

revision = 'b4ed3a175331'
down_revision = None


def upgrade() -> None:
    """Create the tables as this revision defines them; `models` has the newest definition."""
    _create_providers()
    _create_consumers()
    _create_inventories()
    _create_associations()


def _timestamps() -> tuple[sa.Column[Any], sa.Column[Any]]:
    return sa.Column('created_at', sa.DateTime), sa.Column('updated_at', sa.DateTime)


def _create_providers() -> None:
    op.create_table(
        'resource_classes',
        *_timestamps(),
        sa.Column('id', sa.Integer, primary_key=True, nullable=False),
        sa.Column('name', sa.String(255), nullable=False),
        sa.UniqueConstraint('name', name='uniq_resource_classes0name'),
    )
    op.create_table(
        'traits',
        *_timestamps(),
        sa.Column('id', sa.Integer, primary_key=True, nullable=False),
        sa.Column('name', sa.Unicode(255), nullable=False),
        sa.UniqueConstraint('name', name='uniq_traits0name'),
    )
    op.create_table(
        'placement_aggregates',
        *_timestamps(),
        sa.Column('id', sa.Integer, primary_key=True, nullable=False),
        sa.Column('uuid', sa.String(36)),
        sa.UniqueConstraint('uuid', name='uniq_placement_aggregates0uuid'),
    )
    op.create_index('ix_placement_aggregates_uuid', 'placement_aggregates', ['uuid'])
    op.create_table(
        'resource_providers',
        *_timestamps(),
        sa.Column('id', sa.Integer, primary_key=True, nullable=False),
        sa.Column('uuid', sa.String(36), nullable=False),
        sa.Column('name', sa.Unicode(200)),
        sa.Column('generation', sa.Integer),
        sa.Column('root_provider_id', sa.Integer),
        sa.Column('parent_provider_id', sa.Integer),
        # MySQL derives the names of unnamed constraints from their order, so the order must not
        # change.
        sa.ForeignKeyConstraint(['parent_provider_id'], ['resource_providers.id']),
        sa.ForeignKeyConstraint(['root_provider_id'], ['resource_providers.id']),
        sa.UniqueConstraint('name', name='uniq_resource_providers0name'),
        sa.UniqueConstraint('uuid', name='uniq_resource_providers0uuid'),
    )
    for name, column in (
        ('resource_providers_name_idx', 'name'),
        ('resource_providers_uuid_idx', 'uuid'),
        ('resource_providers_root_provider_id_idx', 'root_provider_id'),
        ('resource_providers_parent_provider_id_idx', 'parent_provider_id'),
    ):
        op.create_index(name, 'resource_providers', [column])


def _create_consumers() -> None:
    for table in ('projects', 'users'):
        op.create_table(
            table,
            *_timestamps(),
            sa.Column('id', sa.Integer, primary_key=True, nullable=False),
            sa.Column('external_id', sa.String(255), nullable=False),
            sa.UniqueConstraint('external_id', name=f'uniq_{table}0external_id'),
        )
    op.create_table(
        'consumers',
        *_timestamps(),
        sa.Column('id', sa.Integer, primary_key=True, nullable=False),
        sa.Column('uuid', sa.String(36), nullable=False),
        sa.Column('project_id', sa.Integer, nullable=False),
        sa.Column('user_id', sa.Integer, nullable=False),
        sa.Column('generation', sa.Integer, server_default=sa.text('0'), nullable=False),
        sa.UniqueConstraint('uuid', name='uniq_consumers0uuid'),
    )
    op.create_index('consumers_project_id_uuid_idx', 'consumers', ['project_id', 'uuid'])
    op.create_index(
        'consumers_project_id_user_id_uuid_idx', 'consumers', ['project_id', 'user_id', 'uuid']
    )


def _create_inventories() -> None:
    op.create_table(
        'inventories',
        *_timestamps(),
        sa.Column('id', sa.Integer, primary_key=True, nullable=False),
        sa.Column('resource_provider_id', sa.Integer, nullable=False),
        sa.Column('resource_class_id', sa.Integer, nullable=False),
        sa.Column('total', sa.Integer, nullable=False),
        sa.Column('reserved', sa.Integer, nullable=False),
        sa.Column('min_unit', sa.Integer, nullable=False),
        sa.Column('max_unit', sa.Integer, nullable=False),
        sa.Column('step_size', sa.Integer, nullable=False),
        sa.Column('allocation_ratio', sa.Float, nullable=False),
        sa.UniqueConstraint(
            'resource_provider_id',
            'resource_class_id',
            name='uniq_inventories0resource_provider_resource_class',
        ),
    )
    for name, columns in (
        ('inventories_resource_class_id_idx', ['resource_class_id']),
        ('inventories_resource_provider_id_idx', ['resource_provider_id']),
        (
            'inventories_resource_provider_resource_class_idx',
            ['resource_provider_id', 'resource_class_id'],
        ),
    ):
        op.create_index(name, 'inventories', columns)
    op.create_table(
        'allocations',
        *_timestamps(),
        sa.Column('id', sa.Integer, primary_key=True, nullable=False),
        sa.Column('resource_provider_id', sa.Integer, nullable=False),
        sa.Column('consumer_id', sa.String(36), nullable=False),
        sa.Column('resource_class_id', sa.Integer, nullable=False),
        sa.Column('used', sa.Integer, nullable=False),
    )
    for name, columns in (
        (
            'allocations_resource_provider_class_used_idx',
            ['resource_provider_id', 'resource_class_id', 'used'],
        ),
        ('allocations_resource_class_id_idx', ['resource_class_id']),
        ('allocations_consumer_id_idx', ['consumer_id']),
    ):
        op.create_index(name, 'allocations', columns)


def _create_associations() -> None:
    op.create_table(
        'resource_provider_aggregates',
        *_timestamps(),
        sa.Column('resource_provider_id', sa.Integer, primary_key=True, nullable=False),
        sa.Column('aggregate_id', sa.Integer, primary_key=True, nullable=False),
    )
    op.create_index(
        'resource_provider_aggregates_aggregate_id_idx',
        'resource_provider_aggregates',
        ['aggregate_id'],
    )
    op.create_table(
        'resource_provider_traits',
        *_timestamps(),
        sa.Column('trait_id', sa.Integer, primary_key=True, nullable=False),
        sa.Column('resource_provider_id', sa.Integer, primary_key=True, nullable=False),
        sa.ForeignKeyConstraint(['resource_provider_id'], ['resource_providers.id']),
        sa.ForeignKeyConstraint(['trait_id'], ['traits.id']),
    )
    op.create_index(
        'resource_provider_traits_resource_provider_trait_idx',
        'resource_provider_traits',
        ['resource_provider_id', 'trait_id'],
    )
