"""Checks of allocations, of inventories, and of consumers and their owners."""

from collections.abc import Mapping
from typing import Any
import uuid

import os_traits
import sqlalchemy as sa

from placement.admin import console
from placement.admin.audit import model
from placement.db import expressions
from placement.db.sqlalchemy import models
from placement.objects import online_data_migrations

_PROVIDERS = models.resource_providers
_ROOTS = _PROVIDERS.alias('root')
_CLASSES = models.resource_classes
_ALLOCATIONS = models.allocations
_UUID = _ALLOCATIONS.c.consumer_id
_INVENTORIES = models.inventories
_TRAIT_LINKS = models.resource_provider_traits
_CONSUMERS = models.consumers
_PROJECTS = models.projects
_TYPES = models.consumer_types
# The tables with rows of providers, in the order of the report.
_OF_PROVIDERS = (_ALLOCATIONS, _INVENTORIES, _TRAIT_LINKS, models.resource_provider_aggregates)
# The types of the consumers that Nova creates.
_INSTANCE, _MIGRATION = 'INSTANCE', 'MIGRATION'
# Servers with these states use no host.
_WITHOUT_HOST = frozenset({'BUILD', 'DELETED', 'SHELVED_OFFLOADED'})
# All allocations, and all consumers with the names of their project, user and type.
_ALLOCATION = model.described(_ALLOCATIONS).add_columns(_ALLOCATIONS.c.used)
CONSUMER = model.described(_CONSUMERS)
_IDLE = CONSUMER.where(~sa.exists().where(_CONSUMERS.c.uuid == _UUID))


def _of_table(table: sa.Table) -> sa.Select[Any]:
    """Return a select of all rows of a table, with its name."""
    amounts = [table.c[name] for name in ('used', 'total') if name in table.c]
    return model.described(table, sa.literal(table.name).label('table')).add_columns(*amounts)


def _dangling(
    rows: sa.Select[Any], references: Mapping[sa.Column[Any], sa.Column[Any]]
) -> sa.Select[Any]:
    """Return a select of those rows whose columns refer to no row of another table.

    PERF: the database reads the distinct ids from an index of the columns, and looks up each of
    them once. A condition on each row takes several times as long.

    :param references: the columns, with the columns of the other table
    """
    (target,) = {column.table for column in references.values()}
    ids = sa.select(*references).distinct().subquery()
    found = sa.and_(*(column == ids.c[key.name] for key, column in references.items()))
    missing = sa.select(ids).outerjoin(target, found).where(target.c.id.is_(None)).subquery()
    return rows.join(missing, sa.and_(*(missing.c[key.name] == key for key in references)))


_ORPHANS = {
    table: _dangling(_of_table(table), {table.c.resource_provider_id: _PROVIDERS.c.id})
    for table in _OF_PROVIDERS
}
_MISSING_CONSUMERS = (
    online_data_migrations.select_without_consumer(_UUID).distinct().order_by(_UUID)
)


def _create_consumers(batch: model.Batch, conn: sa.Connection) -> list[model.Row]:
    """Create the consumers that are still missing, owned by the incomplete-consumer project.

    If a concurrent request creates one of them, the unique key rejects one of the inserts, and the
    transaction is retried.
    """
    among = _UUID.in_([consumer for (consumer,) in batch.keys])
    still = conn.scalars(_MISSING_CONSUMERS.where(among)).all()
    if not still:
        return []
    owner = online_data_migrations.ensure_incomplete_owner(conn, batch.conf)
    counts = online_data_migrations.insert_incomplete_consumers(conn, owner, still)
    created = sa.select(_CONSUMERS).where(_CONSUMERS.c.uuid.in_(still)).order_by(_CONSUMERS.c.uuid)
    return [
        model.change(
            {'consumer_uuid': row['uuid'], model.ALLOCATIONS: counts[row['uuid']]},
            None,
            model.as_stored(row),
        )
        for row in conn.execute(created).mappings()
    ]


@model.Code(
    'orphan-allocation',
    'allocations whose consumer does not exist',
    fixes=[(_MISSING_CONSUMERS, _create_consumers)],
    action='creates the consumer',
    order=4,
)
def orphan_allocation(audited: model.Audited) -> model.Found:
    return audited.rows(_dangling(_ALLOCATION, {_UUID: _CONSUMERS.c.uuid}))


# No lock prevents that the provider is created, but no new provider has the id of an old one.
@model.Code(
    'orphan-provider',
    'rows of providers that do not exist',
    fixes=model.rewrites(_ORPHANS),
    action='deletes the row',
    order=3,
)
def orphan_provider(audited: model.Audited) -> model.Found:
    return audited.rows(*_ORPHANS.values())


@model.Code('unknown-class', 'inventories and allocations of resource classes that do not exist')
def unknown_class(audited: model.Audited) -> model.Found:
    return audited.rows(
        *(
            _dangling(_of_table(table), {table.c.resource_class_id: _CLASSES.c.id})
            for table in (_ALLOCATIONS, _INVENTORIES)
        )
    )


@model.Code(
    'no-inventory',
    'allocations of a class that the provider has no inventory of',
    command='openstack resource provider inventory list {provider_uuid}',
)
def no_inventory(audited: model.Audited) -> model.Found:
    """Allocations whose provider or class does not exist are not included."""
    keys = ('resource_provider_id', 'resource_class_id')
    rows = _dangling(_ALLOCATION, {_ALLOCATIONS.c[key]: _INVENTORIES.c[key] for key in keys})
    return audited.rows(rows.where(_PROVIDERS.c.id.is_not(None), _CLASSES.c.id.is_not(None)))


@model.Code(
    'over-capacity',
    'inventories whose usage exceeds their capacity',
    model.NOTICE,
    command='openstack resource provider show --allocations {provider_uuid}',
)
def over_capacity(audited: model.Audited) -> model.Found:
    used, capacity = expressions.used(_INVENTORIES), expressions.capacity(_INVENTORIES)
    columns = used.label('used'), capacity.label('capacity')
    rows = model.described(_INVENTORIES).add_columns(*columns)
    return audited.rows(rows.where(used > capacity))


@model.Code(
    'idle-consumer',
    'consumers without allocations',
    fixes=model.rewrites({_CONSUMERS: _IDLE}),
    action='deletes the consumer',
    order=5,
)
def idle_consumer(audited: model.Audited) -> model.Found:
    return audited.rows(_IDLE)


@model.Code(
    'incomplete-consumer',
    'consumers owned by the incomplete-consumer project',
    model.NOTICE,
    command='nova-manage placement heal_allocations --dry-run --verbose',
)
def incomplete_consumer(audited: model.Audited) -> model.Found:
    return audited.rows(CONSUMER.where(_PROJECTS.c.external_id == audited.incomplete_project))


@model.Code('owner-missing', 'consumers whose project, user or type does not exist')
def owner_missing(audited: model.Audited) -> model.Found:
    without_type = sa.and_(_CONSUMERS.c.consumer_type_id.is_not(None), _TYPES.c.id.is_(None))
    without_owner = (table.c.id.is_(None) for table in (_PROJECTS, models.users))
    return audited.rows(CONSUMER.where(sa.or_(without_type, *without_owner)))


@model.Code(
    'several-trees',
    'instances with allocations of a class in several trees',
    model.NOTICE,
    command='openstack server migration list --server {consumer_uuid}',
)
def several_trees(audited: model.Audited) -> model.Found:
    """Sharing providers do not count.

    A consumer without a type is an instance, because Nova sets no types. A row contains the number
    of the trees, and the first and the last root by name.
    """
    is_sharing = sa.exists().where(
        _TRAIT_LINKS.c.resource_provider_id == _PROVIDERS.c.id,
        _TRAIT_LINKS.c.trait_id == models.traits.c.id,
        models.traits.c.name == os_traits.MISC_SHARES_VIA_AGGREGATE,
    )
    trees = sa.func.count(_ROOTS.c.id.distinct())
    of_class = (
        sa.select(
            _UUID,
            trees.label('trees'),
            sa.func.min(_ROOTS.c.name).label('first_tree'),
            sa.func.max(_ROOTS.c.name).label('last_tree'),
        )
        .select_from(_ALLOCATIONS)
        .join(_PROVIDERS, _PROVIDERS.c.id == _ALLOCATIONS.c.resource_provider_id)
        .join(_ROOTS, _ROOTS.c.id == _PROVIDERS.c.root_provider_id)
        .where(~is_sharing)
        .group_by(_UUID, _ALLOCATIONS.c.resource_class_id)
        .having(trees > 1)
        .subquery()
    )
    found = (
        sa.select(
            of_class.c.consumer_id,
            sa.func.max(of_class.c.trees).label('trees'),
            sa.func.min(of_class.c.first_tree).label('first_tree'),
            sa.func.max(of_class.c.last_tree).label('last_tree'),
        )
        .group_by(of_class.c.consumer_id)
        .subquery()
    )
    first, last = _PROVIDERS.alias('first'), _PROVIDERS.alias('last')
    return audited.rows(
        CONSUMER.join(found, found.c.consumer_id == _CONSUMERS.c.uuid)
        .outerjoin(first, first.c.name == found.c.first_tree)
        .outerjoin(last, last.c.name == found.c.last_tree)
        .where(sa.func.coalesce(_TYPES.c.name, _INSTANCE) == _INSTANCE)
        .add_columns(
            found.c.trees,
            found.c.first_tree,
            first.c.uuid.label('first_tree_uuid'),
            found.c.last_tree,
            last.c.uuid.label('last_tree_uuid'),
        )
    )


def read_servers(path: str) -> dict[str, model.Row]:
    """Return the servers in a file, keyed by the digits of the UUID (see `console.digits_of`).

    :raises CannotProceedError: the file cannot be read, or is not a list of servers
    """
    remedy = 'Write it with `openstack server list --all-projects --limit -1 -f json`.'
    return {
        digits: {
            'server': row.get('Name'),
            'server_uuid': str(uuid.UUID(digits)),
            'status': row.get('Status'),
        }
        for digits, row in console.rows(path, remedy)
    }


@model.Code(
    'no-server',
    'consumers that are neither a server nor a migration',
    model.NOTICE,
    command='openstack resource provider allocation show {consumer_uuid}',
    option=model.SERVERS,
)
def no_server(audited: model.Audited) -> model.Found:
    """Compare all consumers here, because no statement can have a million parameters."""
    others = sa.func.coalesce(_TYPES.c.name, '') != _MIGRATION
    uuids = audited.scalars(CONSUMER.with_only_columns(_CONSUMERS.c.uuid).where(others))
    unknown = [text for text in uuids if console.digits_of(text) not in audited.servers]
    first = CONSUMER.where(_CONSUMERS.c.uuid.in_(unknown[: model.ROW_LIMIT]))
    return model.Found(len(unknown), audited.rows(first).rows)


@model.Code(
    'no-allocations',
    'servers without allocations',
    model.NOTICE,
    command='nova-manage placement heal_allocations --verbose --instance {server_uuid}',
    option=model.SERVERS,
)
def no_allocations(audited: model.Audited) -> model.Found:
    without = dict(audited.servers)
    for text in audited.scalars(sa.select(_UUID).distinct()):
        without.pop(console.digits_of(text), None)
    using = [row for row in without.values() if row['status'] not in _WITHOUT_HOST]
    return model.Found(len(using), tuple(using[: model.ROW_LIMIT]))
