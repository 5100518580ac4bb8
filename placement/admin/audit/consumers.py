"""Checks of allocations, of inventories, and of consumers and their owners."""

from collections.abc import Mapping
from typing import Any
import uuid

import os_traits
import sqlalchemy as sa

from placement.admin import console
from placement.admin.audit import model
from placement.admin.audit.model import NOTICE, SERVERS, Audited, Found, finding, rewrites
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


def _rows_without(table: sa.Table, key: str, other: sa.Table) -> sa.Select[Any]:
    """Return a select of those rows of a table that refer to no row of another one."""
    amounts = [table.c[name] for name in ('used', 'total') if name in table.c]
    rows = model.described(table, sa.literal(table.name).label('table')).add_columns(*amounts)
    return _dangling(rows, {table.c[key]: other.c.id})


_ORPHANS = {
    table: _rows_without(table, 'resource_provider_id', _PROVIDERS) for table in _OF_PROVIDERS
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
    changes: list[model.Row] = []
    for row in conn.execute(created).mappings():
        names = {'consumer_uuid': row['uuid'], model.ALLOCATIONS: counts[row['uuid']]}
        changes.append({**names, 'before': None, 'after': dict(row)})
    return changes


@finding(fixes=[(_MISSING_CONSUMERS, _create_consumers)], order=4)
def orphan_allocation(audited: Audited) -> Found:
    """Allocations whose consumer does not exist."""
    return audited.rows(_dangling(_ALLOCATION, {_UUID: _CONSUMERS.c.uuid}))


# No lock prevents that the provider is created, but no new provider has the id of an old one.
@finding(fixes=rewrites(_ORPHANS), order=3)
def orphan_provider(audited: Audited) -> Found:
    """Rows of providers that do not exist."""
    return audited.rows(*_ORPHANS.values())


@finding()
def unknown_class(audited: Audited) -> Found:
    """Inventories and allocations of resource classes that do not exist."""
    tables = _ALLOCATIONS, _INVENTORIES
    return audited.rows(*(_rows_without(one, 'resource_class_id', _CLASSES) for one in tables))


@finding(command='openstack resource provider inventory list {provider_uuid}')
def no_inventory(audited: Audited) -> Found:
    """Allocations of a class that the provider has no inventory of.

    Allocations whose provider or class does not exist are not included.
    """
    keys = ('resource_provider_id', 'resource_class_id')
    rows = _dangling(_ALLOCATION, {_ALLOCATIONS.c[key]: _INVENTORIES.c[key] for key in keys})
    return audited.rows(rows.where(_PROVIDERS.c.id.is_not(None), _CLASSES.c.id.is_not(None)))


@finding(NOTICE, command='openstack resource provider show --allocations {provider_uuid}')
def over_capacity(audited: Audited) -> Found:
    """Inventories whose usage exceeds their capacity."""
    used, capacity = expressions.used(_INVENTORIES), expressions.capacity(_INVENTORIES)
    columns = used.label('used'), capacity.label('capacity')
    found = model.described(_INVENTORIES).add_columns(*columns).where(used > capacity)
    count, rows = audited.rows(found)
    # The database returns the usage as a decimal number, and the capacity with decimal places.
    return count, [{**row, **{key: int(row[key]) for key in ('used', 'capacity')}} for row in rows]


@finding(fixes=rewrites({_CONSUMERS: _IDLE}), order=5)
def idle_consumer(audited: Audited) -> Found:
    """Consumers without allocations."""
    return audited.rows(_IDLE)


@finding(NOTICE, command='nova-manage placement heal_allocations --dry-run --verbose')
def incomplete_consumer(audited: Audited) -> Found:
    """Consumers owned by the incomplete-consumer project."""
    return audited.rows(CONSUMER.where(_PROJECTS.c.external_id == audited.incomplete_project))


@finding()
def owner_missing(audited: Audited) -> Found:
    """Consumers whose project, user or type does not exist."""
    without_type = sa.and_(_CONSUMERS.c.consumer_type_id.is_not(None), _TYPES.c.id.is_(None))
    without_owner = (table.c.id.is_(None) for table in (_PROJECTS, models.users))
    return audited.rows(CONSUMER.where(sa.or_(without_type, *without_owner)))


@finding(NOTICE, command='openstack server migration list --server {consumer_uuid}')
def several_trees(audited: Audited) -> Found:
    """Instances with allocations of a class in several trees.

    Sharing providers do not count. A consumer without a type is an instance, because Nova sets no
    types. A row contains the number of the trees, and the first and the last root by name.
    """
    is_sharing = sa.exists().where(
        _TRAIT_LINKS.c.resource_provider_id == _PROVIDERS.c.id,
        _TRAIT_LINKS.c.trait_id == models.traits.c.id,
        models.traits.c.name == os_traits.MISC_SHARES_VIA_AGGREGATE,
    )
    trees = sa.func.count(_ROOTS.c.id.distinct())
    first, last = sa.func.min(_ROOTS.c.name), sa.func.max(_ROOTS.c.name)
    of_class = (
        sa.select(_UUID, trees.label('trees'), first.label('first'), last.label('last'))
        .join_from(_ALLOCATIONS, _PROVIDERS, _PROVIDERS.c.id == _ALLOCATIONS.c.resource_provider_id)
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
            sa.func.min(of_class.c.first).label('first_tree'),
            sa.func.max(of_class.c.last).label('last_tree'),
        )
        .group_by(of_class.c.consumer_id)
        .subquery()
    )
    columns = [found.c.trees]
    for tree in (found.c.first_tree, found.c.last_tree):
        uuid_ = sa.select(_ROOTS.c.uuid).where(_ROOTS.c.name == tree).scalar_subquery()
        columns += [tree, uuid_.label(f'{tree.name}_uuid')]
    rows = CONSUMER.join(found, found.c.consumer_id == _CONSUMERS.c.uuid).add_columns(*columns)
    return audited.rows(rows.where(sa.func.coalesce(_TYPES.c.name, _INSTANCE) == _INSTANCE))


@finding(
    NOTICE, command='openstack resource provider allocation show {consumer_uuid}', option=SERVERS
)
def no_server(audited: Audited) -> Found:
    """Consumers that are neither a server nor a migration.

    All consumers are compared here, because no statement can have a million parameters.
    """
    others = sa.func.coalesce(_TYPES.c.name, '') != _MIGRATION
    uuids = audited.scalars(CONSUMER.with_only_columns(_CONSUMERS.c.uuid).where(others))
    unknown = [text for text in uuids if console.digits_of(text) not in audited.servers]
    first = CONSUMER.where(_CONSUMERS.c.uuid.in_(unknown[: model.ROW_LIMIT]))
    return len(unknown), audited.rows(first)[1]


@finding(
    NOTICE,
    command='nova-manage placement heal_allocations --verbose --instance {server_uuid}',
    option=SERVERS,
)
def no_allocations(audited: Audited) -> Found:
    """Servers without allocations."""
    without = dict(audited.servers)
    for text in audited.scalars(sa.select(_UUID).distinct()):
        without.pop(console.digits_of(text), None)
    using = []
    for digits, row in without.items():
        name, status = row.get('Name'), row.get('Status')
        if status not in _WITHOUT_HOST:
            using.append({'server': name, 'server_uuid': str(uuid.UUID(digits)), 'status': status})
    return len(using), using[: model.ROW_LIMIT]
