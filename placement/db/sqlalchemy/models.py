"""The database tables.

The tables, columns and indexes are exactly those of OpenStack Placement, so this service can use an
existing database without an additional migration.
"""

from typing import Any

from oslo_utils import timeutils
import sqlalchemy as sa
from sqlalchemy import Column, ForeignKey, Index, Integer, String, Table, Unicode, UniqueConstraint

metadata = sa.MetaData()


def _timestamps() -> tuple[Column[Any], Column[Any]]:
    return (
        Column('created_at', sa.DateTime, default=timeutils.utcnow),
        Column('updated_at', sa.DateTime, onupdate=timeutils.utcnow),
    )


resource_providers = Table(
    'resource_providers',
    metadata,
    *_timestamps(),
    Column('id', Integer, primary_key=True, nullable=False),
    Column('uuid', String(36), nullable=False),
    Column('name', Unicode(200), nullable=True),
    Column('generation', Integer, default=0),
    Column('root_provider_id', Integer, ForeignKey('resource_providers.id')),
    Column('parent_provider_id', Integer, ForeignKey('resource_providers.id'), nullable=True),
    UniqueConstraint('uuid', name='uniq_resource_providers0uuid'),
    UniqueConstraint('name', name='uniq_resource_providers0name'),
    Index('resource_providers_root_provider_id_idx', 'root_provider_id'),
    Index('resource_providers_parent_provider_id_idx', 'parent_provider_id'),
)

inventories = Table(
    'inventories',
    metadata,
    *_timestamps(),
    Column('id', Integer, primary_key=True, nullable=False),
    Column('resource_provider_id', Integer, nullable=False),
    Column('resource_class_id', Integer, nullable=False),
    Column('total', Integer, nullable=False),
    Column('reserved', Integer, nullable=False),
    Column('min_unit', Integer, nullable=False),
    Column('max_unit', Integer, nullable=False),
    Column('step_size', Integer, nullable=False),
    Column('allocation_ratio', sa.Float, nullable=False),
    UniqueConstraint(
        'resource_provider_id',
        'resource_class_id',
        name='uniq_inventories0resource_provider_resource_class',
    ),
    Index('inventories_resource_class_id_idx', 'resource_class_id'),
)

allocations = Table(
    'allocations',
    metadata,
    *_timestamps(),
    Column('id', Integer, primary_key=True, nullable=False),
    Column('resource_provider_id', Integer, nullable=False),
    Column('consumer_id', String(36), nullable=False),
    Column('resource_class_id', Integer, nullable=False),
    Column('used', Integer, nullable=False),
    Index(
        'allocations_resource_provider_class_used_idx',
        'resource_provider_id',
        'resource_class_id',
        'used',
    ),
    Index('allocations_resource_class_id_idx', 'resource_class_id'),
    Index('allocations_consumer_id_idx', 'consumer_id'),
)

consumer_types = Table(
    'consumer_types',
    metadata,
    *_timestamps(),
    Column('id', Integer, primary_key=True, nullable=False),
    Column('name', Unicode(255), nullable=False),
    UniqueConstraint('name', name='uniq_consumer_types0name'),
)

consumers = Table(
    'consumers',
    metadata,
    *_timestamps(),
    Column('id', Integer, primary_key=True, nullable=False, autoincrement=True),
    Column('uuid', String(36), nullable=False),
    Column('project_id', Integer, nullable=False),
    Column('user_id', Integer, nullable=False),
    Column('generation', Integer, nullable=False, server_default=sa.text('0'), default=0),
    Column(
        'consumer_type_id',
        Integer,
        ForeignKey('consumer_types.id', name='consumers_consumer_type_id_fkey'),
        nullable=True,
    ),
    UniqueConstraint('uuid', name='uniq_consumers0uuid'),
    Index('consumers_project_id_uuid_idx', 'project_id', 'uuid'),
    Index('consumers_project_id_user_id_uuid_idx', 'project_id', 'user_id', 'uuid'),
    Index('consumers_consumer_type_id_idx', 'consumer_type_id'),
)

projects = Table(
    'projects',
    metadata,
    *_timestamps(),
    Column('id', Integer, primary_key=True, nullable=False, autoincrement=True),
    Column('external_id', String(255), nullable=False),
    UniqueConstraint('external_id', name='uniq_projects0external_id'),
)

users = Table(
    'users',
    metadata,
    *_timestamps(),
    Column('id', Integer, primary_key=True, nullable=False, autoincrement=True),
    Column('external_id', String(255), nullable=False),
    UniqueConstraint('external_id', name='uniq_users0external_id'),
)

# The service assigns the ids: the id of a standard class is its position in os-resource-classes,
# and a custom class has the next free id from 10000 upwards. Migrated tables have an AUTO_INCREMENT
# on this column, which the service does not use.
resource_classes = Table(
    'resource_classes',
    metadata,
    *_timestamps(),
    Column('id', Integer, primary_key=True, nullable=False),
    Column('name', String(255), nullable=False),
    UniqueConstraint('name', name='uniq_resource_classes0name'),
)

traits = Table(
    'traits',
    metadata,
    *_timestamps(),
    Column('id', Integer, primary_key=True, nullable=False, autoincrement=True),
    Column('name', Unicode(255), nullable=False),
    UniqueConstraint('name', name='uniq_traits0name'),
)

placement_aggregates = Table(
    'placement_aggregates',
    metadata,
    *_timestamps(),
    Column('id', Integer, primary_key=True, autoincrement=True),
    Column('uuid', String(36)),
    UniqueConstraint('uuid', name='uniq_placement_aggregates0uuid'),
)

resource_provider_aggregates = Table(
    'resource_provider_aggregates',
    metadata,
    *_timestamps(),
    Column('resource_provider_id', Integer, primary_key=True, nullable=False),
    Column('aggregate_id', Integer, primary_key=True, nullable=False),
    Index('resource_provider_aggregates_aggregate_id_idx', 'aggregate_id'),
)

resource_provider_traits = Table(
    'resource_provider_traits',
    metadata,
    *_timestamps(),
    Column('trait_id', Integer, ForeignKey('traits.id'), primary_key=True, nullable=False),
    Column(
        'resource_provider_id',
        Integer,
        ForeignKey('resource_providers.id'),
        primary_key=True,
        nullable=False,
    ),
    Index(
        'resource_provider_traits_resource_provider_trait_idx',
        'resource_provider_id',
        'trait_id',
    ),
)


def generation(table: sa.FromClause) -> sa.Label[int]:
    """Return the generation of the rows of `resource_providers` or `consumers`, 0 in place of NULL.

    Rows of old releases can have no generation. NULL + 1 is NULL, so an increment would not change
    the row, and the nodes of a Galera cluster would not detect conflicting claims.
    """
    return sa.func.coalesce(table.c.generation, sa.literal_column('0')).label('generation')
